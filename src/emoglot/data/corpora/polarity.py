"""Texts labelled with sentiment: text, language and label, tab separated, plain or gzip."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from emoglot.data.cells import check_count, text_cell
from emoglot.data.dataset import Dataset
from emoglot.data.lines import Given, check_header, keep_good, numbered_lines
from emoglot.labels import UNKNOWN
from emoglot.text.language_names import NO_LANGUAGE

HEADER = ("text", "language", "label")
LABELS = ("positive", "negative")
# Any other value, such as an emoji or a number of stars, is unknown.
TARGETS = {"positive": (1, 0), "negative": (0, 1), "neutral": (0, 0)}
NOT_CONVERTED = (UNKNOWN, UNKNOWN)


def read_polarity(path: Path, given: Given) -> Dataset:
    """Read a file."""
    lines = numbered_lines(path, given.reading)
    check_header(lines, path, HEADER, "a sentiment file")

    def parse(line: str) -> tuple[str, str, tuple[int, int]]:
        fields = line.split("\t")
        check_count(fields, len(HEADER))
        text, code, label = fields
        return text_cell(text, "text"), code or given.language or NO_LANGUAGE, TARGETS.get(label, NOT_CONVERTED)

    rows, bad_lines = keep_good(path, lines, parse, skip_bad=given.skip_bad)
    texts, codes, targets = zip(*rows, strict=True)
    sources = (path.name.partition(".")[0],) * len(texts)
    return Dataset(texts, np.array(targets, dtype=np.int8), LABELS, codes, sources, bad_lines)
