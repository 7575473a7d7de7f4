"""Calibration of scores as probabilities, and its measurement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emoglot.errors import needs_extra
from emoglot.labels import UNKNOWN, Targets

with needs_extra("train", "calibrating scores"):
    from sklearn.linear_model import LogisticRegression

BINS = 10  # of equal width, as usual for this error
# A label is calibrated if at least so many texts have it, and as many do not.
ENOUGH_ROWS = 10
# A smaller slope means that the logits are not informative; a negative one would reverse the order of texts.
LEAST_SLOPE = 0.05


@dataclass(frozen=True)
class Scaling:
    """Platt scaling per label: calibrated logit = slope × logit + shift."""

    slope: NDArray[np.float32]
    shift: NDArray[np.float32]


def fit_scaling(logits: NDArray[np.float32], targets: Targets, *, compete: bool = False) -> Scaling:
    """Fit the scaling of each label on held-out rows; a label with too few rows is not scaled.

    If labels compete for a text (single-label), scaling some would favour them: all are scaled, or none.
    """
    slope, shift = np.ones(logits.shape[1], np.float32), np.zeros(logits.shape[1], np.float32)
    fitted = np.zeros(logits.shape[1], np.bool_)
    for label, target in enumerate(targets.T):
        known = target != UNKNOWN
        positives = int((target[known] == 1).sum())
        if min(positives, int(known.sum()) - positives) < ENOUGH_ROWS:
            continue
        # Weak regularisation keeps the slope finite for a label that is separated perfectly.
        model = LogisticRegression(C=100.0).fit(logits[known, label : label + 1], target[known])
        if model.coef_[0, 0] >= LEAST_SLOPE:
            slope[label], shift[label], fitted[label] = model.coef_[0, 0], model.intercept_[0], True
    if compete and not fitted.all():
        return Scaling(np.ones_like(slope), np.zeros_like(shift))
    return Scaling(slope, shift)


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
