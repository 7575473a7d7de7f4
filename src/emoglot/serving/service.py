"""The service without HTTP: a model behind a batcher, which turns requests into JSON."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic_core import to_json

from emoglot._version import __version__
from emoglot.encoders.registry import BUNDLED_MODEL
from emoglot.errors import DataError, ModelError, shown
from emoglot.evaluation.evidence import list_languages
from emoglot.inference.checks import read_page
from emoglot.inference.description import CARD_FILE
from emoglot.inference.folder import listed
from emoglot.inference.hub import model_name
from emoglot.inference.prediction import Analysis, Prediction
from emoglot.inference.thresholds import decide
from emoglot.model import Model, load
from emoglot.serving.batcher import Batcher, Item
from emoglot.serving.metrics import ServiceMetrics
from emoglot.serving.schemas import Label, LanguageInfo, Limits, ModelResponse, PredictRequest
from emoglot.serving.settings import Settings
from emoglot.text.arguments import check_languages
from emoglot.text.limit import READ_CHARACTERS

# Estimates for the batcher. The cost depends on the bytes of a text, about four per token; with `explain`, the text is
# read once more, separately.
BYTES_PER_TOKEN = 4
EXPLAIN_COST = 4


@dataclass(frozen=True)
class Question:
    """The options of a request for a text."""

    request: PredictRequest
    language: str | None
    strict: NDArray[np.float64] | None  # thresholds for the requested precision or recall


def load_model(settings: Settings) -> Model:
    """Load the model that the settings name."""
    return load(settings.model_folder, encoder=settings.encoder or None)


class Service:
    """Answers requests with a model."""

    def __init__(self, settings: Settings, metrics: ServiceMetrics, model: Model | None = None) -> None:
        self.settings = settings
        self._model = model or load_model(settings)
        self._folder = settings.model_folder or BUNDLED_MODEL
        self.name = self._model.encoder.name if settings.model_folder is None else model_name(self._folder)
        self._batcher: Batcher[bytes] = Batcher(
            self._score,
            budget=settings.batch_tokens,
            wait=settings.batch_wait,
            limit=settings.max_queue,
            on_batch=metrics.on_batch,
            on_depth=metrics.on_depth,
        )
        self._worker: asyncio.Task[None] | None = None
        self.description = self._describe()  # once, so that later changes of the files have no effect

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the model."""
        return self._model.labels

    @property
    def ready(self) -> bool:
        """Whether requests are answered."""
        return self._worker is not None and not self._worker.done()

    async def start(self) -> None:
        """Start the worker after a first prediction, which is slow."""
        await asyncio.to_thread(self._model.predict, ["ready"])
        self._worker = asyncio.create_task(self._batcher.run())

    async def stop(self) -> None:
        """Stop the worker; uvicorn has waited for all answers before."""
        if self._worker is not None:
            self._worker.cancel()
            with suppress(asyncio.CancelledError):
                await self._worker
        self._batcher.close()

    async def predict(self, request: PredictRequest) -> bytes:
        """Return the answer to a request, in JSON."""
        texts = request.all_texts()
        language = check_languages(request.language, len(texts))
        assert not isinstance(language, list)
        labels = self._model.labels
        if unknown := sorted(set(request.threshold) - set(labels)):
            raise DataError(f"threshold must be for labels among {', '.join(labels)}, got {shown(unknown[0])}")
        strict: NDArray[np.float64] | None = None
        never: list[str] = []
        if request.precision is not None or request.recall is not None:
            strict = self._model.strictness.thresholds(request.precision, request.recall)
            never = self._model.strictness.never_given(labels, request.precision, request.recall)
        results = await self._batcher.submit([_item(text, request, language, strict) for text in texts])
        model = to_json({"name": self.name, "version": __version__})
        return b'{"model":%s,"results":[%s],"never_given":%s}' % (model, b",".join(results), to_json(never))

    def _describe(self) -> ModelResponse:
        """Return the description of the model."""
        state = self._model.state
        try:
            measured = list_languages(self._folder)
        except ModelError:  # the languages of the user's own models are usually not measured
            measured = []
        languages = [
            LanguageInfo(**asdict(language), threshold=self._own_thresholds(language.code)) for language in measured
        ]
        settings = self.settings
        return ModelResponse(
            name=self.name,
            version=__version__,
            labels=[Label.of_name(*pair) for pair in zip(state.labels, listed(state.thresholds), strict=True)],
            languages=languages,
            limits=Limits(texts=settings.max_texts, characters=settings.max_characters, body_bytes=settings.max_body),
            sentiment=bool(state.sentiment),
            strictness=state.strictness is not None,
            card=read_page(self._folder, CARD_FILE) or "",
        )

    def _own_thresholds(self, language: str) -> dict[str, float | None] | None:
        state = self._model.state
        thresholds = state.thresholds_for(language)
        if thresholds is state.thresholds:
            return None
        return dict(zip(state.labels, listed(thresholds), strict=True))

    def _score(self, items: Sequence[Item]) -> list[bytes]:
        """Return the result of each text as JSON, so that large requests do not block the event loop."""
        texts = [item.text for item in items]
        analysis = self._model.analyse(texts, [item.question.language for item in items])
        thresholds = self._thresholds(analysis, items)
        is_single = self._model.config.single_label
        chosen = decide(analysis.scores, thresholds, analysis.is_read, single_label=is_single)
        predictions = analysis.predictions(chosen, self.labels)
        return [to_json(self._result(*row)) for row in zip(predictions, thresholds, items, strict=True)]

    def _thresholds(self, analysis: Analysis, items: Sequence[Item]) -> NDArray[np.float64]:
        """Return the thresholds (texts, labels): those of the language, unless the request sets others."""
        thresholds = self._model.state.thresholds_of(analysis.sure_languages(), analysis.is_named.tolist())
        for row, item in zip(thresholds, items, strict=True):
            if item.question.strict is not None:
                row[:] = item.question.strict
            for name, threshold in item.question.request.threshold.items():
                row[self.labels.index(name)] = threshold
        return thresholds

    def _result(self, prediction: Prediction, thresholds: NDArray[np.float64], item: Item) -> dict[str, Any]:
        """Return the result of one text."""
        request: PredictRequest = item.question.request
        result = dict(vars(prediction))
        if request.top_k:
            ranked = sorted(prediction.scores.items(), key=lambda pair: -pair[1])
            others = [name for name, _ in ranked[: request.top_k]]
            result["scores"] = {name: score for name, score in ranked if name in (*others, *prediction.labels)}
        if request.explain:
            result["tokens"] = self._model.explain(item.text)
            result["thresholds"] = dict(zip(self.labels, listed(thresholds), strict=True))
        return result


def _item(text: str, request: PredictRequest, language: str | None, strict: NDArray[np.float64] | None) -> Item:
    """Return a text with its estimated cost."""
    cost = 2 + len(text[:READ_CHARACTERS].encode("utf-8", "surrogatepass")) // BYTES_PER_TOKEN
    return Item(text, cost * (EXPLAIN_COST if request.explain else 1), Question(request, language, strict))
