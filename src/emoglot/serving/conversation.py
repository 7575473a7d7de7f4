"""The exchange between clients and the service, without I/O.

Each method of `Conversation` is a generator. It yields the next `Request` to send, or the seconds to wait before the
next one, and is resumed with the `Reply` or the `Failure` of the request. Its return value is the result.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from itertools import count
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from emoglot.errors import DataError, EmoglotError, ModelError, shown
from emoglot.inference.prediction import Prediction, Sentiment, TokenWeight
from emoglot.text.arguments import Languages, check_languages, check_texts

# If the service is busy or restarting, a request is repeated after 0.2, 0.4, 0.8 … seconds, or after Retry-After.
BACKOFF = 0.2
LONGEST_WAIT = 60.0  # seconds, even if Retry-After is longer
_TRY_AGAIN = (408, 429, 502, 503, 504)
_SURROGATE, _UNREAD = re.compile("[\ud800-\udfff]"), "\ufeff"
# Of a text in JSON: up to six bytes for an escaped character, and two quotes and a comma per text.
_BYTES_PER_CHARACTER = 6
_ERRORS: Mapping[int, type[EmoglotError]] = {413: DataError, 422: DataError, 404: ModelError}


@dataclass(frozen=True)
class Request:
    """What to send."""

    method: str
    url: str
    body: bytes | None = None


@dataclass(frozen=True)
class Reply:
    """What the service answered."""

    status: int
    body: bytes
    retry_after: str | None = None  # the header of that name


@dataclass(frozen=True)
class Failure:
    """Why there is no reply."""

    error: Exception


Step = Request | float
Outcome = Reply | Failure | None
T = TypeVar("T")
Steps = Generator[Step, Outcome, T]


class Conversation:
    """Builds the requests to one service and reads its replies."""

    def __init__(self, url: str, token: str | None, retries: int) -> None:
        """Check the address of a service, such as http://127.0.0.1:8000, and its bearer token if it has one."""
        if not url.startswith(("http://", "https://")):
            raise DataError(f"the address of a service must begin with http:// or https://, got {url!r}")
        if token is not None and not (token.isascii() and token.isprintable()):
            raise DataError("a token must be ASCII characters on one line, got others")
        if retries < 0:
            raise DataError(f"retries must be 0 or more, got {retries}")
        self._url = url.rstrip("/")
        self.headers = {"content-type": "application/json"} | ({"authorization": f"Bearer {token}"} if token else {})
        self._retries = retries
        self._described: dict[str, Any] | None = None

    def labels(self) -> Steps[tuple[str, ...]]:
        """Return the labels, in the order of the columns of `predict_proba`."""
        model = yield from self._model()
        return tuple(label["id"] for label in model["labels"])

    def thresholds(self) -> Steps[dict[str, float]]:
        """Return the score from which each label is predicted; infinity for one that is never predicted."""
        model = yield from self._model()
        thresholds = {label["id"]: label["threshold"] for label in model["labels"]}
        return {name: np.inf if value is None else value for name, value in thresholds.items()}

    def predict(
        self, texts: str | Iterable[str], language: Languages, precision: float | None, recall: float | None
    ) -> Steps[Prediction | list[Prediction]]:
        """Return the prediction of one text, or of each text of a list."""
        if isinstance(texts, str):
            predictions = yield from self.predict_all([texts], language, precision, recall)
            return predictions[0]
        return (yield from self.predict_all(texts, language, precision, recall))

    def predict_all(
        self,
        texts: Iterable[str],
        language: Languages = None,
        precision: float | None = None,
        recall: float | None = None,
    ) -> Steps[list[Prediction]]:
        """Return the prediction of each text of a list."""
        texts = check_texts(texts)
        codes = check_languages(language, len(texts))
        wanted = {"precision": precision, "recall": recall}
        strictness = {name: value if value is None else float(value) for name, value in wanted.items()}
        if not isinstance(codes, list):
            return (yield from self._predict(texts, {"language": codes} | strictness))
        answers: dict[int, Prediction] = {}
        for code in dict.fromkeys(codes):
            rows = [row for row, own in enumerate(codes) if own == code]
            own = yield from self._predict([texts[row] for row in rows], {"language": code} | strictness)
            answers |= dict(zip(rows, own, strict=True))
        return [answers[row] for row in range(len(texts))]

    def predict_proba(self, texts: Iterable[str]) -> Steps[NDArray[np.float32]]:
        """Return the scores, float32 (texts, labels)."""
        texts = check_texts(texts)
        labels = yield from self.labels()
        predictions = yield from self.predict_all(texts)
        # A text that was not read has no scores.
        rows = [[prediction.scores.get(name, 0.0) for name in labels] for prediction in predictions]
        return np.array(rows, dtype=np.float32).reshape(-1, len(labels))

    def explain(self, text: str) -> Steps[tuple[TokenWeight, ...]]:
        """Return every token of a text with its attention weight; the weights sum to 1."""
        check_texts([text])
        (result,) = yield from self._results({"text": _well_formed(text), "explain": True})
        spans = [(token["start"], token["end"], token["weight"]) for token in result["tokens"]]
        return tuple(TokenWeight(text[start:end], weight, start, end) for start, end, weight in spans)

    def _model(self) -> Steps[dict[str, Any]]:
        """Return the description of the model, which is requested once."""
        if self._described is None:
            self._described = yield from self._ask(Request("GET", f"{self._url}/v1/model"))
        return self._described

    def _predict(self, texts: Sequence[str], options: Mapping[str, Any]) -> Steps[list[Prediction]]:
        limits = (yield from self._model())["limits"] if len(texts) > 1 else None
        given = {name: value for name, value in options.items() if value is not None}
        predictions: list[Prediction] = []
        for chunk in _chunks(texts, limits):
            results = yield from self._results({"texts": [_well_formed(text) for text in chunk], **given})
            predictions += map(_prediction, results)
        return predictions

    def _results(self, question: dict[str, Any]) -> Steps[list[dict[str, Any]]]:
        body = json.dumps(question).encode()
        answer = yield from self._ask(Request("POST", f"{self._url}/v1/predict", body))
        if "results" not in answer:
            raise self._foreign(answer)
        return list(answer["results"])

    def _ask(self, request: Request) -> Steps[dict[str, Any]]:
        """Return the answer to a request, or raise an error."""
        reply = yield from self._send(request)
        try:
            answer = json.loads(reply.body)
        except ValueError:  # a proxy may answer in HTML
            answer = reply.body.decode("utf-8", "replace")
        if reply.status != 200:
            kind = _ERRORS.get(reply.status, EmoglotError)
            raise kind(f"{self._url} answered {reply.status}: {_detail(answer)}")
        if not isinstance(answer, dict):
            raise self._foreign(answer)
        return answer

    def _send(self, request: Request) -> Steps[Reply]:
        """Return the reply to a request; it is repeated if the service is busy, which is safe for predictions."""
        for attempt in count():
            outcome = yield request
            is_last = attempt >= self._retries
            wait = BACKOFF * 2**attempt
            if isinstance(outcome, Reply):
                if is_last or outcome.status not in _TRY_AGAIN:
                    return outcome
                wait = _seconds(outcome.retry_after, wait)
            elif isinstance(outcome, Failure) and is_last:
                raise EmoglotError(f"the service at {self._url} cannot be reached: {outcome.error}") from outcome.error
            yield min(wait, LONGEST_WAIT)
        raise AssertionError("count() has no end")

    def _foreign(self, answer: object) -> EmoglotError:
        return EmoglotError(
            f"{self._url} is not a service of emoglot, got the answer {shown(answer)}: check the address"
        )


