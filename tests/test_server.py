"""The real service over a real socket, with a tiny model."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import fields, replace
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest
import urllib3

import emoglot
from emoglot.emotions import EMOTIONS
from emoglot.errors import DataError, EmoglotError, UsageError
from emoglot.server.batcher import Batcher, Item, QueueFullError
from emoglot.server.settings import Settings, variable
from tests.service import Running, running

TEXTS = ["What a wonderful day", "Estoy furioso", "أنا خائف من الليل", "😀", "", "x" * 500]


@pytest.fixture(scope="module")
def service(model_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    limits = ["--max-texts", 50, "--max-characters", 5000, "--max-body", 40_000, "--max-seconds", 3]
    with running(tmp_path_factory.mktemp("service"), "--model", model_folder, *limits) as found:
        yield found


@pytest.fixture(scope="module")
def local(model_folder: Path) -> emoglot.EmotionClassifier:
    return emoglot.load(model_folder)


def results_of(response: urllib3.BaseHTTPResponse) -> list[dict]:
    assert response.status == 200, response.data
    return response.json()["results"]


def test_answers_are_those_of_the_local_model(service, local):
    response = service.ask("/v1/predict", {"texts": TEXTS, "explain": True})
    assert response.json()["model"] == {"name": "tiny-model", "version": emoglot.__version__}
    for text, expected, result in zip(TEXTS, local.predict(TEXTS), results_of(response), strict=True):
        assert tuple(result["labels"]) == expected.labels
        assert result["scores"] == pytest.approx(expected.scores, abs=1e-6)
        assert (result["truncated"], result["unreadable"]) == (expected.truncated, expected.unreadable)
        tokens = [emoglot.TokenWeight(**token) for token in result["tokens"]]
        assert [(token.token, token.start, token.end) for token in tokens] == [
            (token.token, token.start, token.end) for token in local.explain(text)
        ]


def test_one_text_has_one_result_without_tokens(service):
    (result,) = results_of(service.ask("/v1/predict", {"text": TEXTS[0]}))
    assert set(result) == {"labels", "scores", "sentiment", "language", "truncated", "unreadable"}


def test_a_precision_can_be_asked_for(service, local):
    for wanted in ({"precision": 0.9}, {"recall": 1.0}):
        response = service.ask("/v1/predict", {"texts": TEXTS, **wanted})
        assert [tuple(result["labels"]) for result in results_of(response)] == [
            prediction.labels for prediction in local.predict(TEXTS, **wanted)
        ]
        assert response.json()["never_given"] == local.strictness.never_given(
            local.labels_, wanted.get("precision"), wanted.get("recall")
        )


def test_thresholds_are_told_with_an_explanation(service, local):
    """Those that were used: of the model, of the precision that was asked for, or given."""
    usual = local.thresholds_
    strict = dict(zip(local.labels_, local.strictness.thresholds(0.9, None), strict=True))
    for asked, expected in (
        ({}, usual),
        ({"precision": 0.9}, strict),
        ({"precision": 0.9, "threshold": {"joy": 0.25}}, strict | {"joy": 0.25}),
    ):
        for result in results_of(service.ask("/v1/predict", {"texts": TEXTS, "explain": True, **asked})):
            told = {name: np.inf if cut is None else cut for name, cut in result["thresholds"].items()}
            assert told == pytest.approx(expected)
            assert result["labels"] == [name for name, score in result["scores"].items() if score >= told[name]]


def test_a_precision_is_refused_by_a_model_without_a_table_of_it(local, tmp_path):
    plain = emoglot.EmotionClassifier._from_state(replace(local.state, strictness=None), local.encoder)
    with running(tmp_path, "--model", plain.save(tmp_path / "plain")) as service:
        assert service.ask("/v1/model").json()["strictness"] is False
        for name in ("precision", "recall"):
            response = service.ask("/v1/predict", {"text": "a", name: 0.5})
            assert response.status == 422
            assert response.json()["detail"][0]["loc"] == [name]
            assert "no table of precision and recall" in response.json()["detail"][0]["msg"]


def test_what_can_not_be_read_has_no_scores(service):
    for result in results_of(service.ask("/v1/predict", {"texts": ["", "  "]})):
        assert (result["labels"], result["scores"], result["sentiment"]) == ([], {}, None)


def test_a_report_is_made_of_a_scored_table(service, local):
    pytest.importorskip("polars")
    names = ["text", "time", "source", "labels", *local.labels_]
    lines = [",".join(names)]
    for day, prediction in enumerate(local.predict(TEXTS), start=1):
        labels = f'"{",".join(prediction.labels)}"'
        scores = [f"{prediction.scores.get(name, 0):.5f}" for name in local.labels_]
        lines.append(",".join([f"text {day}", f"2026-03-{day:02d}", "<b>shop</b>", labels, *scores]))
    table = "\n".join(lines).encode()
    response = service.ask("/v1/report?name=mine.csv&time=time&group=source", table)
    assert response.status == 200, response.data
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    page = response.data.decode()
    assert "Emotions in mine.csv" in page
    assert "&lt;b&gt;shop&lt;/b&gt;" in page
    assert "<b>shop" not in page
    for wrong, path in ((b"a,b\n1,2\n", ""), (table, "?time=nothing"), (b"", "")):
        response = service.ask(f"/v1/report{path}", wrong)
        assert response.status == 422
        assert isinstance(response.json()["detail"], str)


def test_no_texts_have_no_results(service):
    assert results_of(service.ask("/v1/predict", {"texts": []})) == []


def test_thresholds_can_be_given_for_each_label(service, local):
    given = {"joy": 0.0, "anger": 1.0}
    results = results_of(service.ask("/v1/predict", {"texts": TEXTS[:3], "threshold": given}))
    for result, expected in zip(results, local.predict(TEXTS[:3]), strict=True):
        assert "joy" in result["labels"]
        assert "anger" not in result["labels"]
        assert set(result["labels"]) - {"joy"} == set(expected.labels) - {"joy", "anger"}


def test_top_k_keeps_the_highest_scores(service, local):
    (result,) = results_of(service.ask("/v1/predict", {"text": TEXTS[0], "top_k": 2}))
    highest = sorted(local.predict([TEXTS[0]])[0].scores.items(), key=lambda item: -item[1])[:2]
    assert list(result["scores"]) == [name for name, _ in highest]


def test_the_model_is_described(service, local):
    described = service.ask("/v1/model").json()
    assert [label["id"] for label in described["labels"]] == list(local.labels_)
    assert {label["id"]: label["threshold"] for label in described["labels"]} == local.thresholds_
    kinds = {label["id"]: (label["kind"], label["opposite"], label["of"]) for label in described["labels"]}
    assert kinds["joy"] == ("primary", "sadness", None)
    assert kinds["love"] == ("dyad", None, ["joy", "trust"])
    assert described["limits"] == {"texts": 50, "characters": 5000, "body_bytes": 40_000}
    assert described["card"].startswith("# tiny-model")
    assert described["languages"] == []  # nobody has measured those of this model


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
        ({"text": "a", "top_k": 0}, ["top_k"]),
        ({"text": "a", "explain": "yes"}, ["explain"]),
        ({"text": "a", "explian": True}, ["explian"]),
        ({"text": "a", "language": 7}, ["language"]),
        ({"text": "a", "language": "no such language"}, ["language"]),
        ({"text": "a", "precision": 0}, ["precision"]),
        ({"text": "a", "precision": 0.5, "recall": 0.5}, []),
        ([], []),
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
    problems = response.json()["detail"]
    assert problems[0]["loc"][: len(loc)] == loc
    assert problems[0]["msg"]


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        ({"texts": ["a"] * 51}, "50 texts, got 51"),
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

    parts = urlsplit(service.url)
    with urllib3.HTTPConnectionPool(parts.hostname, parts.port) as pool:
        assert pool.urlopen("POST", "/v1/predict", body=pieces(), chunked=True, retries=False).status == 413


def connect(service: Running) -> socket.socket:
    parts = urlsplit(service.url)
    return socket.create_connection((parts.hostname, parts.port), timeout=30)


def test_a_slow_body_is_given_up_and_blocks_nobody(service):
    with connect(service) as slow:
        slow.sendall(b"POST /v1/predict HTTP/1.1\r\nhost: a\r\ncontent-length: 100\r\n\r\n{")
        assert results_of(service.ask("/v1/predict", {"text": "meanwhile"}))
        assert slow.recv(1000).startswith(b"HTTP/1.1 408")


def test_a_client_that_vanishes_blocks_nobody(service):
    body = json.dumps({"texts": ["a vanishing client"] * 50}).encode()
    head = b"POST /v1/predict HTTP/1.1\r\nhost: a\r\ncontent-length: %d\r\n\r\n" % len(body)
    for _ in range(20):
        with connect(service) as gone:
            gone.sendall(head + body)
    assert results_of(service.ask("/v1/predict", {"text": "still here"}))
    deadline = time.monotonic() + 20
    while b"emoglot_queue_texts 0.0" not in service.ask("/metrics").data:
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize("flood", [b"x-a: " + b"b" * 2**20, b"x-a: b\r\n" * 2**17], ids=["long", "many"])
def test_a_flood_of_headers_is_refused(service, flood):
    with connect(service) as client:
        try:
            client.sendall(b"GET / HTTP/1.1\r\n" + flood)
            answer = client.recv(1000)
        except (ConnectionResetError, BrokenPipeError):
            answer = b"HTTP/1.1 4"  # it hung up while we were still sending
        assert answer.startswith(b"HTTP/1.1 4")
    assert service.ask("/healthz").status == 200


@pytest.mark.parametrize(
    "path",
    ["/page/../app.py", "/page/%2e%2e/app.py", "/page/..%2fapp.py", "/page//etc/passwd", "/swagger/../../x", "/page/"],
)
def test_no_path_leads_out_of_the_page_folder(service, path):
    with connect(service) as client:
        client.sendall(f"GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n".encode())
        answer = client.makefile("rb").read()
    assert b"HTTP/1.1 404" in answer[:20]


def test_what_is_asked_is_not_reflected(service):
    attack = "<script>alert(1)</script>"
    for response in (
        service.ask(f"/{attack}"),
        service.ask("/v1/predict", {"text": 1, attack: 1}),
        service.ask("/v1/predict", {"text": attack, "threshold": {attack: 1}}),
    ):
        assert "text/html" not in response.headers["content-type"]
        assert response.headers["x-content-type-options"] == "nosniff"
        assert "default-src 'self'" in response.headers["content-security-policy"]


def test_pages_and_probes(service):
    assert b"<html" in service.ask("/").data
    assert service.ask("/docs").status == 200
    assert service.ask("/swagger/swagger-ui-bundle.js").status == 200
    glossary = service.ask("/emotions")
    assert glossary.headers["content-type"].startswith("text/html")
    assert all(escape(emotion.definition) in glossary.data.decode() for emotion in EMOTIONS)
    assert b"<script" not in glossary.data
    assert service.ask("/healthz").json() == {"status": "alive"}
    assert service.ask("/readyz").json() == {"status": "ready"}
    assert service.ask("/v1/predict").status == 405


def test_metrics_count_requests_texts_tokens_and_batches(service):
    def figures() -> dict[str, float]:
        lines = service.ask("/metrics").data.decode().splitlines()
        return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines if line[0] != "#")}

    before = figures()
    results_of(service.ask("/v1/predict", {"texts": ["one two", "three"]}))
    after = figures()
    grown = {name: value - before.get(name, 0) for name, value in after.items()}
    assert grown["emoglot_texts_total"] == 2
    assert grown["emoglot_tokens_total"] >= 3
    assert grown["emoglot_batch_texts_sum"] == 2
    assert grown['emoglot_requests_total{path="/v1/predict",status="200"}'] == 1
    assert grown['emoglot_request_seconds_count{path="/v1/predict"}'] == 1


def test_paths_that_do_not_exist_are_counted_together(service):
    for number in range(3):
        service.ask(f"/no/such/{number}")
    assert b"/no/such" not in service.ask("/metrics").data


def test_many_clients_get_their_own_answers_in_order(service, local):
    """64 clients ask at once for texts of their own; each answer is that of the local model."""
    texts = [[f"{word} number {client}" for word in ("happy", "furious", "afraid")] for client in range(64)]
    with ThreadPoolExecutor(64) as clients:
        answers = list(clients.map(lambda own: results_of(service.ask("/v1/predict", {"texts": own})), texts))
    for own, results in zip(texts, answers, strict=True):
        expected = local.predict_proba(own)
        found = np.array([[result["scores"][name] for name in local.labels_] for result in results])
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_no_text_is_logged(service):
    results_of(service.ask("/v1/predict", {"text": "my secret diary"}))
    assert "secret" not in service.log.read_text(encoding="utf-8")


def test_a_service_with_tokens_origins_and_logs(model_folder, tmp_path):
    options = ["--tokens", "one, two", "--origins", "https://a.example", "--log-texts", "--access-log", "--workers", 2]
    with running(tmp_path, "--model", model_folder, *options) as service:
        assert service.ask("/v1/model").status == 401
        assert service.ask("/metrics").status == 401
        for wrong in ("Bearer three", "Bearer ", "Basic one", "one"):
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


def test_sigterm_loses_nothing_that_was_accepted(model_folder, tmp_path):
    with running(tmp_path, "--model", model_folder) as service:
        body = {"texts": [f"accepted {number}" * 20 for number in range(500)], "explain": True}
        with ThreadPoolExecutor(4) as clients:
            asked = [clients.submit(service.ask, "/v1/predict", body) for _ in range(4)]
            while b"emoglot_queue_texts 2000.0" not in service.ask("/metrics").data:
                assert not any(answer.done() for answer in asked)
            service.process.send_signal(signal.SIGTERM)
            assert [len(results_of(answer.result())) for answer in asked] == [500] * 4
        assert service.process.wait(timeout=30) in (0, -signal.SIGTERM)


def wait_for_metrics(service: Running, is_so: Callable[[bytes], bool]) -> bytes:
    """Ask for the metrics until they are so, also while workers are being started anew."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with suppress(urllib3.exceptions.HTTPError):
            if is_so(told := service.ask("/metrics").data):
                return told
        time.sleep(0.01)
    raise AssertionError("the metrics never came to that")


