"""The BRIGHTER format (SemEval-2025 Task 11, track A): CSV with id, text and one 0/1 column per label."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from emoglot.data.cells import binary_cells, check_count, shown, text_cell
from emoglot.data.csvrecords import csv_records
from emoglot.data.dataset import NO_LANGUAGE, Dataset
from emoglot.data.lines import MalformedLineError, keep_good, read_text
from emoglot.errors import DataError
from emoglot.labels import check_names

SOURCE = "brighter"
HEADER_START = ("id", "text")
# A language without a column for an emotion was not annotated for it, so the header decides which labels there are.
LABELS = ("anger", "disgust", "fear", "joy", "sadness", "surprise")
LANGUAGES = {
    "afr": "af",
    "amh": "am",
    "arq": "arq",
    "ary": "ary",
    "chn": "zh",
    "deu": "de",
    "eng": "en",
    "esp": "es",
    "hau": "ha",
    "hin": "hi",
    "ibo": "ig",
    "ind": "id",
    "jav": "jv",
    "kin": "rw",
    "mar": "mr",
    "orm": "om",
    "pcm": "pcm",
    "ptbr": "pt-BR",
    "ptmz": "pt-MZ",
    "ron": "ro",
    "rus": "ru",
    "som": "so",
    "sun": "su",
    "swa": "sw",
    "swe": "sv",
    "tat": "tt",
    "tir": "ti",
    "ukr": "uk",
    "vmw": "vmw",
    "xho": "xh",
    "yor": "yo",
    "zul": "zu",
}


def read(path: Path, *, skip_bad: bool = False, language: str | None = None) -> Dataset:
    """Read a BRIGHTER file; `language` is for rows of which neither the id nor the file name tells it."""
    records = csv_records(read_text(path), ",")
    labels = _labels_of(records[0][1], path)
    otherwise = LANGUAGES.get(path.stem, language or NO_LANGUAGE)

    def parse(fields: list[str]) -> tuple[str, tuple[int, ...], str]:
        check_count(fields, len(HEADER_START) + len(labels))
        identifier, text, *cells = fields
        code = LANGUAGES.get(identifier.partition("_")[0], otherwise)
        return text_cell(text, "text"), binary_cells(cells, labels), code

    rows, bad_lines = keep_good(path, records[1:], parse, skip_bad=skip_bad)
    texts, targets, languages = zip(*rows, strict=True)
    # Every language has annotators, and so habits, of its own.
    sources = tuple(f"{SOURCE}-{language}" for language in languages)
    return Dataset(texts, np.array(targets, dtype=np.int8), labels, languages, sources, bad_lines)


def _labels_of(header: list[str] | MalformedLineError, path: Path) -> tuple[str, ...]:
    if isinstance(header, MalformedLineError):
        raise DataError(f"the header of {path} is malformed: {header}")
    if tuple(header[:2]) != HEADER_START:
        raise DataError(f"the header of a BRIGHTER file must begin with id and text, got {shown(header)} in {path}")
    unknown = [name for name in header[2:] if name not in LABELS]
    if unknown:
        raise DataError(
            f"a label column of a BRIGHTER file must be one of {', '.join(LABELS)}, got {unknown[0]!r} in {path}"
        )
    return check_names(header[2:])