def _chunks(texts: Sequence[str], limits: Mapping[str, int] | None) -> Iterator[list[str]]:
    """Split a list into requests that the service accepts."""
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


def _prediction(result: Mapping[str, Any]) -> Prediction:
    sentiment = result["sentiment"]
    return Prediction(
        tuple(result["labels"]),
        result["scores"],
        Sentiment(**sentiment) if sentiment else None,
        result["language"],
        result["truncated"],
        result["unreadable"],
    )


def _seconds(retry_after: str | None, otherwise: float) -> float:
    """Return the seconds of a Retry-After header, which contains seconds or a date."""
    if retry_after is None:
        return otherwise
    if retry_after.strip().isdecimal():
        return float(retry_after)
    try:
        until = parsedate_to_datetime(retry_after)
    except ValueError:
        return otherwise
    return max(0.0, (until - datetime.now(timezone.utc)).total_seconds()) if until.tzinfo else otherwise


def _detail(answer: Any) -> str:
    detail = answer.get("detail", answer) if isinstance(answer, dict) else answer
    if isinstance(detail, list) and all(isinstance(entry, dict) for entry in detail):
        return "; ".join(f"{'.'.join(map(str, entry.get('loc', ())))}: {entry.get('msg')}" for entry in detail)
    return detail if isinstance(detail, str) and isinstance(answer, dict) else shown(detail)


def _well_formed(text: str) -> str:
    """Replace lone surrogates, which cannot be sent, by another character that is not read."""
    return _SURROGATE.sub(_UNREAD, text)
