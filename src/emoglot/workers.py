"""Worker processes: of one thread each, sending news to the process that started them, and ended with it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.connection import Connection
from types import SimpleNamespace
from typing import Any

from emoglot.errors import WorkerError

# A network this small gains little from a second thread, and threads of two processes wait for each other.
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


def results(futures: Iterable[Future[Any]]) -> Iterator[Future[Any]]:
    """Yield futures as they end; raise WorkerError when a worker was killed."""
    for future in as_completed(futures):
        with telling_of_death("give --jobs 1, and the same command goes on with what is left"):
            if isinstance(error := future.exception(), BrokenProcessPool):
                raise error
        yield future


@contextmanager
def telling_of_death(way_out: str) -> Iterator[None]:
    """Turn the end of a worker that was killed into one sentence."""
    try:
        yield
    except BrokenProcessPool as error:
        raise WorkerError(f"a worker process died, probably out of memory: {way_out}") from error


@contextmanager
def worker_pool(
    jobs: int, on_news: Callable[[Any], None], prepare: Callable[..., Any], *arguments: Any
) -> Iterator[Callable[..., Future[Any]]]:
    """Give a function that submits work: `submit(function, …)` calls `function(prepared, …)` in a worker.

    Every worker prepares once. All end at once when the block is left, in whatever way.
    """
    context = multiprocessing.get_context("spawn")
    news = context.Queue()
    # A worker that is ended while it sends news keeps the queue locked: we must not wait for it when we end.
    news.cancel_join_thread()
    # Workers end when this closes, as it does even when this process is killed.
    lifeline, ours = context.Pipe(duplex=False)
    threading.Thread(target=_listen, args=(news, on_news), daemon=True).start()
    with _environment(ONE_THREAD):
        started = context.Value("i", 0)
        executor = ProcessPoolExecutor(jobs, context, _start_worker, (started, news, lifeline, prepare, arguments))
        try:
            yield lambda function, *given: executor.submit(_call, function, *given)
        finally:
            executor.shutdown(wait=False, cancel_futures=True)
            ours.close()
            news.put(None)


def tell(item: Any) -> None:
    """Send news from a worker."""
    _worker.news.put(item)


def worker_number() -> int:
    """Say which worker this is, from 0."""
    return int(_worker.number)


_worker = SimpleNamespace()  # what this process has, if it is a worker


def _start_worker(
    started: Any, news: Any, lifeline: Connection, prepare: Callable[..., Any], arguments: tuple[Any, ...]
) -> None:
    with started.get_lock():
        _worker.number = started.value
        started.value += 1
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    threading.Thread(target=_end_with, args=(lifeline,), daemon=True).start()
    _worker.news, _worker.prepared = news, prepare(*arguments)


def _call(function: Callable[..., Any], *arguments: Any) -> Any:
    return function(_worker.prepared, *arguments)


def _end_with(lifeline: Connection) -> None:
    try:
        lifeline.recv()
    except (EOFError, OSError):
        os._exit(1)


def _listen(news: Any, on_news: Callable[[Any], None]) -> None:
    while (item := news.get()) is not None:
        on_news(item)


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """Set variables for the processes that are started meanwhile."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