def is_idle(told: bytes) -> bool:
    return b"emoglot_queue_texts 0.0" in told


def test_what_a_client_asked_that_has_gone_is_not_scored(model_folder, tmp_path):
    with running(tmp_path, "--model", model_folder) as service:
        body = json.dumps(
            {"texts": [f"nobody waits {number}" * 20 for number in range(1000)], "explain": True}
        ).encode()
        address = urlsplit(service.url)
        with socket.create_connection((address.hostname, address.port)) as client:
            head = f"POST /v1/predict HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n\r\n"
            client.sendall(head.encode() + body)
            wait_for_metrics(service, lambda told: not is_idle(told))
        told = wait_for_metrics(service, lambda told: is_idle(told) and b'status="499"' in told)
        assert b"emoglot_texts_total 1000.0" not in told


@pytest.mark.parametrize(
    "beginning",
    [
        b"",
        b"GET /healthz HTTP/1.1\r\n",
        b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\nGET /",
    ],
)
def test_headers_that_do_not_come_are_not_awaited_for_ever(beginning, model_folder, tmp_path):
    with running(tmp_path, "--model", model_folder, "--max-seconds", 0.3) as service:
        address = urlsplit(service.url)
        with socket.create_connection((address.hostname, address.port), timeout=10) as client:
            client.sendall(beginning)
            answer = b"".join(iter(lambda: client.recv(4096), b""))
        assert answer.count(b"HTTP/1.1 408 Request Timeout") == 1
        assert answer.endswith(b'{"detail":"a request must arrive within 0.3 seconds"}')


