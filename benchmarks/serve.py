"""Measures the service under load, compared with a FastAPI endpoint that calls `predict` for each request.

    python -m benchmarks.serve [--seconds 10] [--requests 100000] [--only load|heavy|memory]

load: clients on the same machine send one sentence at a time over connections that stay open, and wait for the answer.
heavy: one light client is measured alone, then beside clients that send the heaviest requests allowed.
memory: the resident memory of the service over many mixed requests: single texts, batches, explanations, errors and
clients that disconnect. Both servers use the model in the package and uvicorn.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

CLIENTS = (1, 8, 64)
WARM_UP = 2.0  # seconds
SENTENCES = (
    "I can't believe how beautiful the sunrise was this morning",
    "Estoy muy enfadado con el servicio, llevo dos horas esperando",
    "مساء الخير يا أصدقاء، أتمنى لكم ليلة سعيدة",
    "My flight was cancelled again and nobody tells us anything!!",
    "Ich habe ein bisschen Angst vor der Prüfung morgen",
    "मुझे आज बहुत खुशी हो रही है",
    "So proud of my little sister, she won the race today 😍",
    "Nothing ever changes here, I give up",
)

TWEETS = [f"{sentence} {number}" for number in range(125) for sentence in SENTENCES]
# By name: the number of clients, and their request. All are within the default limits.
HEAVY: dict[str, tuple[int, dict[str, Any]]] = {
    "80 texts of 100,000 characters, '1-' repeated": (1, {"texts": ["1-" * 50_000] * 80}),
    "80 texts of 100,000 characters, English": (1, {"texts": [(SENTENCES[0] + ". ") * 1666] * 80}),
    "3 × 1,000 tweets, explained": (3, {"texts": TWEETS, "explain": True}),
}

NAIVE = """
import uvicorn, emoglot
from fastapi import FastAPI
from pydantic import BaseModel

app, model = FastAPI(), emoglot.load()

class Ask(BaseModel):
    text: str

@app.post("/v1/predict")
def predict(ask: Ask):
    (found,) = model.predict([ask.text])
    return {"labels": found.labels, "scores": found.scores}

uvicorn.run(app, port=PORT, log_level="warning", access_log=False)
"""


@dataclass(frozen=True)
class Call:
    """A request, and the status of its answer; None for a client that disconnects before it."""

    request: bytes
    status: bytes | None = b"200"
    texts: int = 0

    @classmethod
    def of(cls, question: dict[str, Any], status: bytes | None = b"200") -> Call:
        body = json.dumps(question).encode()
        lines = [
            "POST /v1/predict HTTP/1.1",
            "host: a",
            "content-type: application/json",
            f"content-length: {len(body)}",
        ]
        texts = question.get("texts", [""])
        return cls("\r\n".join([*lines, "", ""]).encode() + body, status, len(texts) if isinstance(texts, list) else 0)


SINGLE = [Call.of({"text": sentence}) for sentence in SENTENCES]
MIXED = [
    *SINGLE,
    Call.of({"texts": TWEETS[:10]}),
    Call.of({"text": SENTENCES[0], "explain": True}),
    Call.of({"texts": 7}, b"422"),
    Call.of({"texts": TWEETS[:10]}, None),
]


@dataclass
class Load:
    """The requests of some clients, their latencies, and the number of wrong answers."""

    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)
    failed: int = 0
    sent: list[Call] = field(default_factory=list)

    def row(self) -> str:
        p50, p95, p99 = (1000 * self.quantile(share) for share in (0.5, 0.95, 0.99))
        rate = len(self.latencies) / self.seconds
        return f"{rate:,.0f} | {p50:.1f} | {p95:.1f} | {p99:.1f} | {self.failed}"

    def quantile(self, share: float) -> float:
        return float(np.quantile(self.latencies, share)) if self.latencies else float("nan")


@contextmanager
def server(command: list[str], port: int) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(command)
    try:
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert process.poll() is None, "the server ended"
            time.sleep(0.1)
        yield process
    finally:
        process.terminate()
        process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def run_client(port: int, calls: Sequence[Call], until: float, limit: int, load: Load) -> None:
    """Send requests over one connection, with as little work as possible, since the server runs on the same machine."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**26)
    for number in range(limit):
        if time.perf_counter() >= until:
            break
        call = calls[number % len(calls)]
        began = time.perf_counter()
        writer.write(call.request)
        load.sent.append(call)
        if call.status is None:
            await writer.drain()
            writer.close()
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**26)
            continue
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        await reader.readexactly(int(length.split(b":")[1]))
        if head.split(b" ", 2)[1] == call.status:
            load.latencies.append(time.perf_counter() - began)
        else:
            load.failed += 1
    writer.close()


