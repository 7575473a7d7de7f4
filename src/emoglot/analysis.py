"""What a model says of texts: arrays for many of them, a `Prediction` for each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from emoglot.labels import names_where

POSITIVE, NEGATIVE = "positive", "negative"  # the two outputs of a model that learnt sentiment
NEUTRAL, MIXED = "neutral", "mixed"
SENTIMENTS = (POSITIVE, NEGATIVE, NEUTRAL, MIXED)


@dataclass(frozen=True)
class Sentiment:
    """Whether a text is positive, negative, neutral or mixed, with the chance of it."""

    name: str
    score: float


@dataclass(frozen=True)
class Prediction:
    """The labels of a text, with the score of every label.

    `language` is the code that was named or recognised, None where it is unknown. `truncated` when the encoder read
    only the beginning; `unreadable` when it knows less than half of the letters. An empty or unreadable text has no
    scores and no sentiment; no text has a sentiment where the model did not learn it.
    """

    labels: tuple[str, ...]
    scores: dict[str, float]
    sentiment: Sentiment | None = None
    language: str | None = None
    truncated: bool = False
    unreadable: bool = False


@dataclass(frozen=True)
class TokenWeight:
    """A token, how much it weighed, and where it stands in the user's own text: `text[start:end]`."""

    token: str
    weight: float
    start: int
    end: int


@dataclass(frozen=True, eq=False)
class Analysis:
    """What a model says of some texts, row by row."""

    scores: NDArray[np.float32]  # (texts, labels); 0 where nothing was read
    sentiment: NDArray[np.float32]  # (texts, 2), the chances of positive and of negative; (texts, 0) if not learnt
    is_read: NDArray[np.bool_]  # (texts,); not so for an empty or unreadable text
    unreadable: NDArray[np.bool_]  # (texts,)
    truncated: NDArray[np.bool_]  # (texts,)
    languages: tuple[str | None, ...]  # named, or recognised; None where it is unknown
    is_sure: NDArray[np.bool_]  # (texts,); whether the language was named or recognised with confidence

    def __len__(self) -> int:
        return len(self.languages)

    def take(self, rows: Sequence[int]) -> Analysis:
        """Return the rows with these indices."""
        index = np.asarray(rows, dtype=np.intp)
        return Analysis(
            self.scores[index],
            self.sentiment[index],
            self.is_read[index],
            self.unreadable[index],
            self.truncated[index],
            tuple(self.languages[row] for row in rows),
            self.is_sure[index],
        )

    def sure_languages(self) -> list[str | None]:
        """Return the languages whose thresholds can be used; None for those for any text."""
        return [code if sure else None for code, sure in zip(self.languages, self.is_sure.tolist(), strict=True)]

    def sentiments(self) -> list[Sentiment | None]:
        """Return the sentiment of every text."""
        if self.sentiment.shape[1] != 2:
            return [None] * len(self)
        names, chances = name_sentiments(self.sentiment)
        return [
            Sentiment(SENTIMENTS[name], chance) if is_read else None
            for name, chance, is_read in zip(names.tolist(), chances.tolist(), self.is_read.tolist(), strict=True)
        ]

    def predictions(self, chosen: NDArray[np.bool_], labels: Sequence[str]) -> Iterator[Prediction]:
        """Yield one prediction for each text, given which labels were chosen (texts, labels)."""
        sentiments = self.sentiments()
        for row in range(len(self)):
            yield Prediction(
                names_where(chosen[row], labels),
                dict(zip(labels, self.scores[row].tolist(), strict=True)) if self.is_read[row] else {},
                sentiments[row],
                self.languages[row],
                bool(self.truncated[row]),
                bool(self.unreadable[row]),
            )


def name_sentiments(outputs: NDArray[np.float32]) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Return the likeliest of `SENTIMENTS` for each row of positive and negative outputs, and its chance.

    The two outputs are taken as independent: both make a text mixed, neither makes it neutral. The four chances add up
    to 1.
    """
    positive, negative = outputs.astype(np.float64).T
    chances = np.stack(
        [positive * (1 - negative), (1 - positive) * negative, (1 - positive) * (1 - negative), positive * negative],
        axis=1,
    )
    names = chances.argmax(axis=1)
    return names, chances[np.arange(len(chances)), names]
