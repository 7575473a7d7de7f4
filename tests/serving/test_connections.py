"""Connections: slow ones, broken ones, and clients that leave."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import time
from urllib.parse import urlsplit

import pytest

from benchmarks.serve import resident
from emoglot.serving.app import create_app
from emoglot.serving.settings import Settings
from tests.service import Running, connect, is_idle, results_of, running, wait_for_metrics


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


def request_of(text: str, target: str = "/v1/predict") -> bytes:
    body = json.dumps({"text": text}).encode()
    return b"POST %s HTTP/1.1\r\nhost: a\r\ncontent-length: %d\r\n\r\n%s" % (target.encode(), len(body), body)


def statuses(service: Running, *pieces: bytes, half_close: bool = False) -> list[bytes]:
    """Send bytes over one connection, and return the status of each answer until it is closed."""
    with connect(service) as client:
        for piece in pieces:
            client.sendall(piece)
        if half_close:
            client.shutdown(socket.SHUT_WR)
        answer = b"".join(iter(lambda: client.recv(65_536), b""))
    return [status for status in re.findall(rb"HTTP/1.1 (\d+)", answer) if status != b"100"]


LONG = "a" * 4000  # with others like it, longer than all headers may be
GET = b"GET /healthz HTTP/1.1\r\nhost: a\r\n"
LAST = GET + b"connection: close\r\n\r\n"
GARBAGE = b"\x00\x01 no HTTP at all\r\n\r\n"


def test_bodies_are_not_counted_as_headers(service):
    """Complete requests, longer than headers may be, and the beginning of another one in the same segment."""
    many = request_of(LONG) * 10
    assert len(many) > 32 * 1024
    assert statuses(service, many + GET, b"connection: close\r\n\r\n") == [b"200"] * 11


def test_many_small_headers_in_one_segment_are_refused(service):
    assert statuses(service, GET + b"x-a: b\r\n" * 9000 + b"\r\n") == [b"431"]


@pytest.mark.parametrize("complete", [1, 3])
def test_garbage_after_a_request_does_not_lose_its_answer(service, complete):
    assert statuses(service, request_of("so happy") * complete + GARBAGE) == [b"200"] * complete + [b"400"]


def test_garbage_in_the_body_of_a_request_is_refused_after_those_before(service):
    broken = b"POST /v1/predict HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\nno size\r\n"
    assert statuses(service, request_of("so happy") + broken) == [b"200", b"400"]
    assert statuses(service, broken) == [b"400"]


@pytest.mark.parametrize("complete", [1, 3])
def test_a_client_that_closes_its_half_is_answered(service, complete):
    assert statuses(service, request_of("so happy") * complete, half_close=True) == [b"200"] * complete


def test_half_a_request_before_the_end_does_not_lose_the_others(service):
    for half in (GET, request_of(LONG)[:-100]):
        assert statuses(service, request_of("so happy") + half, half_close=True) == [b"200"]


def test_headers_that_do_not_come_do_not_lose_the_answer_before(service):
    assert statuses(service, request_of("so happy") + GET) == [b"200", b"408"]


@pytest.mark.parametrize("upgrade", ["h2c", "websocket", "TLS/1.2"])
def test_a_request_to_upgrade_is_answered_like_any_other(service, upgrade):
    """`curl --http2` and the HTTP client of Java send this by default."""
    asked = f"\r\nconnection: upgrade, http2-settings\r\nupgrade: {upgrade}\r\nhttp2-settings: AAMAAABk".encode()
    post, last = (one.replace(b"\r\nhost: a", b"\r\nhost: a" + asked) for one in (request_of(LONG), GET + b"\r\n"))
    assert statuses(service, post + post, last, LAST) == [b"200"] * 4
    assert statuses(service, post[:150], post[150:-9], post[-9:], half_close=True) == [b"200"]


def test_there_is_no_tunnel(service):
    for target in (b"a:80", b"/healthz"):
        assert statuses(service, b"CONNECT %s HTTP/1.1\r\nhost: a\r\n\r\n" % target + GET)[-1] == b"400"


def send_without_reading(client: socket.socket) -> None:
    for _ in range(500):
        client.sendall(b"GET /v1/model HTTP/1.1\r\nhost: a\r\n\r\n" * 1000)


def test_a_client_that_does_not_read_is_disconnected(service):
    """Its answers fill the buffers of the system; then nothing more is read, and three seconds later it ends."""
    before = resident(service.process)
    with connect(service) as client, pytest.raises((ConnectionResetError, BrokenPipeError)):
        send_without_reading(client)
    assert resident(service.process) < before + 100


def test_a_client_that_leaves_in_the_middle_of_a_body_is_counted_and_not_logged(service):
    before = service.log.read_text(encoding="utf-8")
    counted = b'emoglot_requests_total{path="/v1/predict",status="499"}'

    def figure(told: bytes) -> float:
        return sum(float(line.rpartition(b" ")[2]) for line in told.splitlines() if line.startswith(counted))

    seen = figure(service.ask("/metrics").data)
    with connect(service) as client:
        client.sendall(request_of(LONG)[:-100])
    wait_for_metrics(service, lambda told: figure(told) == seen + 1)
    assert service.log.read_text(encoding="utf-8") == before


def test_a_client_that_leaves_is_one_line_at_debug_level(caplog):
    app = create_app(Settings())
    scope = {"type": "http", "method": "POST", "path": "/v1/predict", "headers": [], "query_string": b""}
    sent = []

    async def receive() -> dict[str, str]:
        return {"type": "http.disconnect"}

    async def send(message: dict[str, object]) -> None:
        sent.append(message)

    with caplog.at_level("DEBUG", "uvicorn.error"):
        asyncio.run(app(scope | {"app": app, "state": {}}, receive, send))
    assert sent[0]["status"] == 499
    assert [(record.levelname, record.message) for record in caplog.records if record.name == "uvicorn.error"] == [
        ("DEBUG", "a client disconnected before its request to /v1/predict was complete")
    ]
