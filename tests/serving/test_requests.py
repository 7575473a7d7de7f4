"""What a request may hold, and how the service answers one that breaks a rule."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest
import schemathesis

# Loaded with the tests, not by the first of them: pytest rewrites it, and CPython 3.11 fails to parse in two threads
# at once (gh-106905), as those that a test on Ray leaves behind may do.
import schemathesis.specs.openapi.schemas
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import emoglot
from emoglot.errors import EmoglotError
from tests.service import running


@pytest.mark.parametrize(
    ("body", "loc"),
    [
        ({}, []),
        ({"text": "a", "texts": ["b"]}, []),
        ({"text": 3}, ["text"]),
        ({"text": None}, ["text"]),
        ({"texts": ["a", None]}, ["texts", 1]),
        ({"text": "a", "threshold": {"joy": 2}}, ["threshold", "joy"]),
        ({"text": "a", "threshold": {"envy": 0.5}}, ["threshold"]),
        ({"text": "a", "threshold": {"e" * 30_000: 0.5}}, ["threshold"]),
        ({"text": "a", "top_k": 0}, ["top_k"]),
        ({"text": "a", "explain": "yes"}, ["explain"]),
        ({"text": "a", "explian": True}, ["explian"]),
        ({"text": "a", "language": 7}, ["language"]),
        ({"text": "a", "language": "no such language"}, ["language"]),
        ({"text": "a", "precision": 0}, ["precision"]),
        ({"text": "a", "precision": 0.5, "recall": 0.5}, []),
        ([], []),
        ({"text": "a", "threshold": {f"{number}": 2 for number in range(2000)}}, ["threshold"]),
        ({f"{number}": 0 for number in range(2000)}, []),
        (b"", []),
        (b"{", []),
        (b'{"text": "\xff\xfe"}', []),
        (b'{"text": "\\ud800"}', []),
        (b'{"text": "a", "top_k": ' + b"9" * 30 + b"}", ["top_k"]),
        (b'{"text": "a", "top_k": ' + b"9" * 5000 + b"}", []),
        (b'{"text": ' + b"[" * 10_000 + b"]" * 10_000 + b"}", []),
    ],
)
def test_a_malformed_request_names_the_field(service, body, loc):
    response = service.ask("/v1/predict", body)
    assert response.status == 422, response.data
    assert len(response.data) < 1000  # also if the request has thousands of problems
    problems = response.json()["detail"]
    assert problems[0]["loc"][: len(loc)] == loc
    assert problems[0]["msg"]


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        ({"texts": ["a"] * 51}, "50 texts, got 51"),
        ({"texts": [0] * 13_000}, "50 texts, got 13000"),
        ({"text": "a" * 5001}, "5000 characters, got 5001"),
        (b'{"text": "' + b"a" * 40_000 + b'"}', "40000 bytes"),
    ],
)
def test_a_request_that_is_too_large_names_the_limit(service, body, rule):
    response = service.ask("/v1/predict", body)
    assert response.status == 413
    assert rule in response.json()["detail"]


def test_a_body_without_a_declared_length_is_limited_too(service):
    def pieces() -> Iterator[bytes]:
        for _ in range(50):
            yield b"a" * 1000

    answer = httpx2.post(f"{service.url}/v1/predict", content=pieces(), timeout=30, trust_env=False)
    assert answer.status_code == 413


def test_openapi_is_kept(service):
    """schemathesis asks whatever the description allows and forbids; answers must be as it says."""
    schema = schemathesis.openapi.from_url(f"{service.url}/openapi.json")
    operations = [result.ok() for result in schema.get_all_operations()]
    paths = {"/v1/predict", "/v1/model", "/v1/report", "/healthz", "/readyz"}
    assert {operation.path for operation in operations} == paths
    # No schema can say which tables are scored; others are refused.
    operations = [operation for operation in operations if operation.path != "/v1/report"]

    @settings(max_examples=60, suppress_health_check=list(HealthCheck))
    @given(st.one_of([operation.as_strategy() for operation in operations]))
    def check(case) -> None:
        # No schema can list all codes and names of languages; others are refused.
        if isinstance(case.body, dict) and isinstance(case.body.get("language"), str):
            case.body["language"] = "de"
        case.call_and_validate()

    check()


def test_a_service_with_tokens_origins_and_logs(model_folder, tmp_path):
    options = ["--tokens", "one, two", "--origins", "https://a.example", "--log-texts", "--access-log", "--workers", 2]
    with running(tmp_path, "--model", model_folder, *options) as service:
        assert service.ask("/v1/model").status == 401
        assert service.ask("/metrics").status == 401
        for sent, reason in (({}, "is needed"), ({"Authorization": "Bearer three"}, "is wrong")):
            assert f"bearer token {reason}" in service.ask("/v1/model", **sent).json()["detail"]
        for wrong in ("Bearer three", "Bearer", "Basic one", "one"):
            refused = service.ask("/v1/predict", {"text": "a"}, authorization=wrong)
            assert refused.status == 401
            assert refused.headers["www-authenticate"] == "Bearer"
        for right in ("Bearer one", "bearer two"):
            answer = service.ask("/v1/predict", {"text": "told"}, authorization=right, origin="https://a.example")
            assert answer.status == 200
            assert answer.headers["access-control-allow-origin"] == "https://a.example"
        other = service.ask("/v1/predict", {"text": "a"}, authorization="Bearer one", origin="https://b.example")
        assert "access-control-allow-origin" not in other.headers
        assert service.ask("/healthz").status == 200
        assert service.ask("/openapi.json").json()["security"] == [{"token": []}]
        # Whichever of the two workers is asked, it counts for both.
        for _ in range(10):
            metrics = service.ask("/metrics", authorization="Bearer one").data
            assert b"emoglot_texts_total 3.0" in metrics
        with emoglot.Client(service.url, token="two") as client:
            assert client.predict(["told"])
        with pytest.raises(EmoglotError, match="401"):
            emoglot.Client(service.url).predict(["a"])
        assert "told" in service.log.read_text(encoding="utf-8")


def test_a_full_queue_says_when_to_ask_again(model_folder, tmp_path):
    with running(tmp_path, "--model", model_folder, "--max-texts", 400, "--max-queue", 400) as service:
        body = {"texts": [f"a crowd of texts {number}" * 20 for number in range(300)], "explain": True}
        with ThreadPoolExecutor(8) as clients:
            answers = list(clients.map(lambda _: service.ask("/v1/predict", body), range(8)))
        statuses = {answer.status for answer in answers}
        assert statuses == {200, 503}
        assert all(answer.headers["retry-after"] == "1" for answer in answers if answer.status == 503)
        # A client that asks again gets through.
        assert len(emoglot.Client(service.url).predict(body["texts"])) == 300
