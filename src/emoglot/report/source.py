"""A scored file as a lazy frame with fixed column names, for any format and prefix."""

from __future__ import annotations

import csv
import glob
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

import polars as pl

from emoglot.batch.columns import LABELS, SENTIMENT_SCORE
from emoglot.data.columns import TEXT_COLUMNS, first_of
from emoglot.data.formats import CSV, JSONL, PARQUET, TSV, WRITTEN, check_readable, delimiter_of, named_format
from emoglot.errors import DataError, UsageError
from emoglot.labels import SEMEVAL_LABELS
from emoglot.report.options import Options
from emoglot.report.times import SAMPLE_ROWS, as_moment

TEXT_COLUMN, TIME, GROUP, CLUSTER, LANGUAGE, SENTIMENT = "text", "time", "group", "cluster", "language", "sentiment"
IS_SCORED, IS_READABLE, IS_TRUNCATED = "is_scored", "is_readable", "is_truncated"
LONGEST_TEXT = 2000  # characters used for words and examples, which bounds the size of a batch
CLUSTERS = 1000  # into which authors, threads, … are hashed; enough for a bootstrap
# polars needs minutes and gigabytes to plan a query about millions of columns or hundreds of labels.
MOST_COLUMNS = 10_000
MOST_LABELS = 64
_HEADER_BYTES = 2**20
_MOST_PREFIXES = 100  # that are tried
_SHOWN_COLUMNS = 12
_TRUE = ("true", "1", "yes")
# What a column is for, in words that are right on the command line, in Python and in the service.
_ROLES = {
    TEXT_COLUMN: "the texts, or leave the texts out of the report",
    TIME: "the times",
    GROUP: "the groups",
    CLUSTER: "the clusters",
    LANGUAGE: "the languages",
}


@dataclass(frozen=True)
class ScoredFile:
    """A scored file: `frame` has the columns `given(i)` and `score(i)` of every label, and those in `columns`.

    Without a column of clusters, all rows are in one.
    """

    frame: pl.LazyFrame
    labels: tuple[str, ...]
    columns: frozenset[str]

    def given(self) -> list[str]:
        """Return the names of the boolean columns of all labels."""
        return [given_column(index) for index in range(len(self.labels))]


def given_column(index: int) -> str:
    """Return the name of the column that is true if a row has a label."""
    return f"given_{index}"


def score_column(index: int) -> str:
    """Return the name of the column with the scores of a label."""
    return f"score_{index}"


@contextmanager
def polars_errors(path: Path) -> Iterator[None]:
    """Raise DataError in place of errors of polars."""
    try:
        yield
    except pl.exceptions.PolarsError as error:
        reason = str(error).partition("\n")[0]
        raise DataError(
            f"{path} cannot be read as a scored file: {reason}; score it again, or check the file"
        ) from error


def open_scored(path: Path, options: Options, known_labels: Sequence[str] = SEMEVAL_LABELS) -> ScoredFile:
    """Find and rename the columns of a scored file; only a sample is read."""
    check_readable(path)
    named = named_format(path.name)
    kind = named.kind
    if kind is None or kind not in WRITTEN:
        raise UsageError(f"a scored file must be csv, tsv, jsonl or parquet, got {path}")
    if kind in (CSV, TSV) and named.compression is None:
        _check_header(path, kind)
    with polars_errors(path):
        frame = _scan(path, kind)
        names = frame.collect_schema().names()
        prefix, labels = _find_labels(path, frame, names, options.prefix, known_labels)
        if len(labels) > MOST_LABELS:
            raise DataError(
                f"a report can show at most {MOST_LABELS} labels, {path} has {len(labels)}: remove the columns of some"
            )
        used = _used_columns(path, names, prefix, options)
        if kind == JSONL:
            frame = _scan_json(path, frame, prefix, labels, used)
        return _renamed(path, frame, prefix, labels, used, options.date_format)


