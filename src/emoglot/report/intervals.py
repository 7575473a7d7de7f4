"""Bootstrap intervals of shares, computed from counts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 2000
_SEED = 0
_MIDDLE = (0.025, 0.975)
_RULE_OF_THREE = 3.0  # none in n texts or clusters: with 95 % confidence the share is below 3/n

Bounds = tuple[NDArray[np.float64], NDArray[np.float64]]


def share_bounds(counts: NDArray[np.int64], totals: NDArray[np.int64]) -> Bounds:
    """Return the middle 95 % of the resampled shares of each cell and label.

    `counts` (clusters, cells, labels) and `totals` (clusters, cells) are numbers of texts. With one cluster, texts are
    resampled; with several, whole clusters are, with counts from a Poisson distribution of mean 1.
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
    """Resample texts: the number with a label is binomial, so counts are enough."""
    if total == 0:
        return np.zeros(len(counts)), np.ones(len(counts))
    shares = counts / total
    drawn = rng.binomial(total, shares, size=(RESAMPLES, len(counts))) / total
    return _widened(np.quantile(drawn, _MIDDLE, axis=0), shares, total)


def _poisson(counts: NDArray[np.int64], totals: NDArray[np.int64], rng: np.random.Generator) -> Bounds:
    """Resample clusters."""
    present = totals > 0
    clusters = int(present.sum())
    if clusters < 2:  # a single cluster has no information about the differences between clusters
        return np.zeros(counts.shape[1]), np.ones(counts.shape[1])
    weights = rng.poisson(1.0, size=(RESAMPLES, clusters)).astype(np.float64)
    sizes = weights @ totals[present]
    kept = sizes > 0  # with few clusters, a resample may be empty
    drawn = (weights @ counts[present])[kept] / sizes[kept, None]
    shares = counts.sum(axis=0) / totals.sum()
    return _widened(np.quantile(drawn, _MIDDLE, axis=0), shares, clusters)


def _widened(bounds: NDArray[np.float64], shares: NDArray[np.float64], drawn: int) -> Bounds:
    """Widen the intervals of shares of 0 and 1, which resampling `drawn` texts or clusters leaves empty."""
    reach = min(1.0, _RULE_OF_THREE / drawn)
    return np.where(shares == 1, 1 - reach, bounds[0]), np.where(shares == 0, reach, bounds[1])
