"""Texts labelled with sentiment: text, language and label, tab separated, plain or gzip."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from emoglot.data.cells import check_count, text_cell
from emoglot.data.dataset import Dataset
from emoglot.data.lines import header_of, keep_good, numbered_lines
from emoglot.data.streams import Reading
from emoglot.errors import DataError, shown
from emoglot.labels import UNKNOWN
from emoglot.text.language_names import NO_LANGUAGE

HEADER = ("text", "language", "label")
LABELS = ("positive", "negative")
# Any other value, such as an emoji or a number of stars, is unknown.
TARGETS = {"positive": (1, 0), "negative": (0, 1), "neutral": (0, 0)}
NOT_CONVERTED = (UNKNOWN, UNKNOWN)


def read_polarity(
    path: Path, *, skip_bad: bool = False, language: str | None = None, reading: Reading | None = None
) -> Dataset:
    """Read a file; `language` is for rows without one."""
    lines = numbered_lines(path, reading)
    header = header_of(lines, path)
    if tuple(header.split("\t")) != HEADER:
        raise DataError(f"the header of a sentiment file must be {' '.join(HEADER)}, got {shown(header)} in {path}")

    def parse(line: str) -> tuple[str, str, tuple[int, int]]:
        fields = line.split("\t")
        check_count(fields, len(HEADER))
        text, code, label = fields
        return text_cell(text, "text"), code or language or NO_LANGUAGE, TARGETS.get(label, NOT_CONVERTED)

    rows, bad_lines = keep_good(path, lines, parse, skip_bad=skip_bad)
    texts, codes, targets = zip(*rows, strict=True)
    sources = (path.name.partition(".")[0],) * len(texts)
    return Dataset(texts, np.array(targets, dtype=np.int8), LABELS, codes, sources, bad_lines)
