"""Cells of a data file: texts, 0/1 labels and how a value is shown in a message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from emoglot.data.lines import MalformedLineError
from emoglot.labels import UNKNOWN

SHOWN_CHARACTERS = 60

# pandas writes 1.0 where a column also has empty cells.
BINARY: Mapping[str, int] = {"0": 0, "1": 1, "0.0": 0, "1.0": 1}


def shown(value: object) -> str:
    """Give a value as it appears in a message, cut to a readable length."""
    text = repr(value)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…"


def text_cell(value: object, column: str) -> str:
    """Take a text, refusing an empty one and anything that is not a string."""
    if value is None or (isinstance(value, str) and not value.strip()):
        raise MalformedLineError(f"the text must not be empty, column {column!r} is")
    if not isinstance(value, str):
        raise MalformedLineError(f"the text must be a string, column {column!r} holds {shown(value)}")
    return value


def unquoted(text: str) -> str:
    """Undo the quoting of CSV; quotes that are not doubled inside belong to what was said."""
    inner = text[1:-1]
    quoted = len(text) > 1 and text[0] == text[-1] == '"' and '"' not in inner.replace('""', "")
    return inner.replace('""', '"') if quoted else text


def binary_cells(cells: Sequence[str], labels: Sequence[str], unknown: str | None = None) -> tuple[int, ...]:
    """Take one 0 or 1 per label, or UNKNOWN where the cell is the word for it."""
    values = []
    for cell, label in zip(cells, labels, strict=True):
        if cell == unknown:
            values.append(UNKNOWN)
        elif cell in BINARY:
            values.append(BINARY[cell])
        else:
            raise MalformedLineError(f"label column {label!r} must hold 0 or 1, got {shown(cell)}")
    return tuple(values)


def check_count(fields: Sequence[str], expected: int) -> None:
    """Refuse a line with too few or too many fields."""
    if len(fields) != expected:
        raise MalformedLineError(f"a line must have {expected} fields, got {len(fields)}")
