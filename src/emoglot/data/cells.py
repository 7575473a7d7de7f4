"""Cells of a data file: texts and 0/1 labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from emoglot.data.lines import MalformedLineError
from emoglot.errors import shown
from emoglot.labels import UNKNOWN

# pandas writes 1.0 if a column also has empty cells.
BINARY: Mapping[str, int] = {"0": 0, "1": 1, "0.0": 0, "1.0": 1}


def text_cell(value: object, column: str) -> str:
    """Return a text; raise MalformedLineError if it is empty or not a string."""
    if value is None or (isinstance(value, str) and not value.strip()):
        raise MalformedLineError(f"the text must not be empty, column {column!r} is")
    if not isinstance(value, str):
        raise MalformedLineError(f"the text must be a string, got {shown(value)} in column {column!r}")
    return value


def unquoted(text: str) -> str:
    """Remove the quoting of CSV; quotes inside that are not doubled belong to the text."""
    inner = text[1:-1]
    quoted = len(text) > 1 and text[0] == text[-1] == '"' and '"' not in inner.replace('""', "")
    return inner.replace('""', '"') if quoted else text


def binary_cells(cells: Sequence[str], labels: Sequence[str], unknown: str | None = None) -> tuple[int, ...]:
    """Return 0 or 1 for each label, or UNKNOWN if the cell states that."""
    values = []
    for cell, label in zip(cells, labels, strict=True):
        if cell == unknown:
            values.append(UNKNOWN)
        elif cell in BINARY:
            values.append(BINARY[cell])
        else:
            raise MalformedLineError(f"label column {label!r} must contain 0 or 1, got {shown(cell)}")
    return tuple(values)


def check_count(fields: Sequence[str], expected: int) -> None:
    """Raise MalformedLineError for a line with too few or too many fields."""
    if len(fields) != expected:
        raise MalformedLineError(f"a line must have {expected} fields, got {len(fields)}")
