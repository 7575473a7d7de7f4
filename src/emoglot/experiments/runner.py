"""The runner: works through cells in processes of one thread each, skipping those that are done."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from emoglot.encoders import load_encoder
from emoglot.errors import EncoderError
from emoglot.experiments.cell import Bench, Cell, run_cell
from emoglot.experiments.corpus import read_corpus
from emoglot.features import FeatureCache
from emoglot.workers import results, tell, worker_pool


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
    distinct = {path: cell for cell, path in cells.items()}  # some say the same in other words
    pending = {path: cell for path, cell in distinct.items() if not path.exists()}
    yield from (Done(cell) for path, cell in distinct.items() if path not in pending)
    if not pending:
        return
    with worker_pool(jobs, on_news, place.bench) as submit:
        yield from _outcomes({submit(_work, cell, path): cell for path, cell in pending.items()})


def _outcomes(futures: Mapping[Future[None], Cell]) -> Iterator[Done]:
    for future in results(futures):
        cell = futures[future]
        try:
            future.result()
        except EncoderError as missing:  # something is not installed, or the encoder can't be fine-tuned
            yield Done(cell, str(missing))
        else:
            yield Done(cell)


def _work(bench: Bench, cell: Cell, path: Path) -> None:
    run_cell(bench, cell, path, lambda epoch: tell(News(cell, epoch.number, epoch.macro_f1)))


def plan(bench: Bench, trainings: Iterable[Any], seeds: int, folder: Path) -> dict[Cell, Path]:
    """Name the file of every cell, seed by seed, as those of one seed share their parts; what is shared is one."""
    cells = [Cell(training, seed) for seed in range(seeds) for training in dict.fromkeys(trainings)]
    return {cell: folder / f"{bench.key(cell)}.json" for cell in cells}
