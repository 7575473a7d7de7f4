"""`emoglot reproduce`: the tables and figures of the paper, run again."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from emoglot.cli.output import console, kept_when_interrupted, note, progress_bars, warn
from emoglot.errors import UsageError

if TYPE_CHECKING:
    from emoglot.experiments.cell import Cell
    from emoglot.experiments.runner import Done, News


def reproduce(
    names: Annotated[
        list[str] | None, typer.Argument(help="Experiments, or files like theirs; none lists them.")
    ] = None,
    data: Annotated[Path | None, typer.Option(help="The folder with the files of SemEval-2018 E-c.")] = None,
    encoder: Annotated[str, typer.Option(help="The encoder, by name or folder.")] = "e5-small",
    out: Annotated[Path | None, typer.Option(help="The folder of results; a run that was interrupted goes on.")] = None,
    all_: Annotated[bool, typer.Option("--all", help="All experiments.")] = False,
    seeds: Annotated[int, typer.Option(min=1, help="Repeat every training with so many seeds.")] = 1,
    jobs: Annotated[int, typer.Option(min=1, help="Trainings at a time, of one thread each.")] = os.cpu_count() or 1,
) -> None:
    """Run the paper's experiments, and write table, plot and numbers of each."""
    from emoglot.experiments import experiment

    wanted = list(dict.fromkeys([*(experiment.names() if all_ else []), *(names or [])]))
    if not wanted:
        _list_experiments()
        return
    experiments = [experiment.load(name) for name in wanted]
    if data is None or out is None:
        raise UsageError("an experiment needs --data, the folder with the E-c files, and --out, a folder for results")
    from emoglot.encoders.store import cache_folder
    from emoglot.experiments.reproduce import reproduce as run

    with kept_when_interrupted("every training that ended"), progress_bars() as update:
        standing = _Standing(update)
        tables = run(
            experiments,
            data,
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

    from emoglot.experiments import experiment

    table = Table("name", "what", "trainings")
    for name in experiment.names():
        found = experiment.load(name)
        table.add_row(name, found.title, str(len(found.trainings())))
    console().print(table)
    note("run one with `emoglot reproduce NAME --data DIR --out DIR`, or all with --all; trainings they share run once")


@dataclass
class _Standing:
    """How many cells are done, for the bar to which running ones tell their scores."""

    update: Callable[..., None]
    count: int = 0
    total: int = 1

    def on_cell(self, done: Done, count: int, total: int) -> None:
        self.count, self.total = count, total
        if done.missing:
            warn(f"{_name(done.cell)}: {done.missing}")
        self.update("cells", count, total, _name(done.cell))

    def on_news(self, news: News) -> None:
        score = f"epoch {news.epoch}, macro-F1 {100 * news.macro_f1:.1f}"
        self.update("cells", self.count, self.total, f"{_name(news.cell)}: {score}")


def _name(cell: Cell) -> str:
    training = cell.training
    settings = " ".join(f"{name}={value}" for name, value in training.settings)
    return " ".join(
        part for part in (training.method, "+".join(training.languages), settings, f"seed {cell.seed}") if part
    )
