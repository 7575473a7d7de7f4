"""Adds columns with scores to a data frame of pandas or polars, or to an Arrow table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from emoglot.batch.columns import FLAG, NAMES, TEXT, AddedColumn, added_columns, spread
from emoglot.batch.scoring import score_texts
from emoglot.data.columns import TEXT_COLUMNS, did_you_mean, first_of
from emoglot.errors import DataError, UsageError
from emoglot.model import Model, load
from emoglot.text.arguments import Languages, check_languages, is_missing

Frame = TypeVar("Frame")
_FRAMES = (("pandas", "DataFrame"), ("polars", "DataFrame"), ("pyarrow", "Table"))


def score_frame(
    frame: Frame,
    text_column: str | None = None,
    *,
    model: Model | None = None,
    language: Languages = None,
    precision: float | None = None,
    recall: float | None = None,
    prefix: str = "",
) -> Frame:
    """Return a data frame with new columns: labels, the score of each label, sentiment, language, and two flags.

    A missing text has missing values in the new columns. The flags are `truncated` and `unreadable`, as in
    `Prediction`.

    Parameters
    ----------
    frame
        A pandas or polars DataFrame, or a pyarrow.Table; the result has the same type.
    text_column
        The column of texts; by default it is found by its name, such as text or comment.
    model
        The model to use; by default the one in the package.
    language
        One language for all rows, or one for each, by code or name; by default it is recognised.
    precision, recall
        As in `Model.predict`.
    prefix
        A prefix for the names of the new columns, if the frame already has some of them.
    """
    kind = type(frame).__module__.partition(".")[0]
    if (kind, type(frame).__name__) not in _FRAMES:
        raise DataError(
            f"a frame must be a DataFrame of pandas or polars, or a pyarrow.Table, got {type(frame).__name__}"
        )
    given: Any = frame
    names = list(given.column_names if kind == "pyarrow" else given.columns)
    if text_column is None:
        text_column = first_of([name for name in names if isinstance(name, str)], TEXT_COLUMNS) or TEXT_COLUMNS[0]
    _check_text_column(text_column, names)
    model = model or load()
    new = added_columns(model, prefix)
    if taken := sorted({column.name for column in new} & set(names)):
        raise UsageError(f"the frame already has a column {taken[0]!r}: choose another prefix for the new columns")
    column = given[text_column]
    cells = list(column.to_pylist() if kind == "pyarrow" else column)
    known = _rows_with_text(cells)
    languages = check_languages(language, len(cells))
    if isinstance(languages, list):
        languages = [languages[row] for row in known]
    texts = [cells[row] for row in known]
    scored = score_texts(model, texts, languages, precision, recall)
    added = {column: spread(values, known, len(cells)) for column, values in zip(new, scored, strict=True)}
    if kind == "pandas":
        return given.assign(**_pandas(added, given.index))  # type: ignore[no-any-return]
    if kind == "polars":
        return given.with_columns(**_polars(added))  # type: ignore[no-any-return]
    from emoglot.batch.arrow import with_columns

    return with_columns(given, added.items())  # type: ignore[no-any-return]


def _check_text_column(text_column: str, names: Sequence[str]) -> None:
    if text_column not in names:
        hint = did_you_mean(text_column, [name for name in names if isinstance(name, str)])
        raise DataError(f"the frame has no column {text_column!r}: {hint}it has {', '.join(map(repr, names))}")
    if names.count(text_column) > 1:
        raise DataError(f"the frame has {names.count(text_column)} columns {text_column!r}: rename all but one")


def _rows_with_text(cells: Sequence[Any]) -> NDArray[np.intp]:
    """Return the rows that have a text; raise DataError for a text that is not a string."""
    known = np.flatnonzero([not is_missing(cell) for cell in cells])
    for row in known.tolist():
        if not isinstance(cells[row], str):
            found = f"{cells[row]!r} ({type(cells[row]).__name__})"
            raise DataError(f"a text must be a string, got {found} in row {row} (counted from 0)")
    return known


def _pandas(added: dict[AddedColumn, Any], index: Any) -> dict[str, Any]:
    import pandas

    def series(column: AddedColumn, values: Any) -> Any:
        if not isinstance(values, list):
            return values
        kind = ("boolean" if None in values else "bool") if column.kind == FLAG else object
        return pandas.Series(values, index, dtype=kind)

    return {column.name: series(column, values) for column, values in added.items()}


def _polars(added: dict[AddedColumn, Any]) -> dict[str, Any]:
    import polars

    types: dict[str, Any] = {NAMES: polars.List(polars.String), TEXT: polars.String, FLAG: polars.Boolean}
    return {
        column.name: polars.Series(column.name, values, dtype=types[column.kind])
        if column.kind in types
        else polars.Series(column.name, values, nan_to_null=True)
        for column, values in added.items()
    }