def test_a_connection_is_not_kept_by_bytes_that_are_no_request(model_folder, tmp_path):
    with running(tmp_path, "--model", model_folder, "--max-seconds", 0.3) as service:
        address = urlsplit(service.url)
        with socket.create_connection((address.hostname, address.port), timeout=10) as client:
            client.sendall(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")
            answer = b""
            while not answer.endswith(b'{"status":"alive"}'):
                answer += client.recv(4096)
            client.sendall(b"\r\n")
            rest = b"".join(iter(lambda: client.recv(4096), b""))
        assert rest.startswith(b"HTTP/1.1 408 Request Timeout")


def test_the_queue_of_a_killed_worker_is_forgotten(model_folder, tmp_path):
    with running(tmp_path, "--model", model_folder, "--workers", 2) as service:
        children = Path(f"/proc/{service.process.pid}/task/{service.process.pid}/children")
        if not children.exists():
            pytest.skip("this system does not list the children of a process")
        body = {"texts": [f"busy {number}" * 20 for number in range(900)], "explain": True}
        with ThreadPoolExecutor(4) as clients:
            asked = [clients.submit(service.ask, "/v1/predict", body) for _ in range(4)]
            wait_for_metrics(service, lambda told: not is_idle(told))
            for worker in children.read_text().split():
                if b"spawn_main" in Path(f"/proc/{worker}/cmdline").read_bytes():
                    os.kill(int(worker), signal.SIGKILL)
            assert any(answer.exception() for answer in asked)
        wait_for_metrics(service, is_idle)


def test_the_client_stands_in_for_a_model(service, local):
    with emoglot.Client(service.url) as client:
        assert client.labels_ == local.labels_
        assert client.thresholds_ == local.thresholds_
        many = [f"{text} {number}" for number in range(30) for text in TEXTS]  # more than one request
        assert [found.labels for found in client.predict(many)] == [found.labels for found in local.predict(many)]
        np.testing.assert_allclose(client.predict_proba(many), local.predict_proba(many), atol=1e-6)
        assert client.predict_proba([]).shape == (0, len(local.labels_))
        assert [token.token for token in client.explain(TEXTS[0])] == [token.token for token in local.explain(TEXTS[0])]
        languages = ["en", "es"] * 3
        assert [found.labels for found in client.predict(TEXTS, languages)] == [
            found.labels for found in local.predict(TEXTS, languages)
        ]
        for torn in ("so happy \ud83d", "\udc00", "a \ud800 b"):
            assert client.predict([torn]) == pytest.approx(local.predict([torn]))
            assert [token.token for token in client.explain(torn)] == [token.token for token in local.explain(torn)]
        missing = ["es", None, float("nan")]
        assert [found.labels for found in client.predict(TEXTS[:3], missing)] == [
            found.labels for found in local.predict(TEXTS[:3], missing)
        ]
        for either in (client, local):
            with pytest.raises(DataError, match="a language is a code such as 'en', got 7"):
                either.predict(["a"], [7])
        with pytest.raises(DataError, match="5000 characters"):
            client.predict(["a" * 6000])
        with pytest.raises(DataError, match="put it in a list"):
            client.predict("not a list")
        with pytest.raises(DataError, match="one for each text"):
            client.predict(["a"], ["en", "es"])


def test_a_client_whose_service_is_not_there_says_so():
    with pytest.raises(EmoglotError, match="can't be reached"):
        emoglot.Client("http://127.0.0.1:9", retries=0).predict(["a"])
    with pytest.raises(DataError, match="begins with http"):
        emoglot.Client("127.0.0.1:8000")
    with pytest.raises(DataError, match="ASCII"):
        emoglot.Client("http://127.0.0.1:9", token="s3cret”")


@pytest.mark.parametrize(
    ("status", "body", "kind", "message"),
    [
        (413, b"<html>too large</html>", DataError, "answered 413: '<html>too large"),
        (500, b"", EmoglotError, "answered 500"),
        (400, b'{"detail":["a"]}', EmoglotError, "answered 400"),
        (200, b'{"ok": true}', EmoglotError, "does not answer like a service"),
        (200, b"[1]", EmoglotError, "does not answer like a service"),
        (200, b"hello", EmoglotError, "does not answer like a service"),
    ],
)
def test_a_client_tells_what_something_else_answers(status, body, kind, message):
    class Other(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *given):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Other) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with emoglot.Client(f"http://127.0.0.1:{server.server_port}", retries=0) as client, pytest.raises(kind) as told:
            client.predict(["a"])
        server.shutdown()
    assert message in str(told.value)


