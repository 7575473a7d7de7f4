"""Per-class thresholds that maximise F1, and so macro-F1, exactly."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from emoglot.errors import DataError
from emoglot.labels import UNKNOWN, Targets

# The threshold of a class that had no positive row to learn one from: no score reaches it.
NEVER = np.inf


def choose_thresholds(scores: NDArray[np.floating[Any]], targets: Targets) -> NDArray[np.float64]:
    """Give for every class the smallest threshold that maximises its F1 over the rows that annotate it.

    `scores` (rows, labels) lie in [0, 1]; a row is positive when its score is at or above the threshold.
    """
    _check(scores, targets)
    columns = zip(scores.T, targets.T, strict=True)
    return np.array([_best_threshold(column[known := target != UNKNOWN], target[known]) for column, target in columns])


def apply_thresholds(scores: NDArray[np.floating[Any]], thresholds: NDArray[np.floating[Any]]) -> NDArray[np.bool_]:
    """Decide every label of every row: positive when the score is at or above its class's threshold.

    A score of 0 belongs to a text without a word in it, which gets no label whatever the threshold.
    """
    return np.asarray((scores >= thresholds) & (scores > 0), dtype=np.bool_)


def decide(
    scores: NDArray[np.floating[Any]], thresholds: NDArray[np.floating[Any]], *, single_label: bool
) -> NDArray[np.bool_]:
    """Choose labels: all that reach their threshold or, where just one label is true, the one that scores highest."""
    if not single_label:
        return apply_thresholds(scores, thresholds)
    highest = scores.argmax(axis=1)[:, None]
    return np.asarray((np.arange(scores.shape[1]) == highest) & (scores > 0), dtype=np.bool_)


def _best_threshold(scores: NDArray[np.floating[Any]], targets: Targets) -> float:
    """Sort once, count from the top, take the best F1 = 2 TP / (predicted + positives).

    Only the scores of positives can be best: at a negative's score, leaving that negative out keeps TP and
    predicts less. Equal scores share one decision by themselves: the first positive among them sorts below all the
    rest of them, so its counts are those of the whole run, and the counts of the others give a lower F1.
    """
    keys = np.sort(_sortable_keys(scores, targets))
    at = np.flatnonzero(keys & 1 == 0)  # where the positives lie, lowest score first
    if not len(at):
        return NEVER
    true_positives = np.arange(len(at), 0, -1)
    predicted = len(keys) - at
    best = at[np.argmax(true_positives / (predicted + len(at)))]  # the first maximum is the smallest threshold
    return float((keys[best] >> 1).view(scores.dtype))


def _sortable_keys(scores: NDArray[np.floating[Any]], targets: Targets) -> NDArray[np.unsignedinteger[Any]]:
    """Pack score and target into one integer, so that a plain sort carries both; positives go first among equals.

    The bits of a float in [0, 1] are ordered like the float itself and leave the highest bit free.
    """
    unsigned = np.uint32 if scores.dtype == np.float32 else np.uint64
    return np.asarray(scores.view(unsigned) << unsigned(1) | (targets != 1), dtype=unsigned)


def _check(scores: NDArray[np.floating[Any]], targets: Targets) -> None:
    if scores.ndim != 2 or scores.shape != targets.shape:
        raise DataError(f"scores and targets must share a shape (rows, labels), got {scores.shape} and {targets.shape}")
    if scores.dtype not in (np.float32, np.float64):
        raise DataError(f"scores must be float32 or float64, got {scores.dtype}")
    if not len(scores):
        raise DataError("thresholds need at least one row, got none")
    if not (scores.min() >= 0 and scores.max() <= 1):  # also false for NaN
        raise DataError(f"scores must be in [0, 1], got {scores.min()} to {scores.max()}")
