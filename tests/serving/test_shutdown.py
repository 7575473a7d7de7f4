"""The end of the service, and of one of its workers."""

from __future__ import annotations

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

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
