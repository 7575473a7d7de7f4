"""Converts labelled texts in memory to a dataset."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from emoglot.data.dataset import Dataset
from emoglot.errors import DataError
from emoglot.labels import SEMEVAL_LABELS, check_names, is_array_like, label_names, to_targets
from emoglot.text.arguments import check_texts, is_missing
from emoglot.text.language_names import NO_LANGUAGE


def given_labels(labels: Any) -> Any:
    """Return the values of a generator or of a data frame column as a list; return a whole frame unchanged."""
    if _is_frame(labels):
        return labels
    if hasattr(labels, "to_numpy"):
        labels = labels.to_numpy()
    is_column = isinstance(labels, np.ndarray) and labels.ndim == 1 and labels.dtype.kind in "OU"
    return list(labels) if is_column or isinstance(labels, Iterator) else labels


def is_one_name_each(labels: Any) -> bool:
    """Return whether every label is one name instead of a set of names."""
    return isinstance(labels, (list, tuple)) and len(labels) > 0 and all(isinstance(name, str) for name in labels)


def _as_sets(labels: Any) -> Any:
    return [{name} for name in labels] if is_one_name_each(labels) else labels


def names_of(labels: Any) -> tuple[str, ...]:
    """Return the label set that labels imply."""
    if _is_frame(labels):
        return check_names(list(labels.columns))
    if not is_array_like(labels):
        return check_names(label_names(_as_sets(labels)))
    if isinstance(labels, np.ndarray) and labels.ndim != 2:
        raise DataError(f"an array of labels must have one row per text, got the shape {labels.shape}")
    width = labels.shape[1] if isinstance(labels, np.ndarray) else len(labels[0])
    if width == len(SEMEVAL_LABELS):
        return SEMEVAL_LABELS
    raise DataError(f"an array of labels needs the names of its {width} columns: EmotionClassifier(labels=[…])")


def to_dataset(texts: Iterable[str], labels: Any, names: tuple[str, ...]) -> Dataset:
    """Return texts with their labels as a dataset; their languages are unknown."""
    texts, labels = check_texts(texts), _as_sets(given_labels(labels))
    targets = to_targets(_in_order(labels, names) if _is_frame(labels) else labels, names)
    if len(targets) != len(texts):
        raise DataError(
            f"texts and labels must have the same length, got {len(texts)} texts and {len(targets)} rows of labels"
        )
    unknown = (NO_LANGUAGE,) * len(texts)
    return Dataset(tuple(texts), targets, names, languages=unknown, sources=("given",) * len(texts))


def _is_frame(labels: Any) -> bool:
    return hasattr(labels, "columns") and hasattr(labels, "to_numpy")


def _in_order(frame: Any, names: tuple[str, ...]) -> Any:
    """Return the columns of a data frame in the order of the names."""
    if set(frame.columns) != set(names):
        given = ", ".join(map(str, frame.columns))
        raise DataError(f"a data frame of labels must have exactly the columns {', '.join(names)}, got {given}")
    array = frame[list(names)].to_numpy()
    if array.dtype != object:
        return array
    # Nullable columns of pandas have their own NA.
    return np.array([np.nan if is_missing(value) else value for value in array.flat]).reshape(array.shape)
