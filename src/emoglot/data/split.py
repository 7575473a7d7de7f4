"""Splits multi-label rows into two similar parts: iterative stratification (Sechidis et al., 2011)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from emoglot.errors import DataError, UsageError
from emoglot.labels import Targets

Indices: TypeAlias = NDArray[np.intp]

FIRST, SECOND, UNASSIGNED = 0, 1, -1
# Far more than a move can change the squared deviations, so that a part loses the last row of a label only if needed.
LAST_ROW_PENALTY = 1e9
# Costs are recomputed after each of this many parts of the rows that are still to be moved.
BATCHES = 8
EXCHANGES = 50
SMALLEST_GAIN = 1e-6


def stratified_split(
    targets: Targets, fraction: float, seed: int, groups: Sequence[str] | None = None
) -> tuple[Indices, Indices]:
    """Split row indices in two, with `fraction` of each label and group in the second part.

    A label or group with at least two rows has a row in each part if the sizes allow it.
    """
    if not 0 < fraction < 1:
        raise UsageError(f"fraction must be between 0 and 1, got {fraction}")
    if groups is not None and len(groups) != len(targets):
        raise DataError(f"groups must have one entry per row, got {len(groups)} for {len(targets)} rows")
    rows = len(targets)
    size = round(fraction * rows)
    if rows > 1:
        size = min(max(size, 1), rows - 1)
    memberships = _memberships(targets, groups)
    wanted = _wanted(memberships.counts, fraction)
    parts = _distribute(memberships, wanted, size, np.random.default_rng(seed))
    _correct_size(parts, memberships, wanted, size)
    if rows > 1:
        _exchange(parts, memberships, wanted)
    return np.flatnonzero(parts == FIRST), np.flatnonzero(parts == SECOND)


@dataclass(frozen=True)
class _Memberships:
    """Which row is in which class (a label or a group), as pairs sorted by row."""

    row: Indices  # (pairs,)
    klass: Indices  # (pairs,)
    rows: int
    counts: NDArray[np.int64]  # (classes,)


def _memberships(targets: Targets, groups: Sequence[str] | None) -> _Memberships:
    labels = targets.shape[1]
    row, klass = np.nonzero(targets == 1)
    classes = labels
    if groups is not None and len(groups):
        names, codes = np.unique(np.asarray(groups), return_inverse=True)
        row = np.concatenate([row, np.arange(len(targets))])
        klass = np.concatenate([klass, labels + codes.reshape(-1)])
        classes += len(names)
        order = np.argsort(row, kind="stable")
        row, klass = row[order], klass[order]
    return _Memberships(row, klass, len(targets), np.bincount(klass, minlength=classes))


def _wanted(counts: NDArray[np.int64], fraction: float) -> NDArray[np.float64]:
    """Return how many rows of each class the second part should have: its share, but at least one in each part."""
    share = fraction * counts
    return np.where(counts > 1, np.clip(share, 1, np.maximum(counts - 1, 1)), share)


def _distribute(
    memberships: _Memberships, wanted: NDArray[np.float64], size: int, rng: np.random.Generator
) -> NDArray[np.int8]:
    """Assign rows, those of the rarest class first, each to the part that needs the class most."""
    rows = memberships.rows
    parts = [UNASSIGNED] * rows
    # How many rows of each class each part still needs.
    need = ((memberships.counts - wanted).tolist(), wanted.tolist())
    room = [rows - size, size]
    left = memberships.counts.tolist()
    shuffled = rng.permutation(rows)
    classes_of, rows_of = _by_row(memberships), _by_class(memberships, shuffled)

    def assign(row: int, part: int) -> None:
        parts[row] = part
        room[part] -= 1
        for klass in classes_of[row]:
            need[part][klass] -= 1
            left[klass] -= 1

    # The heap contains old counts of each class; only the last one is valid.
    heap = [(count, klass) for klass, count in enumerate(left)]
    heapify(heap)
    while heap:
        count, rarest = heappop(heap)
        if count != left[rarest]:
            continue
        touched = set()
        for row in rows_of[rarest]:
            if parts[row] == UNASSIGNED:
                assign(row, _neediest(need[FIRST][rarest], need[SECOND][rarest], room))
                touched.update(classes_of[row])
        for klass in touched - {rarest}:
            heappush(heap, (left[klass], klass))
    for row in shuffled.tolist():
        if parts[row] == UNASSIGNED:
            assign(row, FIRST if room[FIRST] > room[SECOND] else SECOND)
    return np.array(parts, dtype=np.int8)


def _neediest(first: float, second: float, room: Sequence[int]) -> int:
    if first == second:
        return FIRST if room[FIRST] >= room[SECOND] else SECOND
    return FIRST if first > second else SECOND


def _by_row(memberships: _Memberships) -> list[list[int]]:
    ends = np.cumsum(np.bincount(memberships.row, minlength=memberships.rows)).tolist()
    flat = memberships.klass.tolist()
    return [flat[start:end] for start, end in pairwise([0, *ends])]


def _by_class(memberships: _Memberships, shuffled: Indices) -> list[list[int]]:
    rank = np.empty_like(shuffled)
    rank[shuffled] = np.arange(len(shuffled))
    order = np.lexsort((rank[memberships.row], memberships.klass))
    ends = np.cumsum(memberships.counts).tolist()
    flat = memberships.row[order].tolist()
    return [flat[start:end] for start, end in pairwise([0, *ends])]


def _correct_size(parts: NDArray[np.int8], memberships: _Memberships, wanted: NDArray[np.float64], size: int) -> None:
    """Move the rows with the lowest cost until the second part has its size, in place."""
    while (surplus := int((parts == SECOND).sum()) - size) != 0:
        source = SECOND if surplus > 0 else FIRST
        candidates = np.flatnonzero(parts == source)
        cost = _cost_of_leaving(source, parts, memberships, wanted)[candidates]
        number = max(1, abs(surplus) // BATCHES)
        parts[candidates[np.argsort(cost, kind="stable")[:number]]] = 1 - source


def _exchange(parts: NDArray[np.int8], memberships: _Memberships, wanted: NDArray[np.float64]) -> None:
    """Exchange single rows between the parts while that brings the classes closer to their share, in place."""
    for _ in range(EXCHANGES):
        leaver, gain = _cheapest(SECOND, parts, memberships, wanted)
        parts[leaver] = FIRST
        joiner, loss = _cheapest(FIRST, parts, memberships, wanted)
        if gain + loss > -SMALLEST_GAIN:
            parts[leaver] = SECOND
            return
        parts[joiner] = SECOND


def _cheapest(
    source: int, parts: NDArray[np.int8], memberships: _Memberships, wanted: NDArray[np.float64]
) -> tuple[int, float]:
    candidates = np.flatnonzero(parts == source)
    cost = _cost_of_leaving(source, parts, memberships, wanted)[candidates]
    best = int(np.argmin(cost))
    return int(candidates[best]), float(cost[best])


def _cost_of_leaving(
    source: int, parts: NDArray[np.int8], memberships: _Memberships, wanted: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return how much the squared deviations of its classes grow if a row leaves the source part."""
    inside = parts[memberships.row] == source
    have = np.bincount(memberships.klass[inside], minlength=len(wanted))
    goal = wanted if source == SECOND else memberships.counts - wanted
    cost = 1 - 2 * (have - goal)  # (have - 1 - goal)² - (have - goal)²
    cost = cost + np.where((have == 1) & (memberships.counts > 1), LAST_ROW_PENALTY, 0)
    total = np.bincount(memberships.row, weights=cost[memberships.klass], minlength=memberships.rows)
    return total.astype(np.float64)
