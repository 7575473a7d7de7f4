"""Starts the real service in a process of its own, for the tests of service, client and page."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2

_ADDRESS = re.compile(r"running on (http://[\d.:]+)")
_SECONDS_TO_START = 300  # a busy machine may take its time


@dataclass(frozen=True)
class Answer:
    """What the service answered."""

    status: int
    data: bytes
    headers: httpx2.Headers

    def json(self) -> Any:
        return json.loads(self.data)


@dataclass(frozen=True)
class Running:
    """A service that answers."""

    url: str
    process: subprocess.Popen[bytes]
    log: Path

    def ask(self, path: str, body: object = None, **headers: str) -> Answer:
        """Ask without retries: bytes are sent as they are, anything else as JSON."""
        data = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
        method = "GET" if data is None else "POST"
        answer = httpx2.request(method, self.url + path, content=data, headers=headers, timeout=60, trust_env=False)
        return Answer(answer.status_code, answer.content, answer.headers)


@contextmanager
def running(folder: Path, *options: object) -> Iterator[Running]:
    """Run `emoglot serve` on a free port, and end it as an administrator would."""
    log = folder / "service.log"
    command = [sys.executable, "-m", "emoglot", "serve", "--port", "0", *map(str, options)]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        yield Running(_wait_for_address(process, log), process, log)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        process.wait(timeout=30)


def _wait_for_address(process: subprocess.Popen[bytes], log: Path) -> str:
    deadline = time.monotonic() + _SECONDS_TO_START
    while True:
        told = log.read_text(encoding="utf-8")
        assert process.poll() is None, told
        assert time.monotonic() < deadline, told
        found = _ADDRESS.search(told)
        if found and _is_ready(found[1]):
            return found[1]
        time.sleep(0.05)


def _is_ready(url: str) -> bool:
    try:
        return httpx2.get(f"{url}/readyz", trust_env=False).status_code == 200
    except httpx2.HTTPError:  # several workers begin to listen after the address is told
        return False


TEXTS = ["What a wonderful day", "Estoy furioso", "أنا خائف من الليل", "😀", "", "x" * 500]


def results_of(response: Answer) -> list[dict]:
    assert response.status == 200, response.data
    return response.json()["results"]


def connect(service: Running) -> socket.socket:
    parts = urlsplit(service.url)
    return socket.create_connection((parts.hostname, parts.port), timeout=30)


def wait_for_metrics(service: Running, is_so: Callable[[bytes], bool]) -> bytes:
    """Ask for the metrics until they are so, also while workers are being started anew."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with suppress(httpx2.HTTPError):
            if is_so(told := service.ask("/metrics").data):
                return told
        time.sleep(0.01)
    raise AssertionError("the metrics never came to that")


def is_idle(told: bytes) -> bool:
    return b"emoglot_queue_texts 0.0" in told
