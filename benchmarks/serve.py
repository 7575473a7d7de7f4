"""The service under load, beside the obvious alternative: a FastAPI endpoint that calls `predict` for each request.

    python -m benchmarks.serve [--seconds 10] [--requests 100000]

Clients on the same machine send one sentence at a time over connections that stay open, and wait for the answer. Then
the memory of the service is watched over many requests. Both servers have the embedded model and uvicorn.
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
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

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
class Load:
    """What came of some clients."""

    seconds: float
    latencies: list[float]
    failed: int

    def row(self) -> str:
        p50, p95, p99 = (1000 * np.quantile(self.latencies, share) for share in (0.5, 0.95, 0.99))
        rate = len(self.latencies) / self.seconds
        return f"{rate:,.0f} | {p50:.1f} | {p95:.1f} | {p99:.1f} | {self.failed}"


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


async def run_client(port: int, until: float, limit: int, first: int, found: list[float], failed: list[int]) -> None:
    """Ask again and again over one connection; this client does as little as it can, for the server's sake."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    requests = []
    for sentence in SENTENCES:
        body = json.dumps({"text": sentence}).encode()
        kind, length = "content-type: application/json", f"content-length: {len(body)}"
        lines = ["POST /v1/predict HTTP/1.1", "host: a", kind, length]
        requests.append("\r\n".join([*lines, "", ""]).encode() + body)
    number = first
    while time.perf_counter() < until and number < first + limit:
        began = time.perf_counter()
        writer.write(requests[number % len(requests)])
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        await reader.readexactly(int(length.split(b":")[1]))
        if head.startswith(b"HTTP/1.1 200"):
            found.append(time.perf_counter() - began)
        else:
            failed.append(number)
        number += 1
    writer.close()


async def run_clients(port: int, clients: int, seconds: float, limit: int = sys.maxsize) -> Load:
    latencies: list[float] = []
    failed: list[int] = []
    began = time.perf_counter()
    until = began + seconds
    await asyncio.gather(*(run_client(port, until, limit, first, latencies, failed) for first in range(clients)))
    return Load(time.perf_counter() - began, latencies, len(failed))


def resident(process: subprocess.Popen[bytes]) -> float:
    with open(f"/proc/{process.pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--requests", type=int, default=100_000)
    arguments = parser.parse_args()
    print("| server | clients | texts/s | p50 ms | p95 ms | p99 ms | failed |\n|---|---|---|---|---|---|---|")
    rates: dict[str, float] = {}
    for name in ("one call a request", "emoglot serve"):
        port = free_port()
        ours = [sys.executable, "-m", "emoglot", "serve", "--port", str(port)]
        naive = [sys.executable, "-c", NAIVE.replace("PORT", str(port))]
        with server(naive if name == "one call a request" else ours, port) as process:
            for clients in CLIENTS:
                asyncio.run(run_clients(port, clients, WARM_UP))
                load = asyncio.run(run_clients(port, clients, arguments.seconds))
                print(f"| {name} | {clients} | {load.row()} |", flush=True)
                rates[name] = len(load.latencies) / load.seconds
            if name == "emoglot serve" and arguments.requests:
                watch_memory(port, process, arguments.requests)
    ours_rate, naive_rate = rates["emoglot serve"], rates["one call a request"]
    print(f"\nwith {CLIENTS[-1]} clients: {ours_rate / naive_rate:.1f} times the texts a second")


def watch_memory(port: int, process: subprocess.Popen[bytes], requests: int) -> None:
    """Print what is resident after every tenth of the requests."""
    sizes = [resident(process)]
    failed = 0
    for _ in range(10):
        load = asyncio.run(run_clients(port, CLIENTS[-1], 3600, limit=requests // 10 // CLIENTS[-1]))
        failed += load.failed
        sizes.append(resident(process))
    print(f"\nresident over {requests:,} requests, {failed} failed: {', '.join(f'{size:.0f}' for size in sizes)} MB")


if __name__ == "__main__":
    main()
