"""Strictness: the threshold of each label that reached a given precision or recall on validation data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real

import numpy as np
from numpy.typing import NDArray

from emoglot.errors import UsageError
from emoglot.inference.thresholds import NEVER
from emoglot.labels import UNKNOWN, Targets

STEPS = 100  # a table has a column for each hundredth, from 0.01 to 1
# Precision is not measured on fewer texts above a threshold.
LEAST_GIVEN = 10


@dataclass(frozen=True, eq=False)
class Strictness:
    """Thresholds (labels, hundredths): the lowest with a given precision, the highest with a given recall."""

    precision: NDArray[np.float64]  # NEVER where no threshold reaches it
    recall: NDArray[np.float64]

    def thresholds(self, precision: float | None, recall: float | None) -> NDArray[np.float64]:
        """Return the thresholds (labels,) for a given precision or recall."""
        if (precision is None) == (recall is None):
            raise UsageError("exactly one of precision and recall can be requested: leave out the other")
        table, wanted, name = (
            (self.precision, precision, "precision") if recall is None else (self.recall, recall, "recall")
        )
        if isinstance(wanted, bool) or not isinstance(wanted, Real) or not 0 < wanted <= 1:
            raise UsageError(f"{name} must be above 0 and at most 1, such as 0.8, got {wanted!r}")
        # Rounded up to the stricter hundredth; 1e-9 allows for binary fractions.
        return table[:, max(1, math.ceil(wanted * STEPS - 1e-9)) - 1]

    def never_given(self, labels: Sequence[str], precision: float | None, recall: float | None) -> list[str]:
        """Return the labels for which no threshold reaches the given precision."""
        found = self.thresholds(precision, recall)
        return [name for name, threshold in zip(labels, found, strict=True) if threshold == NEVER]


def measure_strictness(
    scores: NDArray[np.float32], targets: Targets, weights: NDArray[np.int64] | None = None
) -> Strictness:
    """Measure precision and recall of every label at every threshold; `weights` are the counts of the rows."""
    weights = np.ones(len(scores), np.int64) if weights is None else weights
    tables = []
    for column, target in zip(scores.T, targets.T, strict=True):
        known = target != UNKNOWN
        tables.append(_tables(column[known], target[known] == 1, weights[known]))
    precision, recall = zip(*tables, strict=True)
    return Strictness(np.array(precision), np.array(recall))


def _tables(
    scores: NDArray[np.float32], positive: NDArray[np.bool_], weights: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the thresholds of one label for each hundredth of precision, and of recall."""
    wanted = np.arange(1, STEPS + 1) / STEPS
    if not positive.any():
        return np.full(STEPS, NEVER), np.full(STEPS, NEVER)
    order = np.argsort(-scores, kind="stable")
    scores, positive, weights = scores[order], positive[order], weights[order]
    # Equal scores are predicted together: cut only after the last of them.
    cuts = np.flatnonzero(np.append(scores[:-1] != scores[1:], True))
    hits = np.cumsum(weights * positive)[cuts]
    precision, recall = hits / np.cumsum(weights)[cuts], hits / hits[-1]
    precision = np.where(cuts + 1 >= min(LEAST_GIVEN, len(scores)), precision, 0)
    thresholds = scores[cuts].astype(np.float64)  # highest first
    # The best precision so far, from the lowest threshold upwards.
    reached = np.maximum.accumulate(precision[::-1])
    lowest = np.searchsorted(reached, wanted - 1e-12)
    by_precision = np.append(thresholds[::-1], NEVER)[lowest]
    by_recall = thresholds[np.searchsorted(recall, wanted - 1e-12)]
    return by_precision, by_recall
