"""Annotations of a table: one 0/1 column per label, or one column of label names."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from emoglot.data.cells import BINARY
from emoglot.data.lines import MalformedLineError, check_text
from emoglot.data.records import Record
from emoglot.errors import DataError, shown
from emoglot.labels import UNKNOWN, Targets, label_names, to_targets

BINARY_WORDS = {**BINARY, "true": 1, "false": 0, "": UNKNOWN}
SEPARATOR = re.compile(r"[,;|]")
NUMBER = re.compile(r"\d+(\.\d*)?")


class Annotation(Protocol):
    """Finds the labels of a record, and converts those of all records to targets."""

    def cell(self, record: Record) -> Any:
        """Return what one record states about its labels."""

    def targets(self, cells: Sequence[Any]) -> tuple[tuple[str, ...], Targets]:
        """Return the label set and the targets of all records."""


@dataclass(frozen=True)
class BinaryColumns:
    """One column per label with 0, 1 or nothing for unknown."""

    labels: tuple[str, ...]

    def cell(self, record: Record) -> tuple[int, ...]:
        """Return one value per label."""
        return tuple(_binary(record.get(label), label) for label in self.labels)

    def targets(self, cells: Sequence[tuple[int, ...]]) -> tuple[tuple[str, ...], Targets]:
        """Stack the rows."""
        return self.labels, np.array(cells, dtype=np.int8)


@dataclass(frozen=True)
class NamesColumn:
    """One column with the names of the labels that apply; `allowed` restricts the names."""

    column: str
    allowed: tuple[str, ...] | None = None
    known: tuple[str, ...] = ()  # labels that annotators could choose: one that never occurs is absent, not unknown
    is_guess: bool = False  # the user did not state that this column has names

    def cell(self, record: Record) -> tuple[str, ...] | None:
        """Return the names: an empty tuple for an empty cell, None if there is no cell (not annotated)."""
        value = record.get(self.column)
        if value is None:
            return None
        names = tuple(_names(value, self.column))
        outside = [name for name in names if self.allowed is not None and name not in self.allowed]
        if outside:
            raise MalformedLineError(
                f"column {self.column!r} must contain only {', '.join(self.allowed or ())}, got {shown(outside[0])}"
            )
        return names

    def targets(self, cells: Sequence[tuple[str, ...] | None]) -> tuple[tuple[str, ...], Targets]:
        """Return one column per name: the allowed names, by default those that occur."""
        rows = [cell or () for cell in cells]
        if self.is_guess and any(rows) and all(NUMBER.fullmatch(name) for row in rows for name in row):
            raise DataError(
                f"column {self.column!r} must contain names, got only numbers: if it is a label, list all labels "
                "with --label-columns; if the numbers are names, use --labels-column"
            )
        labels = self.allowed or label_names([*rows, self.known])
        if not labels:
            raise DataError(f"a dataset needs at least one label, column {self.column!r} has no name in any row")
        targets = to_targets(rows, labels)
        targets[[cell is None for cell in cells]] = UNKNOWN
        return labels, targets


def _binary(value: object, column: str) -> int:
    if value is None or (isinstance(value, float) and math.isnan(value)):  # pandas writes NaN for a missing value
        return UNKNOWN
    if isinstance(value, (int, float)) and value in (0, 1):
        return int(value)
    if isinstance(value, str) and value.strip().lower() in BINARY_WORDS:
        return BINARY_WORDS[value.strip().lower()]
    raise MalformedLineError(
        f"label column {column!r} must contain 0, 1, true, false or nothing, got {shown(value)} "
        "(if it is not a label, list the labels with --label-columns; for a column of names, use --labels-column)"
    )


def _names(value: object, column: str) -> list[str]:
    names = _split(value) if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(name, str) and name.strip() for name in names):
        raise MalformedLineError(
            f"column {column!r} must contain label names, as a list or separated by , ; or |, got {shown(value)} "
            "(if it is a label with 0 and 1, list all labels with --label-columns)"
        )
    for name in names:
        check_text(name)
    return [name.strip() for name in names]


def _split(value: str) -> object:
    # A list written into a CSV cell must not become a label named '["joy"'.
    if value.lstrip().startswith("["):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return None
    return [name for name in SEPARATOR.split(value) if name.strip()]
