"""The columns that scoring adds to a file or frame: labels, scores, sentiment, language, truncated and unreadable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emoglot.inference.prediction import Analysis
from emoglot.labels import names_where
from emoglot.model import Model

LABELS, SENTIMENT, SENTIMENT_SCORE, LANGUAGE = "labels", "sentiment", "sentiment_score", "language"
TRUNCATED, UNREADABLE = "truncated", "unreadable"
NAMES, SCORE, TEXT, FLAG = "names", "score", "text", "flag"  # what a column contains


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


@dataclass(frozen=True)
class Scored:
    """The values of the added columns; scores are float32, NaN where no text was read."""

    values: tuple[Any, ...]

    @classmethod
    def of(cls, analysis: Analysis, chosen: NDArray[np.bool_], labels: Sequence[str]) -> Scored:
        """Return the values of an analysis and the labels chosen by it (texts, labels)."""
        scores = np.where(analysis.is_read[:, None], analysis.scores, np.float32(np.nan))
        sentiments = analysis.sentiments() if analysis.sentiment.shape[1] else None
        names = [] if sentiments is None else [[one.name if one else None for one in sentiments]]
        chances = [np.nan if one is None else one.score for one in sentiments or ()]
        return cls(
            (
                [list(names_where(row, labels)) for row in chosen],
                *scores.T,
                *names,
                *([] if sentiments is None else [np.array(chances, dtype=np.float32)]),
                list(analysis.languages),
                analysis.truncated.tolist(),
                analysis.unreadable.tolist(),
            )
        )

    def spread(self, rows: NDArray[np.intp], count: int) -> Scored:
        """Return the values as `count` rows: those given at these indices, all others empty."""
        return Scored(tuple(_spread(values, rows, count) for values in self.values))


def _spread(values: Any, rows: NDArray[np.intp], count: int) -> Any:
    if isinstance(values, np.ndarray):
        result = np.full(count, np.nan, dtype=np.float32)
        result[rows] = values
        return result
    places: list[Any] = [None] * count
    for row, value in zip(rows.tolist(), values, strict=True):
        places[row] = value
    return places
