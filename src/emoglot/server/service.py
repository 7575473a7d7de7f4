"""The service without HTTP: a model behind a batcher, asked for texts, answering with plain dictionaries."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emoglot._version import __version__
from emoglot.encoders import EMBEDDED_MODEL
from emoglot.errors import DataError, ModelError
from emoglot.labels import names_where
from emoglot.languages import list_languages
from emoglot.model import Prediction, TokenWeight, load
from emoglot.persist import CARD_FILE, listed
from emoglot.server.batcher import Batcher, Item
from emoglot.server.metrics import Metrics
from emoglot.server.schemas import Label, LanguageInfo, Limits, ModelResponse, PredictRequest
from emoglot.server.settings import Settings
from emoglot.thresholds import decide

# Counting the tokens of more than this takes so long that other requests would feel it: a thread does it.
_QUICK_CHARACTERS = 20_000


@dataclass(frozen=True)
class Scored:
    """What the model says of a text."""

    prediction: Prediction
    tokens: tuple[TokenWeight, ...] | None


class Service:
    """Answers requests with a model."""

    def __init__(self, settings: Settings, metrics: Metrics) -> None:
        self.settings = settings
        self._model = load(settings.model_folder, encoder=settings.encoder or None)
        self._folder = settings.model_folder or EMBEDDED_MODEL
        self.name = self._model.encoder.name if settings.model_folder is None else self._folder.resolve().name
        self._batcher: Batcher[Scored] = Batcher(
            self._score,
            budget=settings.batch_tokens,
            wait=settings.batch_wait,
            limit=settings.max_queue,
            on_batch=metrics.on_batch,
            on_depth=metrics.on_depth,
        )
        self._worker: asyncio.Task[None] | None = None

    @property
    def labels(self) -> tuple[str, ...]:
        """What the model can say."""
        return self._model.labels_

    @property
    def ready(self) -> bool:
        """Whether requests are answered."""
        return self._worker is not None and not self._worker.done()

    async def start(self) -> None:
        """Begin to work; the first text, which is slow, is our own."""
        await asyncio.to_thread(self._model.predict, ["ready"])
        self._worker = asyncio.create_task(self._batcher.run())

    async def stop(self) -> None:
        """End; whoever was let in has been answered before."""
        if self._worker is not None:
            self._worker.cancel()
            with suppress(asyncio.CancelledError):
                await self._worker
        self._batcher.close()

    async def predict(self, request: PredictRequest) -> dict[str, Any]:
        """Answer a request."""
        texts = request.all_texts()
        thresholds = self._thresholds(request)
        counts = await self._count_tokens(texts)
        items = [Item(text, count, request.explain) for text, count in zip(texts, counts, strict=True)]
        scored = await self._batcher.submit(items)
        results = [self._result(item, thresholds, request.top_k) for item in scored]
        return {"model": {"name": self.name, "version": __version__}, "results": results}

    def describe(self) -> ModelResponse:
        """Say all that is known of the model."""
        state = self._model.state
        try:
            measured = list_languages(self._folder)
        except ModelError:  # nobody has measured the languages of a user's own model
            measured = []
        languages = [
            LanguageInfo(**asdict(language), threshold=self._own_thresholds(language.code)) for language in measured
        ]
        card = self._folder / CARD_FILE
        settings = self.settings
        return ModelResponse(
            name=self.name,
            version=__version__,
            labels=[Label.of_name(*pair) for pair in zip(state.labels, listed(state.thresholds), strict=True)],
            languages=languages,
            limits=Limits(texts=settings.max_texts, characters=settings.max_characters, body_bytes=settings.max_body),
            card=card.read_text(encoding="utf-8") if card.is_file() else "",
        )

    def _own_thresholds(self, language: str) -> dict[str, float | None] | None:
        state = self._model.state
        thresholds = state.thresholds_for(language)
        if thresholds is state.thresholds:
            return None
        return dict(zip(state.labels, listed(thresholds), strict=True))

    def _thresholds(self, request: PredictRequest) -> NDArray[np.float64]:
        own = self._model.state.thresholds_for(request.language)
        if not request.threshold:
            return own
        labels = self._model.labels_
        unknown = sorted(set(request.threshold) - set(labels))
        if unknown:
            raise DataError(f"a threshold is for one of the labels {', '.join(labels)}, got {unknown[0]!r}")
        return np.array([request.threshold.get(name, value) for name, value in zip(labels, own, strict=True)])

    async def _count_tokens(self, texts: Sequence[str]) -> list[int]:
        count = self._model.encoder.count_tokens
        is_quick = sum(map(len, texts)) <= _QUICK_CHARACTERS
        counts = count(texts) if is_quick else await asyncio.to_thread(count, texts)
        return [int(tokens) for tokens in counts]

    def _score(self, items: Sequence[Item]) -> list[Scored]:
        predictions = self._model.predict([item.text for item in items])
        return [
            Scored(prediction, self._model.explain(item.text) if item.explain else None)
            for prediction, item in zip(predictions, items, strict=True)
        ]

    def _result(self, scored: Scored, thresholds: NDArray[np.float64], top_k: int | None) -> dict[str, Any]:
        prediction = scored.prediction
        scores = np.array([list(prediction.scores.values())], dtype=np.float32)
        single_label = self._model.config.single_label
        chosen = decide(scores, thresholds, single_label=single_label)[0] & (not prediction.unreadable)
        ranked = sorted(prediction.scores.items(), key=lambda item: -item[1])[:top_k] if top_k else ()
        result = {
            "labels": list(names_where(chosen, self._model.labels_)),
            "scores": dict(ranked) or prediction.scores,
            "truncated": prediction.truncated,
            "unreadable": prediction.unreadable,
        }
        if scored.tokens is not None:
            result["tokens"] = [asdict(token) for token in scored.tokens]
        return result
