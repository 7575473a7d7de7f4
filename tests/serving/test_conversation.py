"""What clients say to the service, without a network."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime

import pytest

from emoglot.errors import EmoglotError
from emoglot.serving.conversation import LONGEST_WAIT, Conversation, Failure, Outcome, Reply, Request, Steps

RESULT = {"labels": [], "scores": {}, "sentiment": None, "language": None, "truncated": False, "unreadable": False}


def answer(request: Request) -> Reply:
    """Answer like a service that accepts three texts at a time."""
    if request.body is None:
        described = {"labels": [{"id": "joy", "threshold": None}], "limits": {"texts": 3, "body_bytes": 4096}}
        return Reply(200, json.dumps(described).encode())
    asked = json.loads(request.body)
    results = [RESULT | {"language": asked.get("language")} for _ in asked["texts"]]
    return Reply(200, json.dumps({"results": results}).encode())


def run(steps: Steps, reply: Callable[[Request], Outcome] = answer) -> tuple[object, list[Request], list[float]]:
    """Return the result, the requests sent and the seconds waited."""
    requests: list[Request] = []
    waits: list[float] = []
    outcome: Outcome = None
    while True:
        try:
            step = steps.send(outcome)
        except StopIteration as end:
            return end.value, requests, waits
        if isinstance(step, Request):
            requests.append(step)
            outcome = reply(step)
        else:
            waits.append(step)
            outcome = None


def talk(retries: int = 5) -> Conversation:
    return Conversation("http://a.example/", None, retries)


def sizes(requests: Sequence[Request]) -> list[int]:
    return [len(json.loads(request.body)["texts"]) for request in requests if request.body]


def test_long_lists_are_cut_into_requests():
    found, requests, waits = run(talk().predict(["a"] * 7, None, None, None))
    assert len(found) == 7
    assert [request.url for request in requests] == ["http://a.example/v1/model"] + ["http://a.example/v1/predict"] * 3
    assert sizes(requests) == [3, 3, 1]
    assert waits == []


def test_long_texts_are_sent_in_requests_that_the_service_accepts():
    _, requests, _ = run(talk().predict(["a" * 300] * 4, None, None, None))
    assert sizes(requests) == [1, 1, 1, 1]


def test_languages_are_asked_for_one_by_one_and_put_in_order():
    found, requests, _ = run(talk().predict(["a"] * 5, ["en", None, "es", "en", None], None, None))
    assert [prediction.language for prediction in found] == ["en", None, "es", "en", None]
    assert sizes(requests) == [2, 2, 1]


def test_the_model_is_asked_for_once():
    conversation = talk()
    assert run(conversation.labels())[0] == ("joy",)
    found, requests, _ = run(conversation.thresholds())
    assert found == {"joy": float("inf")}
    assert requests == []


@pytest.mark.parametrize("broken", [Reply(503, b""), Reply(502, b"<html>"), Failure(OSError("refused"))])
def test_a_service_that_does_not_answer_is_asked_again_ever_later(broken):
    replies = iter([broken] * 5 + [None])
    found, requests, waits = run(
        talk().predict("a", None, None, None), lambda request: next(replies) or answer(request)
    )
    assert found.labels == ()
    assert len(requests) == 6
    assert waits == pytest.approx([0.2, 0.4, 0.8, 1.6, 3.2])
    with pytest.raises(EmoglotError, match=r"cannot be reached: refused|answered 50[23]"):
        run(talk(retries=2).predict("a", None, None, None), lambda _: broken)


def in_seconds(seconds: float) -> str:
    return format_datetime(datetime.now(timezone.utc) + timedelta(seconds=seconds), usegmt=True)


@pytest.mark.parametrize(
    ("header", "wait"),
    [
        ("7", 7),
        ("86400", LONGEST_WAIT),
        (in_seconds(-5), 0),
        (in_seconds(86_400), LONGEST_WAIT),
        ("soon", 0.2),
        ("", 0.2),
        ("-1", 0.2),
    ],
    ids=["seconds", "a day", "a past date", "a date tomorrow", "a word", "nothing", "a negative number"],
)
def test_a_busy_service_is_asked_again_when_it_says(header, wait):
    replies = iter([Reply(503, b"", header), None])
    _, _, waits = run(talk().predict("a", None, None, None), lambda request: next(replies) or answer(request))
    assert waits == [pytest.approx(wait)]


@pytest.mark.parametrize("status", [400, 401, 413, 422, 500])
def test_a_refusal_is_final(status):
    with pytest.raises(EmoglotError, match=f"answered {status}: because"):
        run(talk().predict("a", None, None, None), lambda _: Reply(status, b'{"detail": "because"}'))
