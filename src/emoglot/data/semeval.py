"""The SemEval-2018 E-c format: ID, tweet and one 0/1 column per label, tab separated and never quoted."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from emoglot.data.cells import binary_cells, check_count, shown, text_cell
from emoglot.data.dataset import NO_LANGUAGE, Dataset
from emoglot.data.lines import check_text, keep_good, numbered_lines, read_text
from emoglot.errors import DataError
from emoglot.labels import SEMEVAL_LABELS, check_names

SOURCE = "semeval2018-ec"
HEADER_START = ("ID", "Tweet")
NO_GOLD = "NONE"
LANGUAGE_IN_ID = re.compile(r"\d{4}-([A-Z][a-z])-")


def read(path: Path, *, skip_bad: bool = False, language: str | None = None) -> Dataset:
    """Read an E-c file; `language` is for rows whose ID does not tell it."""
    lines = numbered_lines(read_text(path))
    labels = _labels_of(next(lines)[1], path)

    def parse(line: str) -> tuple[str, tuple[int, ...], str]:
        check_text(line)
        fields = line.split("\t")
        check_count(fields, len(HEADER_START) + len(labels))
        identifier, tweet, *cells = fields
        found = LANGUAGE_IN_ID.match(identifier)
        code = found.group(1).lower() if found else language or NO_LANGUAGE
        return text_cell(tweet, "Tweet"), binary_cells(cells, labels, unknown=NO_GOLD), code

    rows, bad_lines = keep_good(path, lines, parse, skip_bad=skip_bad)
    texts, targets, languages = zip(*rows, strict=True)
    return Dataset(texts, np.array(targets, dtype=np.int8), labels, languages, (SOURCE,) * len(texts), bad_lines)


def _labels_of(header: str, path: Path) -> tuple[str, ...]:
    columns = header.split("\t")
    if tuple(columns[:2]) != HEADER_START:
        raise DataError(f"the header of an E-c file must begin with ID and Tweet, got {shown(header)} in {path}")
    unknown = [name for name in columns[2:] if name not in SEMEVAL_LABELS]
    if unknown:
        raise DataError(
            f"a label column of an E-c file must be one of {', '.join(SEMEVAL_LABELS)}, got {unknown[0]!r} in {path}"
        )
    return check_names(columns[2:])
