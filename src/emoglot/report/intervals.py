"""How far a share could be another in another sample of texts: the bootstrap, on counts alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 2000
_SEED = 0
_MIDDLE = (0.025, 0.975)
_RULE_OF_THREE = 3.0  # none in n texts: with 95 % confidence the share is below 3/n

Bounds = tuple[NDArray[np.float64], NDArray[np.float64]]


def share_bounds(counts: NDArray[np.int64], totals: NDArray[np.int64]) -> Bounds:
    """Return the middle 95 % of the shares of each cell and label when texts are drawn anew.

    `counts` (clusters, cells, labels) and `totals` (clusters, cells) are numbers of texts. With one cluster, texts are
    drawn one by one, with several, whole clusters are: each is there as often as a Poisson variable of mean 1 says.
    """
    rng = np.random.default_rng(_SEED)
    pairs = [
        _binomial(counts[0, cell], int(totals[0, cell]), rng)
        if len(counts) == 1
        else _poisson(counts[:, cell], totals[:, cell], rng)
        for cell in range(counts.shape[1])
    ]
    low, high = (np.array([pair[side] for pair in pairs]).reshape(counts.shape[1:]) for side in (0, 1))
    return low, high


def _binomial(counts: NDArray[np.int64], total: int, rng: np.random.Generator) -> Bounds:
    """Draw texts anew: how many of n draws carry a label is binomial, so that the texts themselves are not needed."""
    if total == 0:
        return np.zeros(len(counts)), np.ones(len(counts))
    drawn = rng.binomial(total, counts / total, size=(RESAMPLES, len(counts))) / total
    return _widened(np.quantile(drawn, _MIDDLE, axis=0), counts, total)


def _poisson(counts: NDArray[np.int64], totals: NDArray[np.int64], rng: np.random.Generator) -> Bounds:
    """Draw clusters anew."""
    present = totals > 0
    total, summed = int(totals.sum()), counts.sum(axis=0)
    if not present.any():
        return np.zeros(counts.shape[1]), np.ones(counts.shape[1])
    weights = rng.poisson(1.0, size=(RESAMPLES, int(present.sum()))).astype(np.float64)
    sizes = weights @ totals[present]
    kept = sizes > 0  # with few clusters, a draw may have none of them
    drawn = (weights @ counts[present])[kept] / sizes[kept, None]
    return _widened(np.quantile(drawn, _MIDDLE, axis=0), summed, total)


def _widened(bounds: NDArray[np.float64], counts: NDArray[np.int64], total: int) -> Bounds:
    """Allow for what no draw can show: a share of 0 or 1 would have no interval at all."""
    reach = min(1.0, _RULE_OF_THREE / total)
    return np.where(counts == total, 1 - reach, bounds[0]), np.where(counts == 0, reach, bounds[1])
