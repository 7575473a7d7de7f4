"""Texts with a word for their sentiment: text, language and label, tab separated, plain or gzip."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from emoglot.data.cells import check_count, shown, text_cell
from emoglot.data.dataset import NO_LANGUAGE, Dataset
from emoglot.data.lines import check_text, keep_good, numbered_lines, read_packed
from emoglot.errors import DataError
from emoglot.labels import UNKNOWN

HEADER = ("text", "language", "label")
LABELS = ("positive", "negative")
# Any other word, such as an emoji or a number of stars, says nothing that is certain.
TARGETS = {"positive": (1, 0), "negative": (0, 1), "neutral": (0, 0)}
NOT_SAID = (UNKNOWN, UNKNOWN)


def read(path: Path, *, skip_bad: bool = False, language: str | None = None) -> Dataset:
    """Read a file; `language` is for rows that do not tell it."""
    lines = numbered_lines(read_packed(path))
    header = next(lines)[1]
    if tuple(header.split("\t")) != HEADER:
        raise DataError(f"the header of a file of sentiment must be {' '.join(HEADER)}, got {shown(header)} in {path}")

    def parse(line: str) -> tuple[str, str, tuple[int, int]]:
        check_text(line)
        fields = line.split("\t")
        check_count(fields, len(HEADER))
        text, code, label = fields
        return text_cell(text, "text"), code or language or NO_LANGUAGE, TARGETS.get(label, NOT_SAID)

    rows, bad_lines = keep_good(path, lines, parse, skip_bad=skip_bad)
    texts, codes, targets = zip(*rows, strict=True)
    sources = (path.name.partition(".")[0],) * len(texts)
    return Dataset(texts, np.array(targets, dtype=np.int8), LABELS, codes, sources, bad_lines)
