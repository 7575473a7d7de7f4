"""Counts and shares of a scored file, computed by polars in a stream."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from emoglot.errors import DataError
from emoglot.report.intervals import share_bounds
from emoglot.report.source import (
    CLUSTER,
    GROUP,
    IS_READABLE,
    IS_SCORED,
    IS_TRUNCATED,
    LANGUAGE,
    SENTIMENT,
    TIME,
    ScoredFile,
)
from emoglot.report.times import Span, Unit, day_name, find_span, name_of

SHOWN_GROUPS = 12
OTHERS = "(others)"
MISSING = "(none)"
MOST_GROUPS = 100_000  # distinct values of a group, which bounds memory
_MOST_LANGUAGES = 1000
_MOST_SENTIMENTS = 12
_DIFFERENT = {GROUP: MOST_GROUPS, LANGUAGE: _MOST_LANGUAGES, SENTIMENT: _MOST_SENTIMENTS}
_SLACK = 1.1  # the number of distinct values is an estimate
_TEXTS, _NONE, _KEY = "texts", "none", "key"


@dataclass(frozen=True)
class Share:
    """A number of texts, and its share of all texts with the 95 % interval."""

    count: int
    total: int
    low: float
    high: float

    @property
    def value(self) -> float:
        """The share, from 0 to 1."""
        return self.count / self.total if self.total else 0.0


@dataclass(frozen=True)
class GroupShares:
    """A group of texts: the share of each label, and of texts without any label."""

    name: str
    texts: int
    shares: tuple[Share, ...]
    none: Share


@dataclass(frozen=True)
class Timeline:
    """Shares over time; `outside` counts readable texts whose time is missing, invalid or an outlier."""

    unit: str
    first: str
    last: str
    points: tuple[GroupShares | None, ...]  # None where there are no texts
    names: tuple[str, ...]
    outside: int


@dataclass(frozen=True)
class Count:
    """A value, such as a language, with its number of readable texts."""

    name: str
    texts: int


@dataclass(frozen=True)
class Rows:
    """The numbers of rows of a file."""

    total: int
    unscored: int
    unreadable: int
    truncated: int

    @property
    def readable(self) -> int:
        """The number of rows on which shares are based."""
        return self.total - self.unscored - self.unreadable


@dataclass(frozen=True)
class Summary:
    """All counts and shares of a report."""

    labels: tuple[str, ...]
    rows: Rows
    overall: GroupShares
    timeline: Timeline | None
    groups: tuple[GroupShares, ...]
    group_values: int
    languages: tuple[Count, ...]
    sentiments: tuple[tuple[str, Share], ...]
    clusters: int


def summarise(scored: ScoredFile) -> Summary:
    """Summarise a file in three passes: totals, frequent values, labels."""
    totals, days = _survey(scored)
    rows = Rows(*(int(totals[name]) for name in ("rows", "unscored", "unreadable", "truncated")))
    values = _count_values(scored, totals)
    groups = _top(values.get(GROUP))
    span = find_span(days) if days is not None else None
    unit = span.unit(rows.readable) if span else None
    queries = {"all": _cells(scored, pl.lit("all"))}
    if groups:
        queries[GROUP] = _cells(scored, _folded(groups))
    if span and unit:
        queries[TIME] = _cells(scored, _bucket(span, unit))
    tables = dict(zip(queries, pl.collect_all(list(queries.values()), engine="streaming"), strict=True))
    return Summary(
        scored.labels,
        rows,
        _shares(tables["all"], ["all"], ["all"])[0],
        _timeline(tables[TIME], span, unit, rows) if span and unit else None,
        _groups(tables[GROUP], groups) if groups else (),
        len(values.get(GROUP, ())),
        tuple(Count(name, texts) for name, texts in _ranked(values.get(LANGUAGE))),
        _sentiments(values.get(SENTIMENT)),
        tables["all"][CLUSTER].n_unique() if CLUSTER in scored.columns else 0,
    )


def _survey(scored: ScoredFile) -> tuple[dict[str, Any], pl.DataFrame | None]:
    """Return counts of rows and of days, with estimated numbers of distinct values of the other columns."""
    frame = scored.frame
    totals = frame.select(
        pl.len().alias("rows"),
        (~pl.col(IS_SCORED)).sum().alias("unscored"),
        (pl.col(IS_SCORED) & ~pl.col(IS_READABLE)).sum().alias("unreadable"),
        pl.col(IS_TRUNCATED).sum().alias("truncated"),
        *(pl.col(key).approx_n_unique().alias(key) for key in _DIFFERENT if key in scored.columns),
    )
    queries = [totals]
    if TIME in scored.columns:
        readable = frame.filter(pl.col(IS_READABLE))
        queries.append(readable.group_by(pl.col(TIME).dt.date().alias("day")).agg(pl.len().alias("rows")))
    tables = pl.collect_all(queries, engine="streaming")
    return tables[0].row(0, named=True), tables[1] if len(tables) > 1 else None


def _count_values(scored: ScoredFile, totals: dict[str, Any]) -> dict[str, pl.DataFrame]:
    """Count the values of columns; raise DataError if the column to group by has too many distinct ones."""
    if GROUP in scored.columns and totals[GROUP] > _SLACK * MOST_GROUPS:
        raise DataError(
            f"a column to group by has at most {MOST_GROUPS:,} different values, got about {totals[GROUP]:,}: "
            "choose another column for the groups"
        )
    keys = [key for key, most in _DIFFERENT.items() if key in scored.columns and totals[key] <= _SLACK * most + 1]
    queries = [_values(scored, key) for key in keys]
    return dict(zip(keys, pl.collect_all(queries, engine="streaming"), strict=True)) if keys else {}


def _values(scored: ScoredFile, key: str) -> pl.LazyFrame:
    columns = [_KEY, CLUSTER] if key == SENTIMENT else [_KEY]
    readable = scored.frame.filter(pl.col(IS_READABLE)).with_columns(pl.col(key).fill_null(MISSING).alias(_KEY))
    return readable.group_by(columns).agg(pl.len().alias(_TEXTS))


def _ranked(values: pl.DataFrame | None) -> list[tuple[str, int]]:
    if values is None:
        return []
    return sorted(values.select(_KEY, _TEXTS).rows(), key=lambda row: (-row[1], row[0]))


def _top(values: pl.DataFrame | None) -> list[tuple[str, int]]:
    ranked = _ranked(values)
    # A single group is shown by its name, not as "others".
    return ranked if len(ranked) == SHOWN_GROUPS + 1 else ranked[:SHOWN_GROUPS]


def _folded(groups: Sequence[tuple[str, int]]) -> pl.Expr:
    name = pl.col(GROUP).fill_null(MISSING)
    return pl.when(name.is_in([name for name, _ in groups])).then(name).otherwise(pl.lit(OTHERS))


def _bucket(span: Span, unit: Unit) -> pl.Expr:
    return pl.when(span.contains(pl.col(TIME))).then(pl.col(TIME).dt.truncate(unit.every))


def _cells(scored: ScoredFile, key: pl.Expr) -> pl.LazyFrame:
    """Return per key and cluster the numbers of readable texts, of texts with each label and with none."""
    names = scored.given()
    none = (~pl.any_horizontal(names)).sum().alias(_NONE)
    cells = scored.frame.filter(pl.col(IS_READABLE)).group_by(key.alias(_KEY), CLUSTER)
    return cells.agg(pl.len().alias(_TEXTS), *(pl.col(name).sum() for name in names), none)


def _shares(table: pl.DataFrame, keys: Sequence[Any], names: Sequence[str]) -> list[GroupShares]:
    """Return a cell for each key, from counts."""
    place = {key: index for index, key in enumerate(keys)}
    table = table.filter(pl.col(_KEY).is_in(list(keys))).sort(CLUSTER)
    clusters = table[CLUSTER].unique().sort()
    row = np.searchsorted(clusters.to_numpy(), table[CLUSTER].to_numpy())
    column = np.array([place[key] for key in table[_KEY]], dtype=np.int64)
    found = table.drop(_KEY, CLUSTER, _TEXTS).to_numpy()
    counts = np.zeros((max(1, len(clusters)), len(keys), found.shape[1]), np.int64)
    totals = np.zeros(counts.shape[:2], np.int64)
    counts[row, column] = found
    totals[row, column] = table[_TEXTS].to_numpy()
    shares = zip(names, totals.sum(axis=0).tolist(), _shares_of(counts, totals), strict=True)
    return [GroupShares(name, texts, own[:-1], own[-1]) for name, texts, own in shares]


def _shares_of(counts: NDArray[np.int64], totals: NDArray[np.int64]) -> list[tuple[Share, ...]]:
    """Return the shares of each cell, from `counts` (clusters, cells, labels) and `totals` (clusters, cells)."""
    bounds = [values.tolist() for values in (counts.sum(axis=0), *share_bounds(counts, totals))]
    return [
        tuple(Share(count, total, low, high) for count, low, high in zip(*cell, strict=True))
        for total, *cell in zip(totals.sum(axis=0).tolist(), *bounds, strict=True)
    ]


def _groups(table: pl.DataFrame, groups: Sequence[tuple[str, int]]) -> tuple[GroupShares, ...]:
    names = [*(name for name, _ in groups), OTHERS]
    return tuple(cell for cell in _shares(table, names, names) if cell.texts)


def _timeline(table: pl.DataFrame, span: Span, unit: Unit, rows: Rows) -> Timeline:
    every = pl.datetime_range(pl.col(_KEY).min(), pl.col(_KEY).max(), unit.every)
    starts = table.select(every).to_series().to_list()
    names = [name_of(start, unit) for start in starts]
    cells = _shares(table, starts, names)
    outside = rows.readable - sum(cell.texts for cell in cells)
    shown = tuple(cell if cell.texts else None for cell in cells)
    return Timeline(unit.name, day_name(span.first), day_name(span.last), shown, tuple(names), outside)


def _sentiments(values: pl.DataFrame | None) -> tuple[tuple[str, Share], ...]:
    """Return the shares of sentiments in descending order."""
    if values is None or values.is_empty():
        return ()
    wide = values.pivot(on=_KEY, index=CLUSTER, values=_TEXTS).fill_null(0).drop(CLUSTER)
    counts = wide.to_numpy().astype(np.int64)[:, None, :]  # (clusters, 1, sentiments)
    (shares,) = _shares_of(counts, counts.sum(axis=2))
    found = zip(wide.columns, shares, strict=True)
    return tuple(sorted(found, key=lambda pair: (-pair[1].count, pair[0])))