def test_openapi_is_kept(service):
    """schemathesis asks whatever the description allows and forbids; answers must be as it says."""
    import schemathesis
    from hypothesis import HealthCheck, given, settings
    from hypothesis import strategies as st

    schema = schemathesis.openapi.from_url(f"{service.url}/openapi.json")
    operations = [result.ok() for result in schema.get_all_operations()]
    paths = {"/v1/predict", "/v1/model", "/v1/report", "/healthz", "/readyz"}
    assert {operation.path for operation in operations} == paths
    # No schema can say which tables are scored; others are refused.
    operations = [operation for operation in operations if operation.path != "/v1/report"]

    @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.one_of([operation.as_strategy() for operation in operations]))
    def check(case) -> None:
        # No schema can list all codes and names of languages; others are refused.
        if isinstance(case.body, dict) and isinstance(case.body.get("language"), str):
            case.body["language"] = "de"
        case.call_and_validate()

    check()


def test_every_setting_is_an_environment_variable():
    settings = Settings(port=81, log_texts=True, batch_wait=0.5, tokens="a,b")
    assert Settings.from_environment(settings.to_environment()) == settings
    assert {variable(item.name) for item in fields(Settings)} == set(settings.to_environment())
    assert Settings.from_environment({"EMOGLOT_PORT": "81"}) == Settings(port=81)


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"EMOGLOT_PORT": "http"}, "EMOGLOT_PORT must be of type int"),
        ({"EMOGLOT_PORT": "70000"}, "port must be in"),
        ({"EMOGLOT_LOG_TEXTS": "perhaps"}, "true or false"),
        ({"EMOGLOT_MAX_QUEUE": "10"}, "at least max_texts"),
    ],
)
def test_a_bad_setting_is_refused(environment, message):
    with pytest.raises(UsageError, match=message):
        Settings.from_environment(environment)


