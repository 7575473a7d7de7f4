"""The runner: runs cells in single-threaded processes and skips those that are done."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from emoglot.concurrency import results, send_news, worker_pool
from emoglot.encoders.features import FeatureCache
from emoglot.encoders.registry import load_encoder
from emoglot.errors import EncoderError
from emoglot.research.experiments.cell import Bench, Cell, run_cell
from emoglot.research.experiments.corpus import read_corpus


@dataclass(frozen=True)
class Place:
    """The paths of a run: data, encoder, features and cells. This is all that worker processes need."""

    data: Path
    encoder: str
    features: Path
    cells: Path

    def bench(self) -> Bench:
        """Read the corpus and load the encoder."""
        encoder = load_encoder(self.encoder)
        return Bench(read_corpus(self.data), encoder, FeatureCache(self.features, encoder))


@dataclass(frozen=True)
class EpochNews:
    """The progress of a running cell."""

    cell: Cell
    epoch: int
    macro_f1: float


@dataclass(frozen=True)
class Done:
    """A finished cell; `missing` names the missing dependency if it could not be run."""

    cell: Cell
    missing: str | None = None


def run_cells(
    place: Place, cells: Mapping[Cell, Path], jobs: int, on_news: Callable[[EpochNews], None] = lambda news: None
) -> Iterator[Done]:
    """Run the cells that have no file yet and yield each as it ends; an interruption keeps finished cells."""
    distinct = {path: cell for cell, path in cells.items()}  # equivalent cells share a file
    pending = {path: cell for path, cell in distinct.items() if not path.exists()}
    yield from (Done(cell) for path, cell in distinct.items() if path not in pending)
    if not pending:
        return
    with worker_pool(jobs, on_news, place.bench) as submit:
        futures = {submit(_work, cell, path): cell for path, cell in pending.items()}
        for future in results(futures):
            try:
                future.result()
            except EncoderError as missing:  # a missing dependency, or an encoder that cannot be fine-tuned
                yield Done(futures[future], str(missing))
            else:
                yield Done(futures[future])


def _work(bench: Bench, cell: Cell, path: Path) -> None:
    run_cell(bench, cell, path, lambda epoch: send_news(EpochNews(cell, epoch.number, epoch.macro_f1)))


def plan(bench: Bench, trainings: Iterable[Any], seeds: int, folder: Path) -> dict[Cell, Path]:
    """Return the file of every cell, ordered by seed, since cells of one seed share their parts."""
    cells = [Cell(training, seed) for seed in range(seeds) for training in dict.fromkeys(trainings)]
    return {cell: folder / f"{bench.key(cell)}.json" for cell in cells}
