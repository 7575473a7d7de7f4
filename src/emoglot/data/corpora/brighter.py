"""The BRIGHTER format (SemEval-2025 Task 11, track A): CSV with id, text and one 0/1 column per label."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from emoglot.data.cells import binary_cells, text_cell
from emoglot.data.columns import label_columns
from emoglot.data.dataset import Dataset
from emoglot.data.formats import CSV
from emoglot.data.lines import Given, keep_good
from emoglot.data.records import Record
from emoglot.data.tables import read_table
from emoglot.text.language_names import NO_LANGUAGE

SOURCE = "brighter"
HEADER_START = ("id", "text")
# A language without a column for an emotion was not annotated for it, so the header determines the labels.
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


def read_brighter(path: Path, given: Given) -> Dataset:
    """Read a BRIGHTER file; the id of a row or the name of the file states the language."""
    table = read_table(path, replace(given.reading, kind=CSV, delimiter=","))
    labels = label_columns(table.columns, HEADER_START, LABELS, f"the BRIGHTER file {path}")
    otherwise = LANGUAGES.get(path.stem, given.language or NO_LANGUAGE)

    def parse(record: Record) -> tuple[str, tuple[int, ...], str]:
        identifier, text, *cells = record.values()
        code = LANGUAGES.get(identifier.partition("_")[0], otherwise)
        return text_cell(text, "text"), binary_cells(cells, labels), code

    rows, bad_lines = keep_good(path, table.records, parse, skip_bad=given.skip_bad)
    texts, targets, languages = zip(*rows, strict=True)
    # Every language has its own annotators, and therefore its own bias.
    sources = tuple(f"{SOURCE}-{language}" for language in languages)
    return Dataset(texts, np.array(targets, dtype=np.int8), labels, languages, sources, bad_lines)