class TestBatcher:
    """The batcher alone, with a model that notes what it is given."""

    @staticmethod
    def run(score, ask, **options):
        async def both():
            batcher = Batcher(score, **{"budget": 10, "wait": 0.0, "limit": 100} | options)
            worker = asyncio.create_task(batcher.run())
            try:
                return await ask(batcher)
            finally:
                worker.cancel()
                batcher.close()

        return asyncio.run(both())

    @staticmethod
    def items(name: str, count: int) -> list[Item]:
        return [Item(f"{name}{number}", 1) for number in range(count)]

    def test_texts_of_many_requests_are_scored_together_within_the_budget(self):
        batches = []
        first = threading.Event()

        def score(items):
            first.wait(5)  # the first batch waits until all requests are there
            batches.append([item.text for item in items])
            return [item.text.upper() for item in items]

        async def ask(batcher):
            asked = [asyncio.create_task(batcher.submit(self.items(name, 5))) for name in "abcdef"]
            await asyncio.sleep(0.05)
            first.set()
            return await asyncio.gather(*asked)

        answers = self.run(score, ask)
        assert answers == [[f"{name.upper()}{number}" for number in range(5)] for name in "abcdef"]
        assert all(len(batch) <= 10 for batch in batches)
        assert len(batches) <= 5

    def test_a_small_request_does_not_wait_behind_a_large_one(self):
        order = []

        def score(items):
            time.sleep(0.005)
            return [item.text for item in items]

        async def ask(batcher):
            async def one(name, count):
                await batcher.submit(self.items(name, count))
                order.append(name)

            large = asyncio.create_task(one("large", 90))
            await asyncio.sleep(0.01)
            await one("small", 2)
            await large

        self.run(score, ask)
        assert order == ["small", "large"]

    def test_a_full_queue_refuses(self):
        async def ask(batcher):
            kept = asyncio.create_task(batcher.submit(self.items("a", 60)))
            await asyncio.sleep(0)
            with pytest.raises(QueueFullError):
                await batcher.submit(self.items("b", 60))
            assert len(await kept) == 60
            assert batcher.depth == 0
            return await batcher.submit(self.items("b", 60))

        assert len(self.run(lambda items: [item.text for item in items], ask)) == 60

    def test_a_text_that_breaks_the_model_breaks_its_own_request_only(self):
        def score(items):
            if any(item.text == "bad0" for item in items):
                raise ValueError("no")
            return [item.text for item in items]

        async def ask(batcher):
            return await asyncio.gather(
                *(batcher.submit(self.items(name, 2)) for name in ("good", "bad", "fine")), return_exceptions=True
            )

        good, bad, fine = self.run(score, ask)
        assert (good, fine) == (["good0", "good1"], ["fine0", "fine1"])
        assert isinstance(bad, ValueError)

    def test_what_a_gone_client_asked_is_not_scored(self):
        scored = []

        def score(items):
            time.sleep(0.01)
            scored.extend(item.text for item in items)
            return [item.text for item in items]

        async def ask(batcher):
            gone = asyncio.create_task(batcher.submit(self.items("gone", 90)))
            await asyncio.sleep(0.005)
            gone.cancel()
            assert await batcher.submit(self.items("here", 3)) == ["here0", "here1", "here2"]
            await asyncio.sleep(0.05)
            assert batcher.depth == 0

        self.run(score, ask)
        assert len([text for text in scored if text.startswith("gone")]) <= 10


