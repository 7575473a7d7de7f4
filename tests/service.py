"""Starts the real service in a process of its own, for the tests of service, client and page."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import urllib3

_ADDRESS = re.compile(r"running on (http://[\d.:]+)")
_SECONDS_TO_START = 60


@dataclass(frozen=True)
class Running:
    """A service that answers."""

    url: str
    process: subprocess.Popen[bytes]
    log: Path

    def ask(self, path: str, body: object = None, **headers: str) -> urllib3.BaseHTTPResponse:
        """Ask without retries: bytes are sent as they are, anything else as JSON."""
        data = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
        method = "GET" if data is None else "POST"
        return urllib3.request(method, self.url + path, body=data, headers=headers, retries=False, timeout=60)


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
        return urllib3.request("GET", f"{url}/readyz", retries=False).status == 200
    except urllib3.exceptions.HTTPError:  # several workers begin to listen after the address is told
        return False
