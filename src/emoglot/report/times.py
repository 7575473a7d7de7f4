"""Times: parsed from a column, and grouped by hours, days, weeks, months or years."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path

import polars as pl

from emoglot.errors import DataError, UsageError, reason_of
from emoglot.report import day_order

# Formats that begin with the year or name the month; report/day_order.py reads the others.
FORMATS = (
    "%Y-%m-%d",
    "%Y-%m-%d %H:%M:%S%.f",
    "%Y-%m-%d %H:%M",
    "%Y-%m-%d %H:%M:%S%.f%z",
    "%Y-%m-%d %H:%M:%S%.f %z",
    "%Y/%m/%d",
    "%Y/%m/%d %H:%M:%S",
    "%Y%m%d",
    "%a %b %d %H:%M:%S %z %Y",  # Twitter
    "%a, %d %b %Y %H:%M:%S %z",  # e-mail, RSS
)
SAMPLE_ROWS = 10_000
_ENOUGH = 0.8  # share of the sample that a format must parse
_TRIMMED = 0.001  # share of the rows at either end that may be outliers, such as 1970
_FEWEST_POINTS = 8  # with a unit, else a finer one is used; half as many where the texts would not fill one point
_FEWEST_TEXTS = 200  # per point on average, else a coarser one is used
_FAR = 10  # a whole span so many times longer than the trimmed one has outliers
_EARLIEST_MILLISECOND = 10**11  # as seconds, the year 5138


@dataclass(frozen=True)
class Unit:
    """A unit of time: its length and the longest span it is used for, in days, and its formats."""

    name: str
    days: float
    longest_days: float
    every: str
    form: str


UNITS = (
    Unit("hour", 1 / 24, 3, "1h", "%-d %b %Y, %H:00"),
    Unit("day", 1, 92, "1d", "%-d %b %Y"),
    Unit("week", 7, 800, "1w", "%-d %b %Y"),
    Unit("month", 30.4, 6000, "1mo", "%b %Y"),
    Unit("year", 365.25, float("inf"), "1y", "%Y"),
)


@dataclass(frozen=True)
class Span:
    """The first and the last day with rows, both included."""

    first: date
    last: date

    @property
    def days(self) -> int:
        """The number of days."""
        return (self.last - self.first).days + 1

    def unit(self, texts: int) -> Unit:
        """Return the unit with a suitable number of points, and of texts per point."""
        fitting = [unit for unit in UNITS if self.days <= unit.longest_days]
        points = _FEWEST_POINTS if texts >= _FEWEST_TEXTS else _FEWEST_POINTS // 2
        fitting = [unit for unit in fitting if self.days >= points * unit.days] or fitting[:1]
        return next((unit for unit in fitting if texts * unit.days >= _FEWEST_TEXTS * self.days), fitting[-1])

    def contains(self, moment: pl.Expr) -> pl.Expr:
        """Return an expression for whether times are in the span."""
        return (moment >= self.first) & (moment < self.last + timedelta(days=1))


def find_span(days: pl.DataFrame) -> Span | None:
    """Return the span of rows, given as `day` and number of `rows`, without outliers."""
    days = days.drop_nulls().sort("day")
    if days.is_empty():
        return None
    reached = days["rows"].cum_sum() / days["rows"].sum()
    inner = days.filter((reached > _TRIMMED) & (reached.shift(1, fill_value=0.0) < 1 - _TRIMMED))
    whole, trimmed = (Span(found["day"][0], found["day"][-1]) for found in (days, inner))
    return trimmed if whole.days > _FAR * trimmed.days and whole.days > UNITS[1].longest_days else whole


def day_name(day: date) -> str:
    """Return a day such as 31 Mar 2026."""
    return f"{day.day} {day:%b %Y}"


def name_of(moment: date | datetime, unit: Unit) -> str:
    """Return the name of a time in a chart."""
    return moment.strftime(unit.form.replace("%-d", str(moment.day)))  # %-d is not known on Windows


def as_moment(path: Path, column: str, frame: pl.LazyFrame, form: str | None = None) -> pl.Expr:
    """Return a column as times, in UTC if they have a zone; values that cannot be parsed are missing.

    `form` is a format that the user gave. All values decide the order of day and month, and a sample the rest.
    """
    values, kind = pl.col(column), frame.collect_schema()[column]
    sample = frame.select(column).drop_nulls().head(SAMPLE_ROWS).collect(engine="streaming").to_series()
    if kind == pl.Date:
        return values.cast(pl.Datetime("us"))
    if isinstance(kind, pl.Datetime):
        in_utc = values.dt.convert_time_zone("UTC").dt.replace_time_zone(None) if kind.time_zone else values
        return in_utc.cast(pl.Datetime("us"))
    if form is not None:
        return _in_form(path, column, sample, form)
    if kind.is_numeric() or _are_numbers(sample):
        return _from_number(values.cast(pl.Float64, strict=False))
    if kind != pl.String:
        raise DataError(_unreadable(path, column, f"got {kind}"))
    candidates = [_from_text(values, known) for known in FORMATS]
    if len(sample) and _share(sample, day_order.is_dated(values)) >= _ENOUGH:
        candidates = [day_order.as_moment(path, column, frame)]
    return _checked(path, column, sample, candidates)


def _checked(path: Path, column: str, sample: pl.Series, candidates: list[pl.Expr]) -> pl.Expr:
    """Return the first candidate that parses enough of a sample; raise DataError if none does."""
    shares = [_share(sample, read.is_not_null()) for read in candidates]
    for read, share in zip(candidates, shares, strict=True):
        if share >= _ENOUGH:
            return read
    told = _failures(sample, candidates[shares.index(max(shares))])
    raise DataError(_unreadable(path, column, told))


def _failures(sample: pl.Series, read: pl.Expr) -> str:
    """Return a value that cannot be parsed and, if others can, how many there are."""
    failed = sample.filter(sample.to_frame().select(read.is_null()).to_series())
    is_all = len(failed) == len(sample)
    return f"got {failed[0]!r}" if is_all else f"{len(failed)} of {len(sample)} are not, such as {failed[0]!r}"


def _share(sample: pl.Series, is_so: pl.Expr) -> float:
    """Return the share of a sample for which an expression is true; 1 for an empty sample."""
    return float(sample.to_frame().select(is_so.mean()).item()) if len(sample) else 1.0


def _unreadable(path: Path, column: str, told: str) -> str:
    return (
        f"column {column!r} of {path} must contain dates or times in one format, such as 2026-03-31, 31.03.2026 14:05 "
        f"or 2026-03-31T14:05:00Z, {told}: convert it, choose another column, or give its format as "
        f"{day_order.OPTION}, such as {day_order.EXAMPLE}"
    )


def _in_form(path: Path, column: str, sample: pl.Series, form: str) -> pl.Expr:
    """Parse texts in a format that the user gave; raise UsageError if it does not fit most of them."""
    read = _parsed(pl.col(column).cast(pl.String).str.strip_chars(), form)
    try:
        told = _failures(sample, read) if _share(sample, read.is_not_null()) < _ENOUGH else None
    except pl.exceptions.PolarsError as error:
        told = reason_of(error)
    if told is not None:
        raise UsageError(
            f"the values of column {column!r} of {path} must have the format {form!r} of {day_order.OPTION}, {told}: "
            "correct the format"
        )
    return read


def _are_numbers(sample: pl.Series) -> bool:
    if sample.dtype != pl.String or len(sample) == 0:
        return False
    # Eight digits are a day, as in 20260331.
    is_number = sample.str.contains(r"^\s*(\d{4}|\d{9,13})(\.\d+)?\s*$").mean()
    return isinstance(is_number, float) and is_number >= _ENOUGH


def _from_number(values: pl.Expr) -> pl.Expr:
    """Parse years, 20260331, seconds or milliseconds since 1970."""
    whole = values.cast(pl.Int64, strict=False)
    seconds = pl.when(values < _EARLIEST_MILLISECOND).then(values).otherwise(values / 1000)
    year = pl.datetime(pl.when(whole.is_between(1, 9999)).then(whole), 1, 1)
    day = whole.cast(pl.String).str.to_datetime("%Y%m%d", strict=False, time_unit="us")
    moment = (seconds * 1_000_000).cast(pl.Int64, strict=False).cast(pl.Datetime("us"))
    is_day = whole.is_between(1000_01_01, 9999_12_31) & day.is_not_null()
    return pl.when(whole.is_between(1, 9999)).then(year).when(is_day).then(day).otherwise(moment)


def _from_text(values: pl.Expr, form: str) -> pl.Expr:
    text = values.str.strip_chars().str.replace(r"^(\d{4}-\d{2}-\d{2})T", "$1 ").str.replace(r"Z$", "+0000")
    return _parsed(text.str.replace(r"^(\d{4})-(\d{2})$", "$1-$2-01"), form)


def _parsed(text: pl.Expr, form: str) -> pl.Expr:
    read = text.str.to_datetime(form, strict=False, time_unit="us")
    return read.dt.replace_time_zone(None) if "%z" in form else read
