"""Parallel text: English sentences and their translations, one file per language."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from emoglot.data.lines import BadLine, MalformedLineError, read_lines
from emoglot.errors import DataError, shown

SUFFIXES = (".tsv.gz", ".tsv")
WRITTEN = "written"  # the source of texts that are paired with themselves
UNNAMED = "unnamed"  # the source of lines without one
# One English sentence in 32 is held out from training in all languages, to measure how well languages agree.
HELD_OUT_SHARE = 1 / 32


@dataclass(frozen=True, eq=False, repr=False)
class Parallel:
    """Pairs of a text and its English; an English sentence with several translations is stored once."""

    english: tuple[str, ...]
    texts: tuple[str, ...]
    english_of: NDArray[np.int64]  # (texts,): the index of the English sentence of each text
    languages: tuple[str, ...]
    sources: tuple[str, ...]
    bad_lines: tuple[BadLine, ...] = ()

    def __len__(self) -> int:
        return len(self.texts)

    def select(self, rows: NDArray[np.int64]) -> Parallel:
        """Return these pairs, with only the English sentences that they translate."""
        used, english_of = np.unique(self.english_of[rows], return_inverse=True)
        order = rows.tolist()
        return Parallel(
            tuple(self.english[index] for index in used.tolist()),
            tuple(self.texts[row] for row in order),
            english_of.astype(np.int64),
            tuple(self.languages[row] for row in order),
            tuple(self.sources[row] for row in order),
        )

    def draw(self, per_language: int) -> Parallel:
        """Return at most this many random pairs of each language, the same ones every time."""
        languages = np.array(self.languages)
        order = np.random.default_rng(0).permutation(len(self))
        drawn = [order[languages[order] == language][:per_language] for language in np.unique(languages)]
        return self.select(np.concatenate(drawn)) if drawn else self

    def split(self) -> tuple[Parallel, Parallel]:
        """Return the training pairs and the held-out pairs; no English sentence is in both."""
        is_held_out = np.array([_is_held_out(text) for text in self.english], dtype=bool)[self.english_of]
        return self.select(np.flatnonzero(~is_held_out)), self.select(np.flatnonzero(is_held_out))


def read_parallel(paths: Iterable[Path], *, skip_bad: bool = False) -> Parallel:
    """Read files named by language, or folders of them: English, text and optionally source, tab separated."""
    english: dict[str, int] = {}
    texts, english_of, languages, sources, bad_lines = [], [], [], [], []
    for path in [file for given in paths for file in _files(given)]:
        language = path.name.partition(".")[0]
        for number, line in read_lines(path):
            try:
                fields = _fields(line)
            except MalformedLineError as error:
                bad = BadLine(str(path), number, str(error))
                if not skip_bad:
                    raise DataError(f"{bad}: correct it, or drop such lines with --skip-bad") from None
                bad_lines.append(bad)
                continue
            english_of.append(english.setdefault(fields[0], len(english)))
            texts.append(fields[1])
            languages.append(language)
            sources.append(fields[2] if len(fields) == 3 else UNNAMED)
    if not texts:
        raise DataError("no pair of sentences was found: each line must have the form English, tab, translation")
    english_array = np.array(english_of, dtype=np.int64)
    return Parallel(tuple(english), tuple(texts), english_array, tuple(languages), tuple(sources), tuple(bad_lines))


def as_they_are(texts: Iterable[str], languages: Iterable[str]) -> Parallel:
    """Pair every text with itself."""
    language_of = dict(zip(texts, languages, strict=True))
    own, count = tuple(language_of), len(language_of)
    return Parallel(own, own, np.arange(count), tuple(language_of.values()), (WRITTEN,) * count)


def join(parts: Iterable[Parallel]) -> Parallel:
    """Concatenate collections."""
    english: dict[str, int] = {}
    listed = list(parts)
    english_of = [
        np.array([english.setdefault(text, len(english)) for text in part.english], dtype=np.int64)[part.english_of]
        for part in listed
    ]
    return Parallel(
        tuple(english),
        tuple(text for part in listed for text in part.texts),
        np.concatenate(english_of),
        tuple(language for part in listed for language in part.languages),
        tuple(source for part in listed for source in part.sources),
        tuple(bad for part in listed for bad in part.bad_lines),
    )


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.name.endswith(SUFFIXES))
        if not files:
            raise DataError(f"{path} has no file of translations: name them LANGUAGE.tsv or LANGUAGE.tsv.gz")
        return files
    if not path.is_file():
        raise DataError(f"there is no file of translations {path}")
    return [path]


def _fields(line: str | MalformedLineError) -> list[str]:
    if isinstance(line, MalformedLineError):
        raise line
    fields = line.split("\t")
    if not (2 <= len(fields) <= 3 and all(field.strip() for field in fields)):
        raise MalformedLineError(f"a line must have English, text and optionally a source, got {shown(line)}")
    return fields


def _is_held_out(english: str) -> bool:
    """Return whether a sentence is held out, which depends on the sentence alone, not on files or languages."""
    digest = hashlib.blake2b(english.encode("utf-8", "surrogatepass"), digest_size=4).digest()
    return int.from_bytes(digest, "big") < HELD_OUT_SHARE * 2**32
