"""The texts that the language identifier is trained and measured on, each with its language.

Sentences come from translations, posts from social media. Posts that are measured are never trained on.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from emoglot.text.letters import NO_SCRIPT, OTHER_SCRIPT, SCRIPTS, clean, read_letters

# Word lists and interface strings are not sentences; they are used only if there is little else.
WORD_LISTS = ("memolon", "cldr", "omw", "wiktdict", "gatitos", "ui_")
FEW_SENTENCES = 3000
WORDS_TOGETHER = 6  # entries of a word list that make up one text
# Codes that are measured as another language: varieties that cannot be distinguished in posts, and synonyms.
MERGED = {"tw": "ak", "arz": "ar", "apc": "ar", "aeb": "ar", "yue": "zh", "nb": "no", "nn": "no", "bbc": "btk"}
MERGED |= {"pt-BR": "pt", "pt-MZ": "pt"}
# In the Arabic script much of what is called Moroccan is standard Arabic; in the Latin script it is not.
MERGED_IN_SCRIPT = {("ary", "Arab"): "ar"}
# Mixed languages, datasets with many rows in another language, and datasets with too few rows.
LEFT_OUT_LANGUAGES = ("es-en", "en-PH", "nij", "mui", "rej", "abs", "bhp")
LEFT_OUT_SETS = ("emosen_hinglish",)
# Languages that people also write in the Latin script, besides their own.
ROMANISED = ("ar", "ary", "hi", "kn", "ml", "mr", "ta", "ur")
# The language codes of BRIGHTER.
BRIGHTER_CODES = (
    "afr=af amh=am arq=arq ary=ary chn=zh deu=de eng=en esp=es hau=ha hin=hi ibo=ig kin=rw mar=mr orm=om pcm=pcm "
    "ptbr=pt ptmz=pt ron=ro rus=ru som=so sun=su swa=sw swe=sv tat=tt tir=ti ukr=uk vmw=vmw yor=yo"
)
BRIGHTER = dict(pair.split("=") for pair in BRIGHTER_CODES.split())
MOST_OF_SOURCE = 4000  # texts of a language per dataset, so that scripture or subtitles do not dominate
HELD_OUT_SHARE = 1 / 25  # of posts in datasets without a dev or test part
POST_WORDS = 10
POST_CHARACTERS = 30  # for scripts without spaces between words
UNSPACED = ("Hani", "Kana", "Thai", "Laoo", "Khmr", "Mymr", "Tibt")
NOT_WORDS = ("@", "http", "www", "<")

Rows = list[tuple[str, str]]  # texts and the codes of their languages


@dataclass(frozen=True)
class Texts:
    """Texts with their languages, for training and for evaluation."""

    sentences: Rows
    posts: Rows
    measured_posts: Rows


def read_texts(data: Path) -> Texts:
    """Read all texts; posts for evaluation are not among the training texts, even if another dataset repeats them."""
    posts, measured = read_posts(data)
    known = {_key(text) for text, _ in measured}
    known |= {_key(text) for text, _ in read_flores(data)}
    sentences = [row for row in _sentences(data) if _key(row[0]) not in known]
    return Texts(sentences, [row for row in posts if _key(row[0]) not in known], measured)


def read_posts(data: Path) -> tuple[Rows, Rows]:
    """Read the posts for training, which may contain copies of the others, and those for evaluation."""
    posts: Rows = []
    measured: Rows = []
    for text, language, is_measured in _posts(data):
        code = _code_of(language)
        if code and text.strip():
            (measured if is_measured or _is_held_out(text) else posts).append((text, code))
    return posts, measured


def read_flores(data: Path) -> Rows:
    """Read the sentences of FLORES dev, which are only for evaluation, with their English."""
    rows: dict[tuple[str, str], None] = {}
    for path in sorted((data / "parallel/flores-dev").glob("*.tsv.gz")):
        for fields in _tsv(path):
            rows[fields[1], _code_of(_stem(path)) or ""] = None
            rows[fields[0], "en"] = None
    return list(rows)


def to_posts(rows: Rows, most: int, seed: int = 0) -> dict[tuple[str, str], list[str]]:
    """Return at most `most` posts of about ten words by language and script, those of other scripts left out."""
    rows, scripts = with_scripts(rows)
    found: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)
    for (text, code), script in zip(rows, scripts, strict=True):
        words = [word for word in text.split() if not word.startswith(NOT_WORDS)]
        short = " ".join(words)[:POST_CHARACTERS] if script in UNSPACED else " ".join(words[:POST_WORDS])
        if script not in (NO_SCRIPT, OTHER_SCRIPT) and (script in UNSPACED or len(words) >= POST_WORDS // 2):
            found[code, script][short] = None
    rng = np.random.default_rng(seed)
    own = own_scripts(rows, scripts)
    result = {}
    for (code, script), texts in sorted(found.items()):
        if (code, script) in own:
            listed = list(texts)
            result[code, script] = [listed[row] for row in rng.permutation(len(listed))[:most].tolist()]
    return result


def own_scripts(rows: Rows, scripts: list[str]) -> set[tuple[str, str]]:
    """Return the languages with the scripts that they are written in: those of a fifth of the texts, or known ones."""
    pairs = Counter((code, script) for (_, code), script in zip(rows, scripts, strict=True))
    totals: Counter[str] = Counter()
    for (code, _), count in pairs.items():
        totals[code] += count
    known = {(code, "Latn") for code in ROMANISED} | {("ja", "Hani"), ("ja", "Kana"), ("sr", "Latn"), ("sr", "Cyrl")}
    return {
        pair
        for pair, count in pairs.items()
        if pair[1] not in (NO_SCRIPT, OTHER_SCRIPT) and (count >= totals[pair[0]] / 5 or pair in known)
    }


def with_scripts(rows: Rows) -> tuple[Rows, list[str]]:
    """Return rows with the code of their class, and their scripts."""
    scripts = scripts_of([text for text, _ in rows])
    codes = [MERGED_IN_SCRIPT.get((code, script), code) for (_, code), script in zip(rows, scripts, strict=True)]
    return [(text, code) for (text, _), code in zip(rows, codes, strict=True)], scripts


def scripts_of(texts: list[str]) -> list[str]:
    """Return the name of the script of each text."""
    nothing: NDArray[np.bool_] = np.zeros(len(SCRIPTS), dtype=bool)
    names: list[str] = []
    for first in range(0, len(texts), 4096):
        found = read_letters(texts[first : first + 4096], nothing).scripts
        names += [SCRIPTS[index] for index in found.tolist()]
    return names


def _sentences(data: Path) -> Iterator[tuple[str, str]]:
    """Yield the translations into each language, and the English of one of them."""
    files: dict[str, list[Path]] = defaultdict(list)
    for folder in ("train", "more"):
        for path in sorted((data / "parallel" / folder).glob("*.tsv.gz")):
            files[_stem(path)].append(path)
    for language, paths in files.items():
        code = _code_of(language)
        rows = [(fields[0], fields[1], fields[-1]) for path in paths for fields in _tsv(path)]
        sentences = _sample([row for row in rows if not row[2].startswith(WORD_LISTS)])
        if language in ("de", "ja", "pcm", "tl"):
            yield from ((english, "en") for english, *_ in sentences)
        if code:
            yield from ((text, code) for _, text, _ in sentences)
            if len(sentences) < FEW_SENTENCES:
                words = [text for _, text, source in rows if source.startswith(WORD_LISTS)]
                yield from ((text, code) for text in _together(words))


def _sample(rows: list[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """Return a limited number of rows of each source, which is the last field, so that none dominates."""
    by_source: dict[str, list[tuple[str, str, str]]] = defaultdict(list)
    for row in rows:
        by_source[row[2]].append(row)
    rng = np.random.default_rng(0)
    return [own[place] for own in by_source.values() for place in rng.permutation(len(own))[:MOST_OF_SOURCE].tolist()]


def _together(words: list[str]) -> list[str]:
    """Join the entries of word lists, shuffled, to texts of a few words."""
    order = np.random.default_rng(0).permutation(len(words)).tolist()
    shuffled = [words[row] for row in order]
    starts = range(0, min(len(shuffled), FEW_SENTENCES * WORDS_TOGETHER), WORDS_TOGETHER)
    return [" ".join(shuffled[first : first + WORDS_TOGETHER]) for first in starts]


def _posts(data: Path) -> Iterator[tuple[str, str, bool]]:
    """Yield the posts of all datasets, with whether they are for evaluation."""
    for path in sorted((data / "social").glob("*.tsv.gz")):
        rows = [fields for fields in _tsv(path, least=3) if not fields[2].lower().startswith("not-")]  # not-Kannada
        yield from ((text, code, False) for text, _, code in _sample([(row[0], "", row[1]) for row in rows]))
    for path in sorted((data / "labelled").glob("*.tsv.gz")):
        if _stem(path) not in LEFT_OUT_SETS:
            for split in ("train", "dev"):
                rows = [fields for fields in _tsv(path, least=4) if fields[3] == split]
                sample = _sample([(row[0], "", row[1]) for row in rows])
                yield from ((text, code, split == "dev") for text, _, code in sample)
    for part in ("train", "dev"):
        for path in sorted((data / "brighter" / part).glob("*.csv")):
            with open(path, encoding="utf-8-sig", newline="") as file:
                for row in csv.DictReader(file):
                    yield row["text"], BRIGHTER[path.stem], part == "dev"
        for path in sorted((data / "semeval2018-ec").glob(f"*-{part}.txt")):
            lines = path.read_text(encoding="utf-8").splitlines()[1:]
            language = path.stem.split("-")[3].lower()
            yield from ((line.split("\t")[1], language, part == "dev") for line in lines)


def _tsv(path: Path, least: int = 2) -> Iterator[list[str]]:
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        if least > 2:
            next(file)  # a header
        for line in file:
            fields = line.rstrip("\r\n").split("\t")
            if len(fields) >= least:
                yield fields


def _stem(path: Path) -> str:
    return path.name.partition(".")[0]


def _code_of(language: str) -> str | None:
    """Return the code of the class of a row, or None if it is left out."""
    code = language.removesuffix("-Latn")
    return None if language in LEFT_OUT_LANGUAGES else MERGED.get(code, code)


def _key(text: str) -> bytes:
    return hashlib.blake2b(" ".join(clean(text).split()).encode("utf-8", "replace"), digest_size=8).digest()


def _is_held_out(text: str) -> bool:
    return int.from_bytes(_key(text)[:4], "big") < HELD_OUT_SHARE * 2**32
