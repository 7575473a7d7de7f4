"""Writes a table of short sentences with a certain emotion: stated, denied, asked about, or absent.

    python recipes/sentences.py DATA build/sentences.csv build/everyday

In tweets, "sad" nearly always means sadness; hardly any tweet says "I am not sad". Everyday sentences do, in many
languages: if the English of a translation explicitly states, denies or asks about an emotion, so does the translation.
So does an idiom such as "fed up with", whose translations hardly ever have the same words.
Wikipedia, interface strings and questions of fact have no emotion. `contrasts.tsv` was written by hand.
`annotations.tsv` has the labels of English sentences that were read one by one; their translations get the same.
`posts.tsv` has those of posts and reviews in their own languages. Neither contains the texts, which have terms of their
own, but their hashes.
"""

from __future__ import annotations

import csv
import hashlib
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

import numpy as np

from emoglot.data.dataset import Dataset
from emoglot.data.parallel import Parallel, read_parallel
from emoglot.data.registry import read
from emoglot.labels import SEMEVAL_LABELS, UNKNOWN
from emoglot.training.project import write_csv

CONTRASTS = Path(__file__).with_name("contrasts.tsv")
EXPRESSIONS = Path(__file__).with_name("expressions.tsv")
ANNOTATIONS = Path(__file__).with_name("annotations.tsv")
POSTS = Path(__file__).with_name("posts.tsv")
TESTED = ("plain_sentences.tsv", "idioms.tsv", "situations.tsv")  # in tests/
LABELS = (*SEMEVAL_LABELS, "positive", "negative")
POSITIVE = ("joy", "love", "optimism", "trust")
NEGATIVE = ("anger", "disgust", "fear", "pessimism", "sadness")

# The words that state an emotion after "I am"; the other labels that a reader may or may not see beside it.
WORDS = {
    "anger": "angry|mad|furious|annoyed|irritated|outraged",
    "disgust": "disgusted",
    "fear": "afraid|scared|frightened|terrified|worried|nervous",
    "joy": "happy|glad|delighted|overjoyed|excited|thrilled",
    "love": "in love",
    "optimism": "optimistic|hopeful",
    "pessimism": "pessimistic|hopeless",
    "sadness": "sad|unhappy|depressed|miserable|heartbroken|lonely|sorrowful",
    "surprise": "surprised|shocked|amazed|astonished|stunned",
}
BESIDE = {
    "anger": ("disgust",),
    "disgust": ("anger",),
    "fear": ("pessimism",),
    "joy": ("love", "optimism", "anticipation"),
    "love": ("joy",),
    "optimism": ("anticipation", "joy", "trust"),
    "pessimism": ("fear", "sadness"),
    "sadness": ("pessimism",),
    "surprise": (*POSITIVE, *NEGATIVE, "positive", "negative"),
}

Row = tuple[str, str, list[int]]  # language, text and a target for each label
Reading = tuple[str, list[int] | None]  # the kind of a sentence, and its labels if they are certain

_WHO = r"(?:I|You|He|She|We|They|Tom|Mary|John|Sami|Layla|Ziri|Everyone|Everybody|The \w+|My \w+)"
_IS = r"(?:'m|'s|'re| am| is| are| was| were| feel| feels| felt| look| looks| looked| seem| seems| seemed| got| became)"
_IS_NOT = (
    r"(?:(?:'m|'s|'re| am| is| are| was| were) (?:not|never|no longer)| (?:is|are|was|were)n't"
    r"| (?:do|does|did)n't (?:feel|look|seem|get)| (?:have|has|had) never been)"
)
_VERY = (
    r"(?: (?:very|so|really|extremely|quite|too|a little|a bit|terribly|still|also|both|absolutely|pretty|rather"
    r"|that|even|at all|particularly|exactly|in the least|anymore|all that|truly))*"
)
# "I'm afraid that" and "I'm afraid so" are polite, "mad about" is fond.
_END = r"(?! that\b| so\b| not\b| we\b| I\b| you\b| he\b| she\b| it\b| there\b| about\b|-)\b"
_WORD = "|".join(f"(?P<{emotion}>{words})" for emotion, words in WORDS.items())
ANY_WORD = re.compile(rf"\b(?:{'|'.join(WORDS.values())})\b")
STATEMENT = re.compile(f"{_WHO}{_IS}{_VERY} (?:{_WORD}){_END}")
DENIAL = re.compile(f"{_WHO}{_IS_NOT}{_VERY} (?:{_WORD}){_END}")
QUESTION = re.compile(rf"(?:Are|Is|Was|Were) {_WHO}{_VERY} (?:{_WORD})\b[^?]*\?$", re.IGNORECASE)
# Words that may reverse the meaning of a sentence, or add a second emotion.
TURNS = re.compile(
    r"\b(?:not|never|no|nobody|nothing|without|if|unless|but|until|used to|would|might|only|as)\b|n't\b|\?"
)

