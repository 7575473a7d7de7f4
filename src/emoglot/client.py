"""A client of the service that can stand in for a local model: the same questions, the same answers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emoglot.errors import DataError, EmoglotError, MissingExtraError, ModelError
from emoglot.model import Prediction, TokenWeight, check_texts

# A busy or restarting server is asked again after 0.2, 0.4, 0.8 … seconds, or when it says.
RETRIES = 5
BACKOFF = 0.2
_TRY_AGAIN = (408, 429, 502, 503, 504)
# As a text in JSON: a character takes up to six bytes for an escape, and two quotes and a comma go with it.
_BYTES_PER_CHARACTER = 6


class Client:
    """A model that is elsewhere; what it is asked and what it answers is as of a local one."""

    def __init__(self, url: str, *, token: str | None = None, timeout: float = 60.0, retries: int = RETRIES) -> None:
        """Take the address of a service, such as http://127.0.0.1:8000, and its bearer token if it has one."""
        try:
            import urllib3
        except ImportError as error:
            raise MissingExtraError("urllib3", "client", "asking a service") from error
        if not url.startswith(("http://", "https://")):
            raise DataError(f"the address of a service begins with http:// or https://, got {url!r}")
        self._url = url.rstrip("/")
        headers = {"content-type": "application/json"} | ({"authorization": f"Bearer {token}"} if token else {})
        again = urllib3.Retry(
            total=retries,
            backoff_factor=BACKOFF,
            status_forcelist=_TRY_AGAIN,
            allowed_methods=None,  # asking twice changes nothing
            raise_on_status=False,
        )
        self._http = urllib3.PoolManager(headers=headers, retries=again, timeout=urllib3.Timeout(timeout))

    @property
    def labels_(self) -> tuple[str, ...]:
        """The labels, in the order of the columns of `predict_proba`."""
        return tuple(label["id"] for label in self._model["labels"])

    @property
    def thresholds_(self) -> dict[str, float]:
        """The score from which each label is given; infinity for one that is never given."""
        thresholds = {label["id"]: label["threshold"] for label in self._model["labels"]}
        return {name: np.inf if value is None else value for name, value in thresholds.items()}

    def predict(self, texts: Iterable[str], language: str | Sequence[str] | None = None) -> list[Prediction]:
        """Give the labels of every text, possibly none; `language` is the code of all texts, or one for each."""
        texts = check_texts(texts)
        if language is None or isinstance(language, str):
            return list(self._predict(texts, language))
        if len(language) != len(texts):
            raise DataError(f"language is one code, or one for each text, got {len(language)} for {len(texts)} texts")
        answers: dict[int, Prediction] = {}
        for code in dict.fromkeys(language):
            rows = [row for row, own in enumerate(language) if own == code]
            answers |= dict(zip(rows, self._predict([texts[row] for row in rows], code), strict=True))
        return [answers[row] for row in range(len(texts))]

    def predict_proba(self, texts: Iterable[str]) -> NDArray[np.float32]:
        """Give the scores, float32 (texts, labels)."""
        rows = [[prediction.scores[name] for name in self.labels_] for prediction in self.predict(texts)]
        return np.array(rows, dtype=np.float32).reshape(-1, len(self.labels_))

    def explain(self, text: str) -> tuple[TokenWeight, ...]:
        """Give every token of a text with its attention weight; the weights sum to 1."""
        check_texts([text])
        (result,) = self._ask("POST", "/v1/predict", {"text": text, "explain": True})["results"]
        return tuple(TokenWeight(**token) for token in result["tokens"])

    def close(self) -> None:
        """Close the connections."""
        self._http.clear()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @cached_property
    def _model(self) -> dict[str, Any]:
        return self._ask("GET", "/v1/model")

    def _predict(self, texts: Sequence[str], language: str | None) -> Iterator[Prediction]:
        for chunk in self._chunks(texts):
            answer = self._ask("POST", "/v1/predict", {"texts": chunk, "language": language})
            for result in answer["results"]:
                yield Prediction(tuple(result["labels"]), result["scores"], result["truncated"], result["unreadable"])

    def _chunks(self, texts: Sequence[str]) -> Iterator[list[str]]:
        """Cut a list into requests that the service takes."""
        limits = self._model["limits"] if len(texts) > 1 else None
        chunk: list[str] = []
        size = 0
        for text in texts:
            needed = _BYTES_PER_CHARACTER * len(text) + 4
            is_full = limits and (len(chunk) == limits["texts"] or size + needed > limits["body_bytes"] - 1024)
            if chunk and is_full:
                yield chunk
                chunk, size = [], 0
            chunk.append(text)
            size += needed
        if chunk:
            yield chunk

    def _ask(self, method: str, path: str, content: Any = None) -> dict[str, Any]:
        import urllib3

        body = None if content is None else json.dumps(content).encode()
        try:
            response = self._http.request(method, self._url + path, body=body)
        except urllib3.exceptions.HTTPError as error:
            raise EmoglotError(f"the service at {self._url} can't be reached: {error}") from error
        try:
            answer = json.loads(response.data)
        except ValueError as error:
            raise EmoglotError(f"{self._url} does not answer like a service of emoglot: {error}") from error
        if response.status != 200:
            raise _error(response.status)(f"{self._url} answered {response.status}: {_detail(answer)}")
        return dict(answer)


def _error(status: int) -> type[EmoglotError]:
    return {413: DataError, 422: DataError, 404: ModelError}.get(status, EmoglotError)


def _detail(answer: Any) -> str:
    detail = answer.get("detail", answer) if isinstance(answer, dict) else answer
    if isinstance(detail, list):
        return "; ".join(f"{'.'.join(map(str, entry['loc']))}: {entry['msg']}" for entry in detail)
    return str(detail)
