"""Calibration of scores as probabilities."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from emoglot.errors import needs_extra
from emoglot.labels import UNKNOWN, Targets

with needs_extra("train", "calibrating scores"):
    from sklearn.linear_model import LogisticRegression

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
