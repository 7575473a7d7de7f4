"""The protocols that a model and the clients of a service share, for type hints."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, overload

import numpy as np
from numpy.typing import NDArray

from emoglot.inference.prediction import Prediction, TokenWeight
from emoglot.text.arguments import Languages

Wanted = float | None  # a precision or recall to reach; None for the thresholds of the model


class Predictor(Protocol):
    """Predicts emotions; implemented by `emoglot.Model` and `emoglot.Client`."""

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels, in the order of the columns of `predict_proba`."""

    @property
    def thresholds(self) -> dict[str, float]:
        """The score from which each label is predicted; infinity for one that is never predicted."""

    @overload  # a string is also an iterable of strings
    def predict(  # type: ignore[overload-overlap]
        self, texts: str, language: str | None = None, *, precision: Wanted = None, recall: Wanted = None
    ) -> Prediction: ...

    @overload
    def predict(
        self, texts: Iterable[str], language: Languages = None, *, precision: Wanted = None, recall: Wanted = None
    ) -> list[Prediction]: ...

    def predict_proba(self, texts: Iterable[str]) -> NDArray[np.float32]:
        """Return the scores, float32 (texts, labels)."""

    def explain(self, text: str) -> tuple[TokenWeight, ...]:
        """Return every token of a text with its attention weight."""


class AsyncPredictor(Protocol):
    """Predicts emotions without blocking; implemented by `emoglot.AsyncClient`.

    The properties of `Predictor` are methods here, because a property cannot be awaited.
    """

    async def labels(self) -> tuple[str, ...]:
        """Return the labels, in the order of the columns of `predict_proba`."""

    async def thresholds(self) -> dict[str, float]:
        """Return the score from which each label is predicted; infinity for one that is never predicted."""

    @overload
    async def predict(  # type: ignore[overload-overlap]
        self, texts: str, language: str | None = None, *, precision: Wanted = None, recall: Wanted = None
    ) -> Prediction: ...

    @overload
    async def predict(
        self, texts: Iterable[str], language: Languages = None, *, precision: Wanted = None, recall: Wanted = None
    ) -> list[Prediction]: ...

    async def predict_proba(self, texts: Iterable[str]) -> NDArray[np.float32]:
        """Return the scores, float32 (texts, labels)."""

    async def explain(self, text: str) -> tuple[TokenWeight, ...]:
        """Return every token of a text with its attention weight."""
