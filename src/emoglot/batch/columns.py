"""The columns that scoring adds to a file or frame: labels, scores, sentiment, language, truncated and unreadable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from emoglot.inference.prediction import Analysis
from emoglot.labels import names_where
from emoglot.model import Model

LABELS, SENTIMENT, SENTIMENT_SCORE, LANGUAGE = "labels", "sentiment", "sentiment_score", "language"
TRUNCATED, UNREADABLE = "truncated", "unreadable"
NAMES, SCORE, TEXT, FLAG = "names", "score", "text", "flag"  # what a column contains

Values: TypeAlias = tuple[Any, ...]  # of each added column; scores are float32, NaN where no text was read


@dataclass(frozen=True)
class AddedColumn:
    """The name of a column, and what it contains."""

    name: str
    kind: str


def added_columns(model: Model, prefix: str) -> tuple[AddedColumn, ...]:
    """Return the columns that scoring with a model adds, in order."""
    sentiment = [AddedColumn(SENTIMENT, TEXT), AddedColumn(SENTIMENT_SCORE, SCORE)] if model.state.sentiment else []
    columns = [
        AddedColumn(LABELS, NAMES),
        *(AddedColumn(label, SCORE) for label in model.labels),
        *sentiment,
        AddedColumn(LANGUAGE, TEXT),
        AddedColumn(TRUNCATED, FLAG),
        AddedColumn(UNREADABLE, FLAG),
    ]
    return tuple(AddedColumn(f"{prefix}{column.name}", column.kind) for column in columns)


def added_values(analysis: Analysis, chosen: NDArray[np.bool_], labels: Sequence[str]) -> Values:
    """Return the values of the added columns, given the chosen labels (texts, labels)."""
    sentiment: list[Any] = []
    if analysis.sentiment.shape[1]:
        found = analysis.sentiments()
        chances = [one.score if one else np.nan for one in found]
        sentiment = [[one.name if one else None for one in found], np.array(chances, dtype=np.float32)]
    return (
        [list(names_where(row, labels)) for row in chosen],
        *np.where(analysis.is_read[:, None], analysis.scores, np.float32(np.nan)).T,
        *sentiment,
        list(analysis.languages),
        analysis.truncated.tolist(),
        analysis.unreadable.tolist(),
    )


def spread(values: Any, rows: NDArray[np.intp], count: int) -> Any:
    """Return the values of a column as `count` rows: those given at these indices, all others empty."""
    if isinstance(values, np.ndarray):
        result = np.full(count, np.nan, dtype=np.float32)
        result[rows] = values
        return result
    places: list[Any] = [None] * count
    for row, value in zip(rows.tolist(), values, strict=True):
        places[row] = value
    return places
