"""Dates that begin with the day or the month, such as 31.03.2026 14:05, 31/03/2026 and 3/31/2026 2:05 PM.

Dates with dots begin with the day. Those with slashes or hyphens begin with either, which the data decides.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from emoglot.errors import DataError

OPTION = "date_format (on the command line, --date-format)"
EXAMPLE = "%d/%m/%Y %H:%M"
_DATE = r"^\s*(\d{1,2})([./-])(\d{1,2})[./-](\d{4})(?:,?\s+(\d.*?))?\s*$"
_FIRST, _MARK, _SECOND, _YEAR, _CLOCK = 1, 2, 3, 4, 5  # the groups of this pattern
_CLOCKS = ("%H:%M", "%H:%M:%S%.f", "%I:%M %p", "%I:%M:%S %p")
_MONTHS = 12
_CLEAR = 0.99  # of the values that can only begin with the day or only with the month, the share of the larger kind


def is_dated(values: pl.Expr) -> pl.Expr:
    """Return whether values have the form of such a date."""
    return values.str.contains(_DATE)


def as_moment(path: Path, column: str, frame: pl.LazyFrame) -> pl.Expr:
    """Return an expression that parses a column; raise DataError if the order of day and month cannot be known."""
    return _read(pl.col(column), begins_with_day=_begins_with_day(path, column, frame))


def _begins_with_day(path: Path, column: str, frame: pl.LazyFrame) -> bool:
    first, second = (_part(pl.col(column), group).cast(pl.Int32, strict=False) for group in (_FIRST, _SECOND))
    has_dots = _part(pl.col(column), _MARK) == "."
    is_day_first = has_dots | ((first > _MONTHS) & (second <= _MONTHS))
    is_month_first = ~has_dots & (second > _MONTHS) & (first <= _MONTHS)
    counts = frame.select(
        day=is_day_first.sum(),
        month=is_month_first.sum(),
        value=pl.col(column).filter(is_dated(pl.col(column))).first(),
        late=pl.col(column).filter(is_month_first).first(),
        early=pl.col(column).filter(is_day_first).first(),
    )
    found = counts.collect(engine="streaming").row(0, named=True)
    day, month = found["day"], found["month"]
    if day + month == 0:
        raise DataError(
            f"column {column!r} of {path} must show whether its dates begin with the day or the month, got only dates "
            f"such as {found['value']!r}, which could be both: give {OPTION}, such as {EXAMPLE} or %m/%d/%Y"
        )
    if max(day, month) < _CLEAR * (day + month):
        raise DataError(
            f"the dates in column {column!r} of {path} must all begin with the day or all with the month, got {day} "
            f"such as {found['early']!r} and {month} such as {found['late']!r}: convert them to one format"
        )
    return bool(day >= month)


def _read(values: pl.Expr, *, begins_with_day: bool) -> pl.Expr:
    day, month = (_FIRST, _SECOND) if begins_with_day else (_SECOND, _FIRST)
    date = pl.concat_str(
        _part(values, _YEAR), _part(values, month).str.zfill(2), _part(values, day).str.zfill(2), separator="-"
    )
    clock = _part(values, _CLOCK).str.replace_all(r"\s+", " ").str.to_uppercase()
    timed = [
        pl.concat_str(date, clock, separator=" ").str.to_datetime(f"%Y-%m-%d {form}", strict=False, time_unit="us")
        for form in _CLOCKS
    ]
    whole_day = pl.when(clock.is_null()).then(date.str.to_datetime("%Y-%m-%d", strict=False, time_unit="us"))
    return pl.coalesce(whole_day, *timed)


def _part(values: pl.Expr, group: int) -> pl.Expr:
    return values.str.extract(_DATE, group)
