"""Blocking and asynchronous clients of the service, with the interface of a local model."""

from __future__ import annotations

import asyncio
import threading
import time
import weakref
from collections.abc import AsyncIterator, Iterable
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from emoglot.errors import DataError, needs_extra
from emoglot.inference.prediction import Prediction, TokenWeight
from emoglot.inference.protocol import AsyncPredictor, Predictor, Wanted
from emoglot.serving.conversation import Conversation, Failure, Outcome, Reply, Request, Steps, T
from emoglot.text.arguments import Languages

if TYPE_CHECKING:
    import httpx2

    from emoglot.model import Model

RETRIES = 5
TIMEOUT = 60.0  # seconds to connect, and to receive each part of an answer


class Client:
    """A client of `emoglot serve` with the methods of `emoglot.Model`; it can be used in a `with` statement.

    Parameters
    ----------
    url
        The address of the service, such as http://127.0.0.1:8000.
    token
        The bearer token, if the service requires one.
    timeout
        Seconds to wait for a connection, and for each part of an answer.
    retries
        How often a request is repeated if the service is busy or cannot be reached.
    """

    def __init__(self, url: str, *, token: str | None = None, timeout: float = TIMEOUT, retries: int = RETRIES) -> None:
        self._conversation = Conversation(url, token, retries)
        self._http = _import_httpx().Client(**_options(url, self._conversation, timeout))
        weakref.finalize(self, self._http.close)  # for programs that do not call close()

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels, in the order of the columns of `predict_proba`."""
        return self._run(self._conversation.labels())

    @property
    def thresholds(self) -> dict[str, float]:
        """The score from which each label is predicted; infinity for one that is never predicted."""
        return self._run(self._conversation.thresholds())

    @overload  # a string is an iterable of strings, too
    def predict(  # type: ignore[overload-overlap]
        self, texts: str, language: str | None = None, *, precision: Wanted = None, recall: Wanted = None
    ) -> Prediction: ...

    @overload
    def predict(
        self, texts: Iterable[str], language: Languages = None, *, precision: Wanted = None, recall: Wanted = None
    ) -> list[Prediction]: ...

    def predict(
        self, texts: str | Iterable[str], language: Languages = None, *, precision: Wanted = None, recall: Wanted = None
    ) -> Prediction | list[Prediction]:
        """Return the labels of a text, or of each text of a list; the arguments are those of `Model.predict`."""
        return self._run(self._conversation.predict(texts, language, precision, recall))

    def predict_proba(self, texts: Iterable[str]) -> NDArray[np.float32]:
        """Return the scores, float32 (texts, labels)."""
        return self._run(self._conversation.predict_proba(texts))

    def explain(self, text: str) -> tuple[TokenWeight, ...]:
        """Return every token of a text with its attention weight; the weights sum to 1."""
        return self._run(self._conversation.explain(text))

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _run(self, steps: Steps[T]) -> T:
        outcome: Outcome = None
        try:
            while True:
                step = steps.send(outcome)
                outcome = self._send(step) if isinstance(step, Request) else _sleep(step)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]

    def _send(self, request: Request) -> Outcome:
        try:
            return _reply(self._http.request(request.method, request.url, content=request.body))
        except _import_httpx().HTTPError as error:
            return Failure(error)


class AsyncClient:
    """A client of `emoglot serve` for asyncio: the methods of `Client` as coroutines, also `labels` and `thresholds`.

    Each event loop has its own connections. The parameters are those of `Client`; it can be used in an `async with`
    statement.
    """

    def __init__(self, url: str, *, token: str | None = None, timeout: float = TIMEOUT, retries: int = RETRIES) -> None:
        self._conversation = Conversation(url, token, retries)
        self._options = _options(url, self._conversation, timeout)
        self._own = threading.local()  # the event loop of a thread, and its connections

    async def labels(self) -> tuple[str, ...]:
        """Return the labels, in the order of the columns of `predict_proba`."""
        return await self._run(self._conversation.labels())

    async def thresholds(self) -> dict[str, float]:
        """Return the score from which each label is predicted; infinity for one that is never predicted."""
        return await self._run(self._conversation.thresholds())

    @overload
    async def predict(  # type: ignore[overload-overlap]
        self, texts: str, language: str | None = None, *, precision: Wanted = None, recall: Wanted = None
    ) -> Prediction: ...

    @overload
    async def predict(
        self, texts: Iterable[str], language: Languages = None, *, precision: Wanted = None, recall: Wanted = None
    ) -> list[Prediction]: ...

    async def predict(
        self, texts: str | Iterable[str], language: Languages = None, *, precision: Wanted = None, recall: Wanted = None
    ) -> Prediction | list[Prediction]:
        """Return the labels of a text, or of each text of a list; the arguments are those of `Model.predict`."""
        return await self._run(self._conversation.predict(texts, language, precision, recall))

    async def predict_proba(self, texts: Iterable[str]) -> NDArray[np.float32]:
        """Return the scores, float32 (texts, labels)."""
        return await self._run(self._conversation.predict_proba(texts))

    async def explain(self, text: str) -> tuple[TokenWeight, ...]:
        """Return every token of a text with its attention weight; the weights sum to 1."""
        return await self._run(self._conversation.explain(text))

    async def close(self) -> None:
        """Close the connections."""
        await (await self._http()).aclose()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def _run(self, steps: Steps[T]) -> T:
        outcome: Outcome = None
        try:
            while True:
                step = steps.send(outcome)
                outcome = await (self._send(step) if isinstance(step, Request) else asyncio.sleep(step))
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]

    async def _send(self, request: Request) -> Outcome:
        try:
            http = await self._http()
            return _reply(await http.request(request.method, request.url, content=request.body))
        except _import_httpx().HTTPError as error:
            return Failure(error)

    async def _http(self) -> httpx2.AsyncClient:
        """Return the connections of the running event loop: those of another loop, perhaps closed, cannot be used."""
        loop = asyncio.get_running_loop()
        if getattr(self._own, "loop", None) is not loop:
            opened = _opened(self._options)
            self._own.http = await anext(opened)
            self._own.loop, self._own.opened = loop, opened
        return self._own.http  # type: ignore[no-any-return]


async def _opened(options: dict[str, Any]) -> AsyncIterator[httpx2.AsyncClient]:
    """Yield connections that are closed with the event loop: `asyncio.run` closes its generators first."""
    async with _import_httpx().AsyncClient(**options) as http:
        yield http


def _import_httpx() -> Any:
    # httpx2 continues httpx, which has had no release since 2024, and is a dependency of huggingface_hub.
    with needs_extra("client", "a client of the service"):
        import httpx2
    return httpx2


def _options(url: str, conversation: Conversation, timeout: float) -> dict[str, Any]:
    httpx = _import_httpx()
    try:
        httpx.URL(url)
    except httpx.InvalidURL as error:
        raise DataError(f"{url!r} is not the address of a service: {error}") from error
    # Proxies and passwords of the environment are ignored: texts are sent only to the given address.
    return {"headers": conversation.headers, "timeout": timeout, "follow_redirects": True, "trust_env": False}


def _sleep(seconds: float) -> Outcome:
    time.sleep(seconds)
    return None


def _reply(response: httpx2.Response) -> Reply:
    return Reply(response.status_code, response.content, response.headers.get("retry-after"))


if TYPE_CHECKING:  # mypy checks here that model and clients implement the protocols

    def _check(model: Model, client: Client, asynchronous: AsyncClient) -> tuple[Predictor, Predictor, AsyncPredictor]:
        return model, client, asynchronous
