"""The end of the service, and of one of its workers."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
import uvicorn

from emoglot.serving.app import create_app
from emoglot.serving.protocol import LimitedProtocol
from emoglot.serving.run import Server
from emoglot.serving.settings import Settings
from tests.service import connect, is_idle, results_of, running, wait_for_metrics


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


ASK = b'POST /v1/predict HTTP/1.1\r\nhost: a\r\ncontent-length: 16\r\n\r\n{"text": "late"}'


class EndsWithClientsInQueue(Server):
    """Ends at its first tick, when two clients have connected and sent a request, and nobody has accepted them."""

    clients: tuple[socket.socket, ...] = ()

    async def on_tick(self, counter: int) -> bool:
        address = self.servers[0].sockets[0].getsockname()
        self.clients = tuple(socket.create_connection(address, timeout=30) for _ in range(2))
        for client in self.clients:
            client.sendall(ASK)
        self.should_exit = True
        return await super().on_tick(counter)


def test_clients_in_the_queue_of_the_system_are_answered(local):
    app = create_app(Settings(), local)
    server = EndsWithClientsInQueue(uvicorn.Config(app, port=0, http=LimitedProtocol, ws="none"))
    asyncio.run(server.serve())
    for client in server.clients:
        with client:
            assert read_all(client).startswith(b"HTTP/1.1 200")


def read_all(client: socket.socket) -> bytes:
    return b"".join(iter(lambda: client.recv(2**16), b""))


def test_a_client_that_comes_with_sigterm_does_not_keep_the_service(model_folder, tmp_path):
    """It is accepted in the last moment, answered, and then its connection is closed like all others."""
    with running(tmp_path, "--model", model_folder) as service, connect(service) as client:
        service.process.send_signal(signal.SIGSTOP)
        with connect(service) as late:
            late.sendall(ASK)
            time.sleep(0.3)  # uvicorn looks ten times a second whether it has to end: now when it accepts
            service.process.send_signal(signal.SIGTERM)
            service.process.send_signal(signal.SIGCONT)
            began = time.monotonic()
            while late.recv(2**16):
                with suppress(OSError):
                    late.sendall(ASK)
                assert time.monotonic() - began < 20
                time.sleep(0.3)  # an idle connection is closed after 0.2 seconds
        assert read_all(client) == b""
        service.process.wait(timeout=30)


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


def test_sigterm_closes_the_listening_socket_of_workers_first(model_folder, tmp_path, monkeypatch):
    """While the workers finish, new clients are refused at once, and what was accepted is answered; nothing is left."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    with running(tmp_path, "--model", model_folder, "--workers", 2) as service:
        body = {"texts": [f"accepted {number}" * 20 for number in range(500)], "explain": True}
        with ThreadPoolExecutor(4) as clients:
            asked = [clients.submit(service.ask, "/v1/predict", body) for _ in range(4)]
            wait_for_metrics(service, lambda told: b"emoglot_queue_texts 2000.0" in told)
            assert list(scratch.iterdir())  # the counts of the workers
            service.process.send_signal(signal.SIGTERM)
            deadline = time.monotonic() + 60
            while True:
                assert time.monotonic() < deadline
                try:
                    connect(service).close()
                except ConnectionRefusedError:
                    break
                time.sleep(0.05)
            assert not all(answer.done() for answer in asked)  # it was refused while they worked
            assert [len(results_of(answer.result())) for answer in asked] == [500] * 4
        assert service.process.wait(timeout=60) == 0
    assert list(scratch.iterdir()) == []