async def run_clients(
    port: int, clients: int, seconds: float, limit: int = sys.maxsize, calls: Sequence[Call] = SINGLE
) -> Load:
    load = Load()
    began = time.perf_counter()
    turned = [[*calls[first % len(calls) :], *calls[: first % len(calls)]] for first in range(clients)]
    await asyncio.gather(*(run_client(port, own, began + seconds, limit, load) for own in turned))
    load.seconds = time.perf_counter() - began
    return load


async def run_beside(port: int, clients: int, question: dict[str, Any], seconds: float) -> tuple[Load, Load]:
    """Return the load of a light client beside heavy ones, and that of the heavy ones."""
    heavy = Load()
    calls = [Call.of(question)]
    crowd = [asyncio.create_task(run_client(port, calls, float("inf"), sys.maxsize, heavy)) for _ in range(clients)]
    await asyncio.sleep(1)  # until the heavy requests are being scored
    light = await run_clients(port, 1, seconds)
    for task in crowd:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    return light, heavy


def resident(process: subprocess.Popen[bytes]) -> float:
    with open(f"/proc/{process.pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def highest(process: subprocess.Popen[bytes]) -> float:
    """Return the highest resident memory so far, in MB."""
    with open(f"/proc/{process.pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) / 2**10


@contextmanager
def our_server() -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    port = free_port()
    with server([sys.executable, "-m", "emoglot", "serve", "--port", str(port)], port) as process:
        yield port, process


def measure_load(seconds: float) -> None:
    print("| server | clients | texts/s | p50 ms | p95 ms | p99 ms | failed |\n|---|---|---|---|---|---|---|")
    rates: dict[str, float] = {}
    for name in ("one call a request", "emoglot serve"):
        port = free_port()
        ours = [sys.executable, "-m", "emoglot", "serve", "--port", str(port)]
        naive = [sys.executable, "-c", NAIVE.replace("PORT", str(port))]
        with server(naive if name == "one call a request" else ours, port):
            for clients in CLIENTS:
                asyncio.run(run_clients(port, clients, WARM_UP))
                load = asyncio.run(run_clients(port, clients, seconds))
                print(f"| {name} | {clients} | {load.row()} |", flush=True)
                rates[name] = len(load.latencies) / load.seconds
    ours_rate, naive_rate = rates["emoglot serve"], rates["one call a request"]
    print(f"\nwith {CLIENTS[-1]} clients: {ours_rate / naive_rate:.1f} times the texts a second")


def measure_heavy(seconds: float) -> None:
    """Print the latency of a light client beside heavy ones, and the peak memory; each with a new server."""
    print("| beside | texts/s | p50 ms | p95 ms | p99 ms | failed | p99 to idle | highest MB | heavy ones failed |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, (clients, question) in HEAVY.items():
        with our_server() as (port, process):
            asyncio.run(run_clients(port, 1, WARM_UP))
            idle = asyncio.run(run_clients(port, 1, seconds))
            light, heavy = asyncio.run(run_beside(port, clients, question, seconds))
            ratio = light.quantile(0.99) / idle.quantile(0.99)
            print(f"| nothing | {idle.row()} | 1.0 | | |")
            print(f"| {name} | {light.row()} | {ratio:.1f} | {highest(process):.0f} | {heavy.failed} |", flush=True)


def measure_memory(requests: int) -> None:
    """Print the resident memory after every tenth of the requests."""
    with our_server() as (port, process):
        sizes = [resident(process)]
        limit = max(1, requests // 10 // CLIENTS[-1])
        loads = []
        for _ in range(10):
            loads.append(asyncio.run(run_clients(port, CLIENTS[-1], 3600, limit, MIXED)))
            sizes.append(resident(process))
            print(f"{sizes[-1]:.0f} MB after {sum(load.seconds for load in loads):.0f} s", flush=True)
        sent = [call for load in loads for call in load.sent]
        left = sum(call.status is None for call in sent)
        print(
            f"\n{len(sent):,} mixed requests with {sum(call.texts for call in sent):,} texts in "
            f"{sum(len(call.request) for call in sent) / 1e6:.0f} MB, {left:,} of them of clients that left; "
            f"{sum(load.failed for load in loads)} failed; resident from {sizes[0]:.0f} to {sizes[-1]:.0f} MB, "
            f"at most {highest(process):.0f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--only", choices=("load", "heavy", "memory"))
    arguments = parser.parse_args()
    if arguments.only in (None, "load"):
        measure_load(arguments.seconds)
    if arguments.only in (None, "heavy"):
        measure_heavy(arguments.seconds)
    if arguments.only in (None, "memory"):
        measure_memory(arguments.requests)


if __name__ == "__main__":
    main()
