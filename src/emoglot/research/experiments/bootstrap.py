"""Paired bootstrap of differences in macro-F1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 2000
_SEED = 0


@dataclass(frozen=True)
class Difference:
    """The difference in macro-F1 between two methods, with the middle 95 % of resamples."""

    mean: float
    low: float
    high: float
    p: float  # two-sided: twice the share of resamples with the other sign or none


@dataclass(frozen=True)
class Trial:
    """The decisions of two methods on the same rows with the same seed."""

    gold: NDArray[np.bool_]  # (rows, labels)
    ours: NDArray[np.bool_]
    theirs: NDArray[np.bool_]


def paired_bootstrap(trials: Sequence[Trial], resamples: int = RESAMPLES) -> Difference:
    """Return the difference between ours and theirs, averaged over trials, with resampled rows."""
    rng = np.random.default_rng(_SEED)
    differences = np.zeros(resamples)
    observed = 0.0
    for trial in trials:
        rows = len(trial.gold)
        weights = rng.multinomial(rows, np.full(rows, 1 / rows), size=resamples)
        once = np.ones((1, rows), dtype=np.int64)
        differences += _gain(trial, weights) / len(trials)
        observed += float(_gain(trial, once)[0]) / len(trials)
    low, high = np.quantile(differences, [0.025, 0.975])
    other_sign = min((differences <= 0).mean(), (differences >= 0).mean())
    return Difference(observed, float(low), float(high), min(1.0, 2 * float(other_sign)))


def _gain(trial: Trial, weights: NDArray[np.int64]) -> NDArray[np.float64]:
    return _macro_f1(trial.gold, trial.ours, weights) - _macro_f1(trial.gold, trial.theirs, weights)


def _macro_f1(gold: NDArray[np.bool_], chosen: NDArray[np.bool_], weights: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return macro-F1 for each line of weights, the counts of the rows."""
    true_positives = weights @ (gold & chosen).astype(np.int64)  # (resamples, labels)
    total = weights @ (gold.astype(np.int64) + chosen)
    return np.asarray((2 * true_positives / np.maximum(total, 1)).mean(axis=1))
