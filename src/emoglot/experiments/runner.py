"""The runner: works through cells in processes of one thread each, skipping those that are done."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from emoglot.encoders import load_encoder
from emoglot.errors import MissingExtraError, TrainingError
from emoglot.experiments.cell import Bench, Cell, run_cell
from emoglot.experiments.corpus import read_corpus
from emoglot.features import FeatureCache

# A network this small gains little from a second thread, and threads of two processes wait for each other.
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


@dataclass(frozen=True)
class Place:
    """Where a run finds its data and encoder, and puts its cells: enough for another process to do the same."""

    data: Path
    encoder: str
    features: Path
    cells: Path

    def bench(self) -> Bench:
        """Read the corpus and load the encoder."""
        encoder = load_encoder(self.encoder)
        return Bench(read_corpus(self.data), encoder, FeatureCache(self.features, encoder))


@dataclass(frozen=True)
class News:
    """What a running cell has to tell."""

    cell: Cell
    epoch: int
    macro_f1: float


@dataclass(frozen=True)
class Done:
    """A cell that ended; `missing` says what it lacked, if it could not be run here."""

    cell: Cell
    missing: str | None = None


def run_cells(
    place: Place, cells: Mapping[Cell, Path], jobs: int, on_news: Callable[[News], None] = lambda news: None
) -> Iterator[Done]:
    """Run the cells that have no file yet and give each as it ends. Interrupted, all that ended is kept."""
    done = {cell for cell, path in cells.items() if path.exists()}
    yield from map(Done, done)
    pending = [cell for cell in cells if cell not in done]
    if not pending:
        return
    context = multiprocessing.get_context("spawn")
    news = context.Queue()
    # Workers end when this closes, as it does when this process ends in whatever way.
    lifeline, ours = context.Pipe(duplex=False)
    listener = threading.Thread(target=_listen, args=(news, on_news), daemon=True)
    listener.start()
    with _environment(ONE_THREAD):
        executor = ProcessPoolExecutor(jobs, context, _start_worker, (place, news, lifeline))
        futures = {executor.submit(_work, cell, cells[cell]): cell for cell in pending}
        try:
            yield from _outcomes(futures)
        finally:
            executor.shutdown(wait=False, cancel_futures=True)
            ours.close()
            news.put(None)


def _outcomes(futures: Mapping[Future[None], Cell]) -> Iterator[Done]:
    for future in as_completed(futures):
        cell = futures[future]
        try:
            future.result()
        except MissingExtraError as missing:
            yield Done(cell, str(missing))
        except BrokenProcessPool as error:
            raise TrainingError(
                "a worker process ended without a word, perhaps for want of memory: give --jobs 1, "
                "and the same command goes on with what is left"
            ) from error
        else:
            yield Done(cell)


def _listen(news: Any, on_news: Callable[[News], None]) -> None:
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


_bench: Bench  # of this worker process
_news: Any


def _start_worker(place: Place, news: Any, lifeline: Connection) -> None:
    global _bench, _news
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    threading.Thread(target=_end_with, args=(lifeline,), daemon=True).start()
    _bench, _news = place.bench(), news


def _end_with(lifeline: Connection) -> None:
    try:
        lifeline.recv()
    except (EOFError, OSError):
        os._exit(1)


def _work(cell: Cell, path: Path) -> None:
    run_cell(_bench, cell, path, lambda epoch: _news.put(News(cell, epoch.number, epoch.macro_f1)))


def plan(bench: Bench, trainings: Iterable[Any], seeds: int, folder: Path) -> dict[Cell, Path]:
    """Name the file of every cell, seed by seed, as those of one seed share their parts; what is shared is one."""
    cells = [Cell(training, seed) for seed in range(seeds) for training in dict.fromkeys(trainings)]
    return {cell: folder / f"{bench.key(cell)}.json" for cell in cells}