def test_the_embedded_model_lists_its_languages(tmp_path):
    with running(tmp_path) as service:
        described = service.ask("/v1/model").json()
        assert described["name"] == "emoglot-small"
        assert len(described["languages"]) >= 100
        swahili = next(language for language in described["languages"] if language["code"] == "sw")
        assert set(swahili["threshold"]) == {label["id"] for label in described["labels"]}
        plain, own = (
            results_of(service.ask("/v1/predict", {"text": "Nina furaha", "language": code}))[0]
            for code in (None, "sw")
        )
        assert plain["scores"] == own["scores"]
        assert own["labels"] == [name for name, score in own["scores"].items() if score >= swahili["threshold"][name]]


def test_a_port_in_use_or_a_missing_model_is_told(tmp_path, service):
    port = str(urlsplit(service.url).port)
    for options, message in ((["--port", port], "in use"), (["--model", str(tmp_path / "none")], "error: there is no")):
        with pytest.raises(AssertionError, match=message), running(tmp_path, *options):
            pass


def test_the_documentation_lists_every_setting():
    documented = (Path(__file__).parent.parent / "docs" / "service.md").read_text(encoding="utf-8")
    for item in fields(Settings):
        assert f"| `--{item.name.replace('_', '-')}` |" in documented
        assert item.metadata["help"] in documented


@pytest.mark.parametrize("host", ["127.0.0.1", "no-such-host.invalid"])
def test_an_address_that_can_not_be_had_is_told(host):
    from emoglot.server.run import run

    told = pytest.raises(UsageError, match=f"can't listen on {host}, port")
    with socket.create_server(("127.0.0.1", 0)) as taken, told:
        run(Settings(host=host, port=taken.getsockname()[1]))