# "Never happy" denies joy, "never so happy" states it.
SUPERLATIVE = re.compile(
    rf"{_WHO}(?:'ve|'s|'d| have| has| had| was| were)? never (?:been |felt )?(?:so|this) (?:{_WORD})\b"
)

# What stands for these names in expressions.tsv.
NAMED = {
    "{WE}": r"(?:I|We|I'll|We'll|I'm going to|We're going to)(?: (?:really|still|do|all|already|just))*",
    "{PERSON}": r"(?:you|him|her|them|Tom|Mary|Sami|Layla|Ziri|my \w+)",
    "{IT}": r"(?:It|That|This|Tom|Mary|The \w+|Your \w+|His \w+|Her \w+)",
    "{WHO_IS}": f"{_WHO}{_IS}{_VERY}",
}
# Questions of fact.
INQUIRY = re.compile(r"(?:Where|When|What time|How much|How many|Which|How long|How far|Is there|Do you have)\b.*\?$")

# Sources whose texts have no emotion.
PLAIN_SOURCES = ("nllb_seed", "ui_", "xsid", "afriqa", "tico19", "indian_wiki")
PLAIN_EACH = 80  # of a language
SAID_EACH = 200  # statements of a language; denials are rarer, and all are used
MOST = {"plain": PLAIN_EACH, "inquiry": PLAIN_EACH, "statement": SAID_EACH, "expression": 60}  # of a language
ENGLISH_EACH = 1500
# Annotated sentences of a language; three quarters of them have a label, if there are as many.
ANNOTATED_EACH = 900
ANNOTATED_ENGLISH = 16_000
LABELLED_SHARE = 0.75
# Of 32 annotated texts one is measured and another chooses thresholds, in all languages; the others are trained on.
TRAINED = "trained"
PARTS = {0: "measured", 16: "thresholds"}
PARTS_OF = 32
CONTRAST_REPEATS = 3  # they are few, and each addresses an error of a model
POST_REPEATS = 2
LONGEST = 160  # characters


def main(data: Path, out: Path, folder: Path) -> None:
    """Collect all kinds and write them, and in a folder those annotated texts that choose thresholds."""
    # The sentences of the evaluation are not used for training.
    tests = Path(__file__).parents[1] / "tests"
    tested = {bare(row["text"]) for name in TESTED for row in read_table(tests / name)}
    dev = [*(data / "brighter/dev").glob("*.csv"), *(data / "semeval2018-ec").glob("*-dev.txt")]
    tested |= {bare(text) for path in dev for text in read(path).texts}
    # The held-out English sentences measure how languages agree.
    parallel, _ = read_parallel([data / "parallel/train", data / "parallel/more"], skip_bad=True).split()
    rows = [
        *CONTRAST_REPEATS * list(written()),
        *POST_REPEATS * list(posts(data, TRAINED)),
        *sampled(rows_of(*annotated(parallel, TRAINED))),
        *found(parallel),
    ]
    write([row for row in rows if bare(row[1]) not in tested], out)
    choosing = list(rows_of(*annotated(parallel, "thresholds")))
    folder.mkdir(exist_ok=True)
    write([row for row in choosing if row[0] == "en"], folder / "english.csv")
    write([row for row in choosing if row[0] != "en"], folder / "translations.csv")
    write(list(posts(data, "thresholds")), folder / "posts.csv")


