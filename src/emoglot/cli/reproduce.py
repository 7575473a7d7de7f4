"""`emoglot reproduce`: runs the experiments of the paper."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from emoglot.cli import options
from emoglot.cli.output import console, kept_when_interrupted, note, progress_bars, warn
from emoglot.errors import UsageError

if TYPE_CHECKING:
    from emoglot.research.experiments.cell import Cell
    from emoglot.research.experiments.runner import Done, EpochNews


def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME", help="Experiment of the paper, or your own TOML file. Default: list them."),
    ] = None,
    root: Annotated[Path | None, options.option("DIR", "Folder with the files of SemEval-2018 E-c.")] = None,
    out: Annotated[
        Path | None, options.option("DIR", "Folder for the results. An interrupted run continues from it.")
    ] = None,
    encoder: options.TrainingEncoder = "e5-small",
    all_: Annotated[bool, options.flag("--all", "Run all experiments of the paper.")] = False,
    seeds: Annotated[int, options.option("N", "Repeat every training with N seeds.", min=1)] = 1,
    jobs: Annotated[
        int, options.option("N", "Trainings that run at the same time, with one thread each.", min=1)
    ] = os.cpu_count() or 1,
) -> None:
    """Run the experiments of the paper.

    Writes a table, a plot and all numbers of each experiment. Without a NAME, lists the experiments.
    """
    from emoglot.research.experiments import experiment

    wanted = list(dict.fromkeys([*(experiment.names() if all_ else []), *(names or [])]))
    if not wanted:
        _list_experiments()
        return
    experiments = [experiment.load_experiment(name) for name in wanted]
    if root is None or out is None:
        raise UsageError("an experiment needs --root, the folder with the E-c files, and --out, a folder for results")
    from emoglot.encoders.store import cache_folder
    from emoglot.research.experiments.reproduce import reproduce as run

    with kept_when_interrupted("every finished training"), progress_bars() as update:
        standing = _Standing(update)
        tables = run(
            experiments,
            root,
            encoder,
            out,
            cache_folder() / "features",
            seeds=seeds,
            jobs=jobs,
            on_features=partial(update, "encoding"),
            on_cell=standing.on_cell,
            on_news=standing.on_news,
        )
    for path in tables:
        typer.echo(str(path))


def _list_experiments() -> None:
    from rich.table import Table

    from emoglot.research.experiments import experiment

    table = Table("name", "what", "trainings")
    for name in experiment.names():
        found = experiment.load_experiment(name)
        table.add_row(name, found.title, str(len(found.trainings())))
    console().print(table)
    note("run one with `emoglot reproduce NAME --root DIR --out DIR`, or all with --all; trainings they share run once")


@dataclass
class _Standing:
    """The number of finished trainings, and the progress bar that shows it with the scores of the running ones."""

    update: Callable[..., None]
    count: int = 0
    total: int = 1

    def on_cell(self, done: Done, count: int, total: int) -> None:
        self.count, self.total = count, total
        if done.missing:
            warn(f"{_name(done.cell)}: {done.missing}")
        self.update("cells", count, total, _name(done.cell))

    def on_news(self, news: EpochNews) -> None:
        score = f"epoch {news.epoch}, macro-F1 {100 * news.macro_f1:.1f}"
        self.update("cells", self.count, self.total, f"{_name(news.cell)}: {score}")


def _name(cell: Cell) -> str:
    training = cell.training
    settings = " ".join(f"{name}={value}" for name, value in training.settings)
    return " ".join(
        part for part in (training.method, "+".join(training.languages), settings, f"seed {cell.seed}") if part
    )
