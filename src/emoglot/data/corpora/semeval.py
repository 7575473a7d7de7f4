"""The SemEval-2018 E-c format: ID, tweet and one 0/1 column per label, tab separated and never quoted."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from emoglot.data.cells import binary_cells, check_count, text_cell
from emoglot.data.columns import label_columns
from emoglot.data.dataset import Dataset
from emoglot.data.lines import Given, header_of, keep_good, numbered_lines
from emoglot.labels import SEMEVAL_LABELS
from emoglot.text.language_names import NO_LANGUAGE

SOURCE = "semeval2018-ec"
HEADER_START = ("ID", "Tweet")
NO_GOLD = "NONE"
LANGUAGE_IN_ID = re.compile(r"\d{4}-([A-Z][a-z])-")


def read_semeval(path: Path, given: Given) -> Dataset:
    """Read an E-c file; the ID of a row states its language."""
    lines = numbered_lines(path, given.reading)
    labels = label_columns(header_of(lines, path).split("\t"), HEADER_START, SEMEVAL_LABELS, f"the E-c file {path}")

    def parse(line: str) -> tuple[str, tuple[int, ...], str]:
        fields = line.split("\t")
        check_count(fields, len(HEADER_START) + len(labels))
        identifier, tweet, *cells = fields
        found = LANGUAGE_IN_ID.match(identifier)
        code = found.group(1).lower() if found else given.language or NO_LANGUAGE
        return text_cell(tweet, "Tweet"), binary_cells(cells, labels, unknown=NO_GOLD), code

    rows, bad_lines = keep_good(path, lines, parse, skip_bad=given.skip_bad)
    texts, targets, languages = zip(*rows, strict=True)
    return Dataset(texts, np.array(targets, dtype=np.int8), labels, languages, (SOURCE,) * len(texts), bad_lines)