def write(rows: Sequence[Row], out: Path) -> None:
    """Write a table for training."""
    languages, texts, targets = zip(*rows, strict=True)
    data = Dataset(texts, np.array(targets, dtype=np.int8), LABELS, languages, ("sentences",) * len(rows))
    write_csv(data, out)
    print(f"{len(rows)} sentences in {len(set(languages))} languages: {out}")


def bare(text: str) -> str:
    """Return a text without case, punctuation and spacing."""
    return "".join(filter(str.isalnum, text.casefold()))


def written() -> Iterator[Row]:
    """Read the sentences that were written by hand; `unsure` are labels that a reader may or may not see."""
    for row in read_table(CONTRASTS):
        yield row["language"], row["text"], targets_of(row["labels"].split(), row["unsure"].split())


def read_table(path: Path) -> list[dict[str, str]]:
    """Read a table with tabs, in which quotation marks are letters like others."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def sampled(rows: Iterable[Row]) -> Iterator[Row]:
    """Draw annotated sentences of each language."""
    most = {"en": ANNOTATED_ENGLISH}
    taken: Counter[tuple[str, bool]] = Counter()
    every = list(rows)
    for number in np.random.default_rng(0).permutation(len(every)).tolist():
        language, _, targets = every[number]
        kind = language, 1 in targets
        taken[kind] += 1
        if taken[kind] <= most.get(language, ANNOTATED_EACH) * (LABELLED_SHARE if kind[1] else 1 - LABELLED_SHARE):
            yield every[number]


def rows_of(pairs: Parallel, targets: Sequence[list[int]]) -> Iterator[Row]:
    """Return the rows of translations, then those of their English, which has these targets."""
    places = pairs.english_of.tolist()
    yield from zip(pairs.languages, pairs.texts, (targets[place] for place in places), strict=True)
    yield from zip(["en"] * len(targets), pairs.english, targets, strict=True)


def annotated(parallel: Parallel, part: str) -> tuple[Parallel, list[list[int]]]:
    """Return the translations of the annotated sentences of a part, and the targets of each English sentence.

    Sentences that `found` finds are trained on, so they are in no other part.
    """
    labels = labels_of(ANNOTATIONS, part)
    is_own = np.array([hash_of(text) in labels for text in parallel.english])
    rows = np.flatnonzero(is_own[parallel.english_of])
    if part != TRAINED:
        rows = np.array([row for row in rows.tolist() if read_pair(parallel, row)[1] is None], dtype=np.int64)
    pairs = parallel.select(rows)
    return pairs, [labels[hash_of(text)] for text in pairs.english]


def posts(data: Path, part: str) -> Iterator[Row]:
    """Find the annotated posts of a part; a text that several sets have is found once."""
    labels = labels_of(POSTS, part)
    for path in sorted((data / "social").glob("*.tsv.gz")):
        rows = read(path, format="polarity")
        for language, text in zip(rows.languages, rows.texts, strict=True):
            if targets := labels.pop(hash_of(text), None):
                yield language, text, targets


def labels_of(path: Path, part: str) -> dict[str, list[int]]:
    """Return the targets of the annotated texts of a part, by their hashes."""
    return {
        name: targets_of(row["labels"].split(), row["unsure"].split())
        for row in read_table(path)
        if PARTS.get(int(name := row["text"], 16) % PARTS_OF, TRAINED) == part
    }


def hash_of(text: str) -> str:
    """Return the name of a text in `annotations.tsv` and `posts.tsv`."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def found(parallel: Parallel) -> Iterator[Row]:
    """Find sentences in the translations by their English."""
    taken: Counter[tuple[str, str]] = Counter()
    english_seen: set[str] = set()
    order = np.random.default_rng(0).permutation(len(parallel)).tolist()
    for row in order:
        english = parallel.english[parallel.english_of[row]]
        kind, targets = read_pair(parallel, row)
        if targets is None or len(english) > LONGEST or len(english.split()) < 2:
            continue
        for language, text in ((parallel.languages[row], parallel.texts[row]), ("en", english)):
            if language == "en" and (text in english_seen or english_seen.add(text)):  # type: ignore[func-returns-value]
                continue
            most = MOST.get(kind.partition(" ")[0], SAID_EACH * 2)
            if taken[language, kind] < (ENGLISH_EACH if language == "en" and kind != "plain" else most):
                taken[language, kind] += 1
                yield language, text, targets


