"""Threads with ordered results, and pools of single-threaded worker processes."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.connection import Connection
from types import SimpleNamespace
from typing import Any, TypeVar

from emoglot.errors import WorkerError

Item = TypeVar("Item")
Result = TypeVar("Result")
# Small networks gain little from a second thread, and threads of several processes compete for cores.
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


def available_cores() -> list[int]:
    """Return the numbers of the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def side_by_side(work: Callable[[Item], Result], items: Iterable[Item], lanes: int) -> Iterator[tuple[Item, Result]]:
    """Yield each item with `work(item)`, in order, computed in `lanes` threads."""
    if lanes < 2:
        yield from ((item, work(item)) for item in items)
        return
    with ThreadPoolExecutor(lanes) as pool:
        yield from in_order(lambda item: pool.submit(work, item), items, ahead=lanes)


def in_order(
    submit: Callable[[Item], Future[Result]], items: Iterable[Item], ahead: int
) -> Iterator[tuple[Item, Result]]:
    """Yield each item with its result, in order; at most `ahead` more are in progress, which bounds memory."""
    waiting: deque[tuple[Item, Future[Result]]] = deque()
    for item in items:
        waiting.append((item, submit(item)))
        if len(waiting) > ahead:
            done, future = waiting.popleft()
            yield done, future.result()
    for done, future in waiting:
        yield done, future.result()


def results(futures: Iterable[Future[Any]]) -> Iterator[Future[Any]]:
    """Yield futures as they complete; raise WorkerError if a worker was killed."""
    for future in as_completed(futures):
        with worker_errors("use --jobs 1; the same command continues with the remaining work"):
            if isinstance(error := future.exception(), BrokenProcessPool):
                raise error
        yield future


@contextmanager
def worker_errors(way_out: str) -> Iterator[None]:
    """Raise WorkerError in place of BrokenProcessPool."""
    try:
        yield
    except BrokenProcessPool as error:
        raise WorkerError(f"a worker process died, probably out of memory: {way_out}") from error


@contextmanager
def worker_pool(
    jobs: int, on_news: Callable[[Any], None], prepare: Callable[..., Any], *arguments: Any
) -> Iterator[Callable[..., Future[Any]]]:
    """Yield a function that submits work: `submit(function, …)` calls `function(prepared, …)` in a worker.

    Every worker calls `prepare(*arguments)` once. All workers end when the block is left.
    """
    context = multiprocessing.get_context("spawn")
    news = context.Queue()
    # A worker that ends while it sends news leaves the queue locked; do not wait for it on exit.
    news.cancel_join_thread()
    # Workers end when this pipe closes, which also happens when this process is killed.
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


def send_news(item: Any) -> None:
    """Send news from a worker."""
    _worker.news.put(item)


def worker_number() -> int:
    """Return the number of this worker, from 0."""
    return int(_worker.number)


_worker = SimpleNamespace()  # the state of this process, if it is a worker


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
    """Set environment variables for processes started within the block."""
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
