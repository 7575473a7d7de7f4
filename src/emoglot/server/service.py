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
from emoglot.analysis import Analysis, TokenWeight
from emoglot.arguments import check_languages
from emoglot.encoders import EMBEDDED_MODEL
from emoglot.errors import DataError, ModelError
from emoglot.languages import list_languages
from emoglot.model import load
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

    analysis: Analysis  # of this text alone
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
        language = check_languages(request.language, len(texts))
        assert not isinstance(language, list)
        labels = self._model.labels_
        if unknown := sorted(set(request.threshold) - set(labels)):
            raise DataError(f"a threshold is for one of the labels {', '.join(labels)}, got {unknown[0]!r}")
        strict = self._strict_thresholds(request)
        counts = await self._count_tokens(texts)
        items = [Item(text, count, language, request.explain) for text, count in zip(texts, counts, strict=True)]
        scored = await self._batcher.submit(items)
        never = [] if strict is None else self._model.strictness.never_given(labels, request.precision, request.recall)
        return {
            "model": {"name": self.name, "version": __version__},
            "results": [self._result(item, strict, request) for item in scored],
            "never_given": never,
        }

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
            sentiment=bool(state.sentiment),
            strictness=state.strictness is not None,
            card=card.read_text(encoding="utf-8") if card.is_file() else "",
        )

    def _own_thresholds(self, language: str) -> dict[str, float | None] | None:
        state = self._model.state
        thresholds = state.thresholds_for(language)
        if thresholds is state.thresholds:
            return None
        return dict(zip(state.labels, listed(thresholds), strict=True))

    def _strict_thresholds(self, request: PredictRequest) -> NDArray[np.float64] | None:
        """Return the thresholds for the precision or recall that was asked for."""
        if request.precision is None and request.recall is None:
            return None
        return self._model.strictness.thresholds(request.precision, request.recall)

    async def _count_tokens(self, texts: Sequence[str]) -> list[int]:
        count = self._model.encoder.count_tokens
        is_quick = sum(map(len, texts)) <= _QUICK_CHARACTERS
        counts = count(texts) if is_quick else await asyncio.to_thread(count, texts)
        return [int(tokens) for tokens in counts]

    def _score(self, items: Sequence[Item]) -> list[Scored]:
        analysis = self._model.analyse([item.text for item in items], [item.language for item in items])
        return [
            Scored(analysis.take([row]), self._model.explain(item.text) if item.explain else None)
            for row, item in enumerate(items)
        ]

    def _result(self, scored: Scored, strict: NDArray[np.float64] | None, request: PredictRequest) -> dict[str, Any]:
        state, analysis = self._model.state, scored.analysis
        own = state.thresholds_for(analysis.sure_languages()[0]) if strict is None else strict
        cuts = [request.threshold.get(name, cut) for name, cut in zip(state.labels, own, strict=True)]
        is_read = analysis.is_read[:, None]
        chosen = decide(analysis.scores, np.array(cuts), single_label=state.config.single_label) & is_read
        (prediction,) = analysis.predictions(chosen, state.labels)
        result = asdict(prediction) | {"labels": list(prediction.labels)}
        if request.top_k:
            ranked = sorted(prediction.scores.items(), key=lambda item: -item[1])
            result["scores"] = dict(ranked[: request.top_k])
        if scored.tokens is not None:
            result["tokens"] = [asdict(token) for token in scored.tokens]
            result["thresholds"] = dict(zip(state.labels, listed(np.array(cuts)), strict=True))
        return result
