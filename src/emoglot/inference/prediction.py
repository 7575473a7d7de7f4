"""The results of a model: an `Analysis` of many texts as arrays, and a `Prediction` of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from emoglot.labels import names_where

POSITIVE, NEGATIVE = "positive", "negative"  # the two outputs of a model that learnt sentiment
NEUTRAL, MIXED = "neutral", "mixed"
SENTIMENTS = (POSITIVE, NEGATIVE, NEUTRAL, MIXED)


@dataclass(frozen=True)
class Sentiment:
    """The sentiment of a text: positive, negative, neutral or mixed, with its probability."""

    name: str
    score: float


@dataclass(frozen=True)
class Prediction:
    """The labels of a text, with the score of every label.

    An empty or unreadable text has no labels, no scores and no sentiment.

    Attributes
    ----------
    labels
        The predicted labels, in the order of the model's labels; often none.
    scores
        The calibrated probability of every label, predicted or not.
    sentiment
        The sentiment; None if the text has no scores or the model was not trained on sentiment.
    language
        The code of the language, given or identified; None if it is unknown.
    truncated
        Whether only the beginning of the text was read.
    unreadable
        Whether the encoder knows less than half of the letters.
    """

    labels: tuple[str, ...]
    scores: dict[str, float]
    sentiment: Sentiment | None = None
    language: str | None = None
    truncated: bool = False
    unreadable: bool = False


@dataclass(frozen=True)
class TokenWeight:
    """A token with its attention weight and its place in the original text: `text[start:end]`."""

    token: str
    weight: float
    start: int
    end: int


@dataclass(frozen=True, eq=False)
class Scores:
    """The scores of some texts, one row each, and how much of them was read."""

    scores: NDArray[np.float32]  # (texts, labels); 0 where `is_read` is false
    sentiment: NDArray[np.float32]  # (texts, 2): probabilities of positive and negative; (texts, 0) if not trained
    is_read: NDArray[np.bool_]  # (texts,): false for an empty or unreadable text
    unreadable: NDArray[np.bool_]  # (texts,)
    truncated: NDArray[np.bool_]  # (texts,)

    @classmethod
    def join(cls, parts: Iterable[Scores], labels: int, sentiment: int) -> Scores:
        """Concatenate scores; `labels` and `sentiment` are the numbers of columns, should there be no parts."""
        scores, flags = np.empty((0, labels + sentiment), np.float32), np.empty(0, np.bool_)
        empty = cls(scores[:, :labels], scores[:, labels:], flags, flags, flags)
        all_parts = [empty, *parts]
        return cls(**{name: np.concatenate([vars(part)[name] for part in all_parts]) for name in vars(empty)})


@dataclass(frozen=True, eq=False)
class Analysis(Scores):
    """The results of a model for several texts: their scores and their languages."""

    languages: tuple[str | None, ...]  # given or identified; None if unknown
    is_named: NDArray[np.bool_]  # (texts,): whether the language was given
    is_sure: NDArray[np.bool_]  # (texts,): whether the language was given, or identified with confidence

    def __len__(self) -> int:
        return len(self.languages)

    def take(self, rows: Sequence[int]) -> Analysis:
        """Return the rows with these indices."""
        index = np.asarray(rows, dtype=np.intp)
        arrays = {name: array[index] for name, array in vars(self).items() if name != "languages"}
        return Analysis(**arrays, languages=tuple(self.languages[row] for row in rows))

    def sure_languages(self) -> list[str | None]:
        """Return the language of each text, or None if it is not sure."""
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
    """Return the index of the most probable of `SENTIMENTS` for each row of outputs, and its probability.

    The outputs, positive and negative, are treated as independent: both true is mixed, neither is neutral.
    """
    positive, negative = outputs.astype(np.float64).T
    chances = np.stack(
        [positive * (1 - negative), (1 - positive) * negative, (1 - positive) * (1 - negative), positive * negative],
        axis=1,
    )
    names = chances.argmax(axis=1)
    return names, chances[np.arange(len(chances)), names]
