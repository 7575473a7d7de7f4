"""The corpus of the paper: SemEval-2018 E-c in three languages."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from emoglot.data.dataset import Dataset, concatenate
from emoglot.data.registry import read
from emoglot.errors import DataError
from emoglot.labels import SEMEVAL_LABELS
from emoglot.research.experiments.experiment import LANGUAGES

FOLDERS = (".", "semeval2018-ec")  # the files are in the given folder, or in this one within it
TRAINING, VALIDATION, TEST = "train", "dev", "test-gold"  # as the organisers name the parts


@dataclass(frozen=True)
class Corpus:
    """All rows of the three languages; `test` is None without the test files."""

    training: Dataset
    validation: Dataset
    test: Dataset | None

    @cached_property
    def fingerprint(self) -> str:
        """Return a hash of the rows."""
        parts = [part.fingerprint for part in (self.training, self.validation, self.test) if part]
        return hashlib.sha256(" ".join(parts).encode()).hexdigest()


def read_corpus(folder: Path) -> Corpus:
    """Read the files of a folder; those of the test part must be all present or all absent."""
    places = [folder / name for name in FOLDERS]
    root = next((place for place in places if _file(place, LANGUAGES[0], TRAINING).exists()), places[0])
    training, validation = (_read(root, part) for part in (TRAINING, VALIDATION))
    has_test = any(_file(root, language, TEST).exists() for language in LANGUAGES)
    return Corpus(training, validation, _read(root, TEST) if has_test else None)


def _read(root: Path, part: str) -> Dataset:
    files = [_file(root, language, part) for language in LANGUAGES]
    missing = [path.name for path in files if not path.is_file()]
    if missing:
        raise DataError(f"the data of the paper are files such as {files[0].name}: {root} lacks {', '.join(missing)}")
    return concatenate(_read_file(path, language) for path, language in zip(files, LANGUAGES, strict=True))


def _read_file(path: Path, language: str) -> Dataset:
    data = read(path, format="semeval")
    if data.labels != SEMEVAL_LABELS:
        raise DataError(f"{path} must have the labels {' '.join(SEMEVAL_LABELS)}, got {' '.join(data.labels)}")
    return replace(data, languages=(language,) * len(data))


def _file(root: Path, language: str, part: str) -> Path:
    return root / f"2018-E-c-{language.capitalize()}-{part}.txt"
