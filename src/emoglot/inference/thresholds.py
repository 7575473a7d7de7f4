"""Thresholds per class that maximise F1, and so macro-F1, exactly."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from emoglot.errors import DataError
from emoglot.labels import UNKNOWN, Targets

# The threshold of a class without positive rows: no score reaches it.
NEVER = np.inf


def choose_thresholds(
    scores: NDArray[np.floating[Any]], targets: Targets, weights: NDArray[np.int64] | None = None
) -> NDArray[np.float64]:
    """Return for every class the smallest threshold that maximises its F1 over the rows that annotate it.

    `scores` (rows, labels) are in [0, 1]; a row is positive if its score is at or above the threshold. `weights` are
    positive counts of the rows, by default 1.
    """
    _check(scores, targets)
    thresholds = []
    for column, target in zip(scores.T, targets.T, strict=True):
        known = target != UNKNOWN
        thresholds.append(_best_threshold(column[known], target[known], None if weights is None else weights[known]))
    return np.array(thresholds)


def apply_thresholds(scores: NDArray[np.floating[Any]], thresholds: NDArray[np.floating[Any]]) -> NDArray[np.bool_]:
    """Return which labels (rows, labels) have a score at or above their threshold."""
    return np.asarray(scores >= thresholds, dtype=np.bool_)


def decide(
    scores: NDArray[np.floating[Any]],
    thresholds: NDArray[np.floating[Any]],
    is_read: NDArray[np.bool_] | None = None,
    *,
    single_label: bool,
) -> NDArray[np.bool_]:
    """Return the predicted labels: all at or above their threshold or, in a single-label task, the highest.

    A row that was not read gets no label; `is_read` (rows,) is true for all rows by default.
    """
    if single_label:
        chosen = np.arange(scores.shape[1]) == scores.argmax(axis=1)[:, None]
    else:
        chosen = apply_thresholds(scores, thresholds)
    return np.asarray(chosen if is_read is None else chosen & is_read[:, None], dtype=np.bool_)


def _best_threshold(scores: NDArray[np.floating[Any]], targets: Targets, weights: NDArray[np.int64] | None) -> float:
    """Return the threshold with the highest F1 = 2 TP / (predicted + positives), in one sort.

    Only the score of a positive can be best: at the score of a negative, leaving that negative out keeps TP and
    predicts less. Positives sort first among equal scores, so the first of them has the counts of the whole run.
    """
    keys = _sortable_keys(scores, targets)
    if weights is None:
        keys, weights = np.sort(keys), np.ones(len(keys), np.int64)
    else:
        order = np.argsort(keys)
        keys, weights = keys[order], weights[order]
    at = np.flatnonzero(keys & 1 == 0)  # positions of the positives, lowest score first
    if not len(at):
        return NEVER
    true_positives, predicted = _sums_to_the_end(weights[at]), _sums_to_the_end(weights)[at]
    # The first maximum is the smallest threshold.
    best = at[np.argmax(true_positives / (predicted + true_positives[0]))]
    return float((keys[best] >> 1).view(scores.dtype))


def _sums_to_the_end(values: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.asarray(np.cumsum(values[::-1])[::-1])


def _sortable_keys(scores: NDArray[np.floating[Any]], targets: Targets) -> NDArray[np.unsignedinteger[Any]]:
    """Pack score and target into one integer that sorts by score, positives first among equal scores.

    The bits of a float in [0, 1] sort like the float, and leave the highest bit free.
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
