"""Scores a data frame of pandas or polars, or an Arrow table, and gives it back with columns more."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from emoglot.arguments import check_texts, is_missing
from emoglot.batch.scoring import score_texts
from emoglot.errors import DataError, UsageError
from emoglot.labels import names_where
from emoglot.model import EmotionClassifier, load

Frame = TypeVar("Frame")
LABELS = "labels"
_FRAMES = (("pandas", "DataFrame"), ("polars", "DataFrame"), ("pyarrow", "Table"))


def score_frame(
    frame: Frame,
    text_column: str = "text",
    *,
    model: EmotionClassifier | None = None,
    language: str | None = None,
    prefix: str = "",
) -> Frame:
    """Add one column of scores per label and one of lists of labels; where the text is missing, they are missing too.

    Without a model, the one in the package is used. `prefix` begins the names of the new columns.
    """
    kind = type(frame).__module__.partition(".")[0]
    if (kind, type(frame).__name__) not in _FRAMES:
        raise DataError(f"a frame is a DataFrame of pandas or polars, or a pyarrow.Table, got {type(frame).__name__}")
    given: Any = frame
    names = list(given.column_names if kind == "pyarrow" else given.columns)
    if text_column not in names:
        raise DataError(f"the frame has no column {text_column!r}; it has {', '.join(map(repr, names))}")
    if names.count(text_column) > 1:
        raise DataError(f"the frame has {names.count(text_column)} columns {text_column!r}: rename all but one")
    model = model or load()
    new = [f"{prefix}{name}" for name in (LABELS, *model.labels_)]
    if taken := sorted(set(new) & set(names)):
        raise UsageError(f"the frame has a column {taken[0]!r} already: give another prefix for ours")
    column = given[text_column]
    texts = [None if is_missing(text) else text for text in (column.to_pylist() if kind == "pyarrow" else column)]
    check_texts([text for text in texts if text is not None])
    added = dict(zip(new, _columns(texts, model, language), strict=True))
    if kind == "pandas":
        return given.assign(**_pandas(added, given.index))  # type: ignore[no-any-return]
    if kind == "polars":
        return given.with_columns(**_polars(added))  # type: ignore[no-any-return]
    return _append(given, added)  # type: ignore[no-any-return]


def _columns(texts: list[str | None], model: EmotionClassifier, language: str | None) -> list[Any]:
    """Give the labels as lists, then the scores of each label."""
    known = np.array([text is not None for text in texts], dtype=bool)
    scores = np.full((len(texts), len(model.labels_)), np.nan, dtype=np.float32)
    found = score_texts(model, [text for text in texts if text is not None])
    scores[known] = found
    chosen = iter(model.decide(found, language))
    lists = [list(names_where(next(chosen), model.labels_)) if is_known else None for is_known in known]
    return [lists, *scores.T]


def _pandas(added: dict[str, Any], index: Any) -> dict[str, Any]:
    import pandas

    return {
        name: pandas.Series(values, index, dtype=object) if isinstance(values, list) else values
        for name, values in added.items()
    }


def _polars(added: dict[str, Any]) -> dict[str, Any]:
    import polars

    return {
        name: polars.Series(name, values, dtype=polars.List(polars.String))
        if isinstance(values, list)
        else polars.Series(name, values, nan_to_null=True)
        for name, values in added.items()
    }


def _append(table: Any, added: dict[str, Any]) -> Any:
    import pyarrow as pa

    for name, values in added.items():
        is_list = isinstance(values, list)
        array = pa.array(values, pa.list_(pa.string())) if is_list else pa.array(values, from_pandas=True)
        table = table.append_column(name, array)
    return table