def read_pair(parallel: Parallel, row: int) -> Reading:
    """Return the kind and labels of a pair, by its English or its source."""
    source = parallel.sources[row]
    return read_english(parallel.english[parallel.english_of[row]]) if source == "tatoeba" else read_source(source)


def read_source(source: str) -> Reading:
    """Return the kind and labels of all texts of a source."""
    return "plain", targets_of((), ()) if source.startswith(PLAIN_SOURCES) else None


def read_english(text: str) -> Reading:
    """Return whether an English sentence states, denies or asks about an emotion, and its labels."""
    for reader in (read_superlative, read_question, read_expression, read_statement):
        if (found := reader(text)) is not None:
            return found
    return "", None


def read_superlative(text: str) -> Reading | None:
    """Read "never so happy"."""
    said = SUPERLATIVE.match(text)
    return ("statement", stated(str(said.lastgroup))) if said else None


def read_question(text: str) -> Reading | None:
    """Read a question about an emotion, or one of fact."""
    nothing = targets_of((), ("positive", "negative"))
    if QUESTION.match(text):
        return "question", nothing
    return ("inquiry", nothing) if INQUIRY.match(text) and not ANY_WORD.search(text) else None


def read_expression(text: str) -> Reading | None:
    """Read one of expressions.tsv; nothing else in the sentence may change its meaning."""
    for number, (pattern, targets) in enumerate(expressions()):
        if said := pattern.search(text):
            rest = text[: said.start()] + text[said.end() :]
            return f"expression {number}", None if TURNS.search(rest) or ANY_WORD.search(rest) else targets
    return None


def read_statement(text: str) -> Reading | None:
    """Read a statement or a denial of one emotion; of two, one may be denied and the other not."""
    if len(ANY_WORD.findall(text)) != 1:
        return None
    if (said := DENIAL.match(text)) and not TURNS.search(text, said.end()):
        return "denial", denied(str(said.lastgroup))
    if (said := STATEMENT.match(text)) and not TURNS.search(text):
        return "statement", stated(str(said.lastgroup))
    return None


@cache
def expressions() -> list[tuple[re.Pattern[str], list[int]]]:
    """Read the English expressions with their labels, and labels that a reader may or may not see beside them."""
    found = []
    for row in read_table(EXPRESSIONS):
        pattern = row["english"]
        for name, meaning in NAMED.items():
            pattern = pattern.replace(name, meaning)
        found.append((re.compile(pattern), targets_of(row["labels"].split(), row["unsure"].split())))
    return found


def stated(emotion: str) -> list[int]:
    """Return the labels of a statement."""
    sentiment = ("positive",) if emotion in POSITIVE else ("negative",) if emotion in NEGATIVE else ()
    return targets_of((emotion, *sentiment), BESIDE[emotion])


def denied(emotion: str) -> list[int]:
    """Return the labels of a denial: "not sad" may be positive, "not happy" is rather negative."""
    if emotion in POSITIVE:
        return targets_of((), (*NEGATIVE, "negative"))
    return targets_of((), (*POSITIVE, "positive", *(("negative",) if emotion == "surprise" else ())))


def targets_of(labels: tuple[str, ...] | list[str], unsure: tuple[str, ...] | list[str]) -> list[int]:
    """Return 1, 0 or unknown for every label."""
    return [1 if name in labels else UNKNOWN if name in unsure else 0 for name in LABELS]


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
