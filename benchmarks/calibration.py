"""Measures how well scores are calibrated as probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from emoglot.labels import UNKNOWN, Targets

BINS = 10  # of equal width, as usual for this error


def reliability(scores: NDArray[np.floating[Any]], targets: Targets) -> list[tuple[float, float, int]]:
    """Return mean score, share of positives and rows of each non-empty bin of one label's scores."""
    known = targets != UNKNOWN
    scores, positive = scores[known].astype(np.float64), targets[known] == 1
    bins = np.minimum((scores * BINS).astype(np.int64), BINS - 1)
    groups = [bins == index for index in np.unique(bins)]
    return [(float(scores[group].mean()), float(positive[group].mean()), int(group.sum())) for group in groups]


def expected_calibration_error(scores: NDArray[np.floating[Any]], targets: Targets) -> float:
    """Return the mean distance between score and share of positives of one label, weighted by the rows of bins."""
    bins = reliability(scores, targets)
    rows = sum(count for _, _, count in bins)
    return sum(abs(score - share) * count for score, share, count in bins) / max(rows, 1)
