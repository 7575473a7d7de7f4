"""Attacks for as long as you like: `make hostile MINUTES=30`. Each prints how much it has tried."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from benchmarks.serve import MIXED, TWEETS, Call
from tests.batch.helpers import command, kill_and_resume, write
from tests.hostile import faults
from tests.hostile.costs import UNITS, check_costs
from tests.hostile.targets import TARGETS, write_seeds
from tests.service import Running, running

MINUTES = "EMOGLOT_TEST_MINUTES"
pytestmark = pytest.mark.skipif(MINUTES not in os.environ, reason="takes minutes: make hostile")
ROOT = Path(__file__).parents[2]
SECONDS = 60 * float(os.environ.get(MINUTES, "1"))
# Shares of the time. What disks can do is tried once, whatever time there is.
FUZZ, KILLS, LOAD, COSTS = 0.45 / len(TARGETS), 0.2, 0.2, 0.15

Tell = Callable[[str], None]


@pytest.fixture
def tell(record_property: Callable[[str, object], None]) -> Tell:
    """A function that prints a line at the end."""
    return lambda line: record_property("listing", line)


@pytest.mark.skipif(importlib.util.find_spec("atheris") is None, reason="fuzzing needs: pip install atheris")
@pytest.mark.parametrize("target", TARGETS)
def test_fuzz(target: str, model_folder: Path, tmp_path: Path, tell: Tell) -> None:
    write_seeds(tmp_path / "seeds", model_folder)
    limits = [f"-max_total_time={round(SECONDS * FUZZ)}", "-timeout=60", "-rss_limit_mb=4096"]
    options = [*limits, "-print_final_stats=1", f"-artifact_prefix={tmp_path}/"]
    fuzz = [sys.executable, "-m", "tests.hostile.fuzz", target, str(tmp_path / "seeds"), *options]
    done = subprocess.run(fuzz, cwd=ROOT, capture_output=True, text=True, errors="replace", check=False)
    assert done.returncode == 0, done.stderr[-5000:]
    found = re.search(r"number_of_executed_units: (\d+)", done.stderr)
    assert found, done.stderr[-5000:]
    tell(f"fuzz of {target}: {int(found[1]):,} inputs")


def test_kills(model_folder: Path, tmp_path: Path, tell: Tell) -> None:
    """Jobs are killed at random moments; in the end, their output is that of a job that nothing happens to."""
    rng = random.Random()
    rows = [{"id": str(number), "text": f"row {number} of many happy words, é"} for number in range(40_000)]
    until = time.monotonic() + SECONDS * KILLS
    tried: Counter[str] = Counter()
    while time.monotonic() < until:
        folder = tmp_path / str(tried["jobs"])
        folder.mkdir()
        source = write(folder / rng.choice(["in.csv", "in.jsonl", "in.parquet"]), rows)
        if source.suffix != ".parquet":
            with source.open("ab") as file:
                file.write(b"bad\xff\n")
        target = rng.choice(["out.csv", "out.jsonl.gz", "out.parquet"])
        options = ("--model", model_folder, "--jobs", rng.choice([1, 2]))
        whole = subprocess.run(command(source, folder / f"whole-{target}", *options), capture_output=True, check=False)
        assert whole.returncode in (0, 7), whole.stderr
        tried["kills"] += kill_and_resume(source, folder / target, *options, rng=rng, early=0.3)
        for suffix in ("", ".rejects.jsonl"):
            found, expected = (folder / f"{name}{target}{suffix}" for name in ("", "whole-"))
            assert found.exists() == expected.exists()
            assert not found.exists() or found.read_bytes() == expected.read_bytes(), (source, target, options)
        shutil.rmtree(folder)
        tried["jobs"] += 1
    tell(f"kill -9: {tried['kills']} times in {tried['jobs']} jobs, all resumed to the same bytes")


@dataclass(frozen=True)
class Outcome:
    """When a request was sent, and what came of it."""

    sent: float
    is_right: bool
    is_silent: bool = False  # not a byte came back


GARBAGE = [Call(b"\x00\x01 no HTTP\r\n\r\n", None), Call(MIXED[0].request[:-20], None)]
CLIENTS = 16
# Takes longer than the tenth of a second after which uvicorn notices SIGTERM, so that some are usually unanswered then.
HEAVY = Call.of({"texts": TWEETS[:300], "explain": True})


async def keep_asking(port: int, outcomes: list[Outcome], tried: Counter[str]) -> None:
    """Send requests, right and wrong ones, over connections that stay open, until the service is gone."""
    while True:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**26)
        except OSError:
            return
        sent, head = time.monotonic(), b""
        try:
            while True:
                call = random.choice([*MIXED, *GARBAGE, HEAVY])
                sent, head = time.monotonic(), b""
                writer.write(call.request)
                await writer.drain()
                if call.status is None:
                    tried["disconnects"] += 1
                    await asyncio.sleep(random.random() * 0.05)
                    break
                head = await reader.readuntil(b"\r\n\r\n")
                (length,) = re.findall(rb"content-length: (\d+)", head.lower())
                await reader.readexactly(int(length))
                outcomes.append(Outcome(sent, head.split(b" ", 2)[1] == call.status))
                if b"connection: close" in head.lower():
                    break
        except asyncio.IncompleteReadError as error:
            outcomes.append(Outcome(sent, is_right=False, is_silent=not head and not error.partial))
        except OSError:
            outcomes.append(Outcome(sent, is_right=False, is_silent=not head))
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()


async def load_and_end(service: Running, outcomes: list[Outcome], tried: Counter[str]) -> float:
    """Keep a service busy for some seconds, end it, and return when."""
    port = urlsplit(service.url).port
    assert port
    clients = [asyncio.create_task(keep_asking(port, outcomes, tried)) for _ in range(CLIENTS)]
    await asyncio.sleep(2 + random.random() * 8)
    ended = time.monotonic()
    service.process.send_signal(signal.SIGTERM)
    await asyncio.wait_for(asyncio.gather(*clients), timeout=120)
    return ended


def test_load(model_folder: Path, tmp_path: Path, tell: Tell) -> None:
    """What was sent before SIGTERM is answered; what is sent after it, whole or not at all."""
    until = time.monotonic() + SECONDS * LOAD
    tried: Counter[str] = Counter()
    while time.monotonic() < until:
        outcomes: list[Outcome] = []
        with running(tmp_path, "--model", model_folder, "--workers", random.choice([1, 2])) as service:
            ended = asyncio.run(load_and_end(service, outcomes, tried))
            assert service.process.wait(timeout=60) in (0, -signal.SIGTERM)
        assert "Traceback" not in service.log.read_text(encoding="utf-8")
        wrong = [outcome for outcome in outcomes if not outcome.is_right]
        assert [outcome for outcome in wrong if not outcome.is_silent] == []
        assert [ended - outcome.sent for outcome in wrong if outcome.sent < ended] == []
        tried["requests"] += len(outcomes)
        tried["ends"] += 1
    tell(f"load: {tried['requests']:,} requests, {tried['disconnects']:,} disconnects, {tried['ends']} times SIGTERM")


def test_faults(model_folder: Path, tmp_path: Path, tell: Tell) -> None:
    shim = faults.compile_shim(tmp_path)
    if shim is None:
        pytest.skip("needs Linux and a C compiler")
    tried = faults.attack(shim, model_folder, tmp_path / "scratch", "--all")
    tell(f"faults: {', '.join(f'{count} × {kind}' for kind, count in tried.items())}, nothing lost")


def test_costs(tell: Tell) -> None:
    pairs = sum(1 for _ in check_costs(SECONDS * COSTS))
    assert pairs
    tell(f"costs: {pairs} of {len(UNITS) ** 2} pairs, none grows faster than the text")