def _check_header(path: Path, kind: str) -> None:
    """Raise DataError for a header that is too long or has too many columns."""
    with path.open("rb") as file:
        head = io.StringIO(file.read(_HEADER_BYTES).decode("utf-8", "replace"), newline="")
        is_whole = not file.read(1)
    try:
        columns = len(next(csv.reader(head, delimiter=delimiter_of(kind)), ()))
    except csv.Error as error:
        raise DataError(
            f"{path} cannot be read as a scored file: {error}; score it again, or check the file"
        ) from error
    if columns > MOST_COLUMNS or not (is_whole or head.read(1)):
        raise DataError(
            f"the header of a scored file may have at most {MOST_COLUMNS:,} columns and {_HEADER_BYTES:,} bytes, "
            f"that of {path} has more: remove columns"
        )


def _scan(path: Path, kind: str) -> pl.LazyFrame:
    if kind == PARQUET:
        return pl.scan_parquet(path, glob=False)
    if kind == JSONL:
        return pl.scan_ndjson(glob.escape(str(path)), infer_schema_length=SAMPLE_ROWS)  # it has no option `glob`
    return pl.scan_csv(path, separator=delimiter_of(kind), infer_schema=False, glob=False)  # every column as text


def _scan_json(
    path: Path, inferred: pl.LazyFrame, prefix: str, labels: Sequence[str], used: dict[str, str]
) -> pl.LazyFrame:
    """Scan only the columns in use, with types for all rows; the first may have no labels, or integers."""
    schema = {name: kind for name, kind in inferred.collect_schema().items() if name in used.values()}
    numbers = {f"{prefix}{label}": pl.Float64() for label in labels}
    plain = {name: pl.String() for key, name in used.items() if key in (TEXT_COLUMN, GROUP, CLUSTER, LANGUAGE)}
    lists = {f"{prefix}{LABELS}": pl.List(pl.String)}
    return pl.scan_ndjson(glob.escape(str(path)), schema={**schema, **numbers, **plain, **lists})


def _find_labels(
    path: Path, frame: pl.LazyFrame, names: Sequence[str], prefix: str | None, known: Sequence[str]
) -> tuple[str, tuple[str, ...]]:
    """Return the prefix and the labels with a column, among the known labels and those in the first rows.

    Of several prefixes, the one with most labels is used, and among equals the longest: `emoglot score` needs a prefix
    if the file already has such columns.
    """
    ends = [name.removesuffix(LABELS) for name in names if name.endswith(LABELS)]
    found = []
    for candidate in ends[:_MOST_PREFIXES] if prefix is None else [prefix] if prefix in ends else []:
        seen = {*known, *_labels_in(frame, f"{candidate}{LABELS}")}
        own = (name.removeprefix(candidate) for name in names if name.startswith(candidate))
        found.append((candidate, tuple(name for name in own if name in seen)))
    best = max(found, key=lambda one: (len(one[1]), len(one[0])), default=None)
    if best and best[1]:
        return best
    looked_for = f"{prefix or ''}{LABELS}"
    raise DataError(
        f"{path} is not a scored file: it needs a column {looked_for!r} and a column of scores for each label, such as "
        f"{(prefix or '') + known[0]!r}; it has {_listed(names)}. Create one with `emoglot score`, or set its "
        "prefix"
    )


def _labels_in(frame: pl.LazyFrame, column: str) -> list[str]:
    is_text = frame.collect_schema()[column] == pl.String
    names = _joined(column).str.split(",") if is_text else pl.col(column)
    sample = frame.select(names).head(SAMPLE_ROWS).collect(engine="streaming").to_series()
    if sample.dtype != pl.List(pl.String):
        return []
    return [name for name in sample.explode().drop_nulls().unique() if name]


def _joined(column: str) -> pl.Expr:
    """Return names joined by commas, also where pandas has written lists: ['joy', 'fear']."""
    return pl.col(column).str.strip_chars(" []'\"").str.replace_all(r"['\"\s]*,['\"\s]*", ",")


