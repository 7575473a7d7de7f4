"""A client of the service that can stand in for a local model: the same questions, the same answers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emoglot.analysis import Prediction, Sentiment, TokenWeight
from emoglot.arguments import check_languages, check_texts
from emoglot.data.cells import shown
from emoglot.errors import DataError, EmoglotError, MissingExtraError, ModelError

# A busy or restarting server is asked again after 0.2, 0.4, 0.8 … seconds, or when it says.
RETRIES = 5
BACKOFF = 0.2
_TRY_AGAIN = (408, 429, 502, 503, 504)
_SURROGATE, _UNREAD = re.compile("[\ud800-\udfff]"), "\ufeff"
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
        if token is not None and not (token.isascii() and token.isprintable()):
            raise DataError("a token is made of ASCII characters on one line, got others")
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

    def predict(
        self,
        texts: Iterable[str],
        language: str | Sequence[str | None] | None = None,
        *,
        precision: float | None = None,
        recall: float | None = None,
    ) -> list[Prediction]:
        """Return the labels of every text, possibly none; the arguments are those of a local model."""
        texts = check_texts(texts)
        codes = check_languages(language, len(texts))
        wanted = {"precision": precision, "recall": recall}
        strictness = {name: value if value is None else float(value) for name, value in wanted.items()}
        if not isinstance(codes, list):
            return list(self._predict(texts, {"language": codes} | strictness))
        answers: dict[int, Prediction] = {}
        for code in dict.fromkeys(codes):
            rows = [row for row, own in enumerate(codes) if own == code]
            own = self._predict([texts[row] for row in rows], {"language": code} | strictness)
            answers |= dict(zip(rows, own, strict=True))
        return [answers[row] for row in range(len(texts))]

    def predict_proba(self, texts: Iterable[str]) -> NDArray[np.float32]:
        """Give the scores, float32 (texts, labels)."""
        # A text that was not read has no scores.
        rows = [[prediction.scores.get(name, 0.0) for name in self.labels_] for prediction in self.predict(texts)]
        return np.array(rows, dtype=np.float32).reshape(-1, len(self.labels_))

    def explain(self, text: str) -> tuple[TokenWeight, ...]:
        """Give every token of a text with its attention weight; the weights sum to 1."""
        check_texts([text])
        (result,) = self._results({"text": _well_formed(text), "explain": True})
        spans = [(token["start"], token["end"], token["weight"]) for token in result["tokens"]]
        return tuple(TokenWeight(text[start:end], weight, start, end) for start, end, weight in spans)

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

    def _predict(self, texts: Sequence[str], options: Mapping[str, Any]) -> Iterator[Prediction]:
        given = {name: value for name, value in options.items() if value is not None}
        for chunk in self._chunks(texts):
            for result in self._results({"texts": [_well_formed(text) for text in chunk], **given}):
                sentiment = result["sentiment"]
                yield Prediction(
                    tuple(result["labels"]),
                    result["scores"],
                    Sentiment(**sentiment) if sentiment else None,
                    result["language"],
                    result["truncated"],
                    result["unreadable"],
                )

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

    def _results(self, question: dict[str, Any]) -> list[dict[str, Any]]:
        answer = self._ask("POST", "/v1/predict", question)
        if "results" not in answer:
            raise EmoglotError(f"{self._url} does not answer like a service of emoglot: got {shown(answer)}")
        return list(answer["results"])

    def _ask(self, method: str, path: str, content: Any = None) -> dict[str, Any]:
        import urllib3

        body = None if content is None else json.dumps(content).encode()
        try:
            response = self._http.request(method, self._url + path, body=body)
        except urllib3.exceptions.HTTPError as error:
            raise EmoglotError(f"the service at {self._url} can't be reached: {error}") from error
        try:
            answer = json.loads(response.data)
        except ValueError:  # a proxy in between may answer in HTML
            answer = response.data.decode("utf-8", "replace")
        if response.status != 200:
            raise _error(response.status)(f"{self._url} answered {response.status}: {_detail(answer)}")
        if not isinstance(answer, dict):
            raise EmoglotError(f"{self._url} does not answer like a service of emoglot: got {shown(answer)}")
        return answer


def _error(status: int) -> type[EmoglotError]:
    return {413: DataError, 422: DataError, 404: ModelError}.get(status, EmoglotError)


def _detail(answer: Any) -> str:
    detail = answer.get("detail", answer) if isinstance(answer, dict) else answer
    if isinstance(detail, list) and all(isinstance(entry, dict) for entry in detail):
        return "; ".join(f"{'.'.join(map(str, entry.get('loc', ())))}: {entry.get('msg')}" for entry in detail)
    return detail if isinstance(detail, str) and isinstance(answer, dict) else shown(detail)


def _well_formed(text: str) -> str:
    """Half a character can't be sent; what is not read, as little as it is, stands in for it."""
    return _SURROGATE.sub(_UNREAD, text)
