"""Calibration: scores that are the share of right answers among texts that score so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emoglot.errors import MissingExtraError
from emoglot.labels import UNKNOWN, Targets

BINS = 10  # of equal width, as in the papers that report this error
# A label needs so many texts with it, and as many without, before its scores are bent to fit them.
ENOUGH_ROWS = 10
# Scaling must keep the order of the texts: a slope below this says that the logits know nothing.
LEAST_SLOPE = 0.05


@dataclass(frozen=True)
class Scaling:
    """A line for each label: calibrated logit = slope × logit + shift (Platt)."""

    slope: NDArray[np.float32]
    shift: NDArray[np.float32]


def fit_scaling(logits: NDArray[np.float32], targets: Targets, *, compete: bool = False) -> Scaling:
    """Fit the lines on held-out rows, label by label; one with too few rows is left as it is.

    Where labels compete for a text, that would favour some: then all are scaled, or none.
    """
    try:
        from sklearn.linear_model import LogisticRegression
    except ImportError as error:
        raise MissingExtraError("scikit-learn", "train", "calibrating scores") from error
    slope, shift = np.ones(logits.shape[1], np.float32), np.zeros(logits.shape[1], np.float32)
    fitted = np.zeros(logits.shape[1], np.bool_)
    for label, target in enumerate(targets.T):
        known = target != UNKNOWN
        positives = int((target[known] == 1).sum())
        if min(positives, int(known.sum()) - positives) < ENOUGH_ROWS:
            continue
        # Weak regularisation only keeps the line finite where a label is told apart without error.
        model = LogisticRegression(C=100.0).fit(logits[known, label : label + 1], target[known])
        if model.coef_[0, 0] >= LEAST_SLOPE:
            slope[label], shift[label], fitted[label] = model.coef_[0, 0], model.intercept_[0], True
    if compete and not fitted.all():
        return Scaling(np.ones_like(slope), np.zeros_like(shift))
    return Scaling(slope, shift)


def reliability(scores: NDArray[np.floating[Any]], targets: Targets) -> list[tuple[float, float, int]]:
    """Give for each bin of one label's scores that has any: mean score, share of positives, rows."""
    known = targets != UNKNOWN
    scores, positive = scores[known].astype(np.float64), targets[known] == 1
    bins = np.minimum((scores * BINS).astype(np.int64), BINS - 1)
    groups = [bins == index for index in np.unique(bins)]
    return [(float(scores[group].mean()), float(positive[group].mean()), int(group.sum())) for group in groups]


def expected_calibration_error(scores: NDArray[np.floating[Any]], targets: Targets) -> float:
    """Give the distance between score and truth of one label, averaged over bins by their rows."""
    bins = reliability(scores, targets)
    rows = sum(count for _, _, count in bins)
    return sum(abs(score - share) * count for score, share, count in bins) / max(rows, 1)