def _used_columns(path: Path, names: Sequence[str], prefix: str, options: Options) -> dict[str, str]:
    """Return the column of the file for each fixed name; columns given as options must exist."""
    asked = {TIME: options.time, GROUP: options.group, CLUSTER: options.cluster, LANGUAGE: options.language}
    if options.with_texts:
        asked[TEXT_COLUMN] = options.text or first_of(names, TEXT_COLUMNS) or TEXT_COLUMN
    used = {key: name for key, name in asked.items() if name is not None}
    for key, name in used.items():
        if name not in names:
            raise UsageError(_missing(path, key, name, names))
    # A language column may be the user's; a sentiment column is ours only with its score.
    ours = [(LANGUAGE, LANGUAGE), *((key, f"{prefix}{key}") for key in (LANGUAGE, "unreadable", "truncated"))]
    if f"{prefix}{SENTIMENT_SCORE}" in names:
        ours.append((SENTIMENT, f"{prefix}{SENTIMENT}"))
    return {key: name for key, name in ours if name in names} | used


def _missing(path: Path, key: str, name: str, names: Sequence[str]) -> str:
    near = get_close_matches(name, names, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"it has {_listed(names)}."
    return f"{path} has no column {name!r}: {hint} Choose another column for {_ROLES[key]}"


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:_SHOWN_COLUMNS]))
    return f"{shown}, …" if len(names) > _SHOWN_COLUMNS else shown or "no columns"


def _renamed(
    path: Path, frame: pl.LazyFrame, prefix: str, labels: tuple[str, ...], used: dict[str, str], form: str | None
) -> ScoredFile:
    schema = frame.collect_schema()
    scores = [pl.col(f"{prefix}{label}").cast(pl.Float64, strict=False).fill_nan(None) for label in labels]
    unreadable, cut = used.get("unreadable"), used.get("truncated")
    is_readable = pl.all_horizontal(one.is_not_null() for one in scores)
    is_scored = is_readable  # an unreadable text was scored, but has no scores
    if unreadable:
        is_unreadable = _flag(unreadable, schema[unreadable])
        is_scored, is_readable = is_readable | is_unreadable, is_readable & ~is_unreadable
    columns = [
        is_scored.alias(IS_SCORED),
        is_readable.alias(IS_READABLE),
        (is_readable & _flag(cut, schema[cut]) if cut else pl.lit(False)).alias(IS_TRUNCATED),
        *(one.alias(score_column(index)) for index, one in enumerate(scores)),
        *_given(f"{prefix}{LABELS}", schema[f"{prefix}{LABELS}"], labels, is_readable),
        *_others(path, frame, used, form),
    ]
    found = frozenset(key for key in used if key not in ("unreadable", "truncated"))
    return ScoredFile(frame.select(columns), labels, found)


def _given(column: str, kind: pl.DataType, labels: Sequence[str], is_readable: pl.Expr) -> list[pl.Expr]:
    """Return whether a row has each label, from a list (Parquet, JSONL) or comma-separated names (CSV)."""
    if kind == pl.String:
        joined = pl.concat_str(pl.lit(","), _joined(column).fill_null(""), pl.lit(","))
        carried = [joined.str.contains(f",{label},", literal=True) for label in labels]
    else:
        carried = [pl.col(column).list.contains(label).fill_null(False) for label in labels]
    return [(is_readable & one).alias(given_column(index)) for index, one in enumerate(carried)]


def _others(path: Path, frame: pl.LazyFrame, used: dict[str, str], form: str | None) -> list[pl.Expr]:
    columns = [_plain(used[key]).alias(key) for key in (GROUP, LANGUAGE, SENTIMENT) if key in used]
    if TEXT_COLUMN in used:
        columns.append(
            pl.col(used[TEXT_COLUMN]).cast(pl.String, strict=False).str.slice(0, LONGEST_TEXT).alias(TEXT_COLUMN)
        )
    cluster = _plain(used[CLUSTER]).hash(seed=0) % CLUSTERS if CLUSTER in used else pl.lit(0)
    columns.append(cluster.cast(pl.UInt32).alias(CLUSTER))
    if TIME in used:
        columns.append(as_moment(path, used[TIME], frame, form).alias(TIME))
    return columns


def _plain(name: str) -> pl.Expr:
    """Return a column as stripped text; empty text is a missing value."""
    text = pl.col(name).cast(pl.String).str.strip_chars()
    return pl.when(text != "").then(text)


def _flag(name: str, kind: pl.DataType) -> pl.Expr:
    if kind == pl.String:
        return pl.col(name).str.to_lowercase().is_in(_TRUE).fill_null(False)
    return pl.col(name).cast(pl.Boolean).fill_null(False)
