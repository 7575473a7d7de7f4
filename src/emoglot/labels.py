"""Label names, and their conversion between sets of names and arrays of 1, 0 and unknown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from emoglot.errors import DataError

Targets: TypeAlias = NDArray[np.int8]  # (rows, labels): 1, 0 or UNKNOWN

# A label that a dataset does not annotate is unknown, not absent.
UNKNOWN = -1

# In the order of the SemEval-2018 E-c files; the eight of Plutchik's wheel are a subset.
SEMEVAL_LABELS = (
    "anger",
    "anticipation",
    "disgust",
    "fear",
    "joy",
    "love",
    "optimism",
    "pessimism",
    "sadness",
    "surprise",
    "trust",
)
PLUTCHIK_LABELS = ("anger", "anticipation", "disgust", "fear", "joy", "sadness", "surprise", "trust")
_AXES = (("anger", "fear"), ("anticipation", "surprise"), ("disgust", "trust"), ("joy", "sadness"))
OPPOSITES = {one: other for axis in _AXES for one, other in (axis, axis[::-1])}
# Combinations of two primary emotions.
DYADS = {"love": ("joy", "trust"), "optimism": ("anticipation", "joy"), "pessimism": ("sadness", "anticipation")}


def check_names(names: Iterable[str]) -> tuple[str, ...]:
    """Return the label names as a tuple; raise DataError if one is empty or repeated, or if there are none."""
    if isinstance(names, str):
        raise DataError(f"a label set must be a list of names, got the string {names!r}")
    labels = tuple(names)
    if not labels:
        raise DataError("a label set needs at least one label, got none: list the labels, or use labelled rows")
    for name in labels:
        if not isinstance(name, str) or not name.strip():
            raise DataError(f"a label must be a non-empty string, got {name!r}")
        if not is_unicode(name):
            raise DataError(f"a label must be valid Unicode, got {name!r}")
    repeated = sorted(name for name, count in Counter(labels).items() if count > 1)
    if repeated:
        raise DataError(f"labels must be unique, got {repeated[0]!r} more than once")
    return labels


def is_unicode(text: str) -> bool:
    """Return whether a text can be encoded as UTF-8: a lone surrogate cannot."""
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)


def to_targets(rows: Any, labels: Sequence[str]) -> Targets:
    """Convert sets of names, or an array of 0, 1 and NaN (unknown), to targets with one column per label."""
    if is_array_like(rows):
        return _targets_from_array(rows, len(labels))
    return _targets_from_names(_as_rows(rows), labels)


def is_array_like(rows: Any) -> bool:
    """Return whether labels are numbers: an array, or lists of numbers."""
    if isinstance(rows, np.ndarray):
        return True
    return isinstance(rows, (list, tuple)) and len(rows) > 0 and all(_is_numeric(row) for row in rows)


def label_names(rows: Iterable[Any]) -> tuple[str, ...]:
    """Collect the names used in rows of names: the E-c order if they are all among its labels, else sorted."""
    used: set[str] = set()
    for index, row in enumerate(_as_rows(rows)):
        used.update(_names_of(row, index))
    if used <= set(SEMEVAL_LABELS):
        return tuple(name for name in SEMEVAL_LABELS if name in used)
    return tuple(sorted(used))


def names_where(chosen: NDArray[np.bool_], labels: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the labels whose entry is true."""
    return tuple(name for name, is_chosen in zip(labels, chosen, strict=True) if is_chosen)


def _as_rows(rows: Any) -> list[Any]:
    if isinstance(rows, str) or not isinstance(rows, Iterable):
        raise DataError(f"labels must be a list with one set of names per text, got {rows!r}")
    return list(rows)


def _is_numeric(row: Any) -> bool:
    is_list = isinstance(row, (list, tuple, np.ndarray)) and len(row) > 0
    return is_list and all(isinstance(value, (int, float, np.number, np.bool_)) for value in row)


def _targets_from_array(rows: Any, width: int) -> Targets:
    try:
        array = np.asarray(rows, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"an array of labels must contain numbers, the same number in each row: {error}") from error
    if array.ndim != 2 or array.shape[1] != width:
        raise DataError(f"a label array must have the shape (rows, {width}), one column per label, got {array.shape}")
    unknown = np.isnan(array)
    wrong = ~unknown & (array != 0) & (array != 1)
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise DataError(
            f"a label must be 0, 1 or NaN for unknown, got {array[row, column]:g} in row {row}, column {column}"
        )
    return np.where(unknown, UNKNOWN, np.nan_to_num(array)).astype(np.int8)


def _targets_from_names(rows: Sequence[Any], labels: Sequence[str]) -> Targets:
    column = {name: index for index, name in enumerate(labels)}
    targets = np.zeros((len(rows), len(labels)), dtype=np.int8)
    for index, row in enumerate(rows):
        for name in _names_of(row, index):
            if name not in column:
                raise DataError(f"label {name!r} in row {index} is not in the label set: {', '.join(labels)}")
            targets[index, column[name]] = 1
    return targets


def _names_of(row: Any, index: int) -> Iterable[str]:
    # A string is iterable, but its letters are not labels; nor are the keys of a dict of scores.
    if isinstance(row, (str, Mapping)) or not isinstance(row, Iterable):
        raise DataError(f"the labels of a row must be a set of names such as {{'joy'}}, got {row!r} in row {index}")
    names = list(row)
    for name in names:
        if not isinstance(name, str):
            raise DataError(f"a label must be a name such as 'joy', got {name!r} in row {index}")
    return names
