"""`emoglot tune`: searches for settings and writes the best as a TOML file for `emoglot train`."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from emoglot.cli import options
from emoglot.cli.inputs import read_training
from emoglot.cli.output import kept_when_interrupted, note, progress_bars, spinner
from emoglot.errors import UsageError, needs_extra

if TYPE_CHECKING:
    from emoglot.research.tuning.study import Search, TrialNews

STORAGE_FILE = "study.db"


@options.expanded
def tune(
    training: options.TrainingOptions,
    reading: options.ReadingOptions,
    encoder: options.TrainingEncoder = "e5-small",
    out: Annotated[
        Path | None, options.option("DIR", "Folder for the results. An interrupted search continues from it.")
    ] = None,
    trials: Annotated[int, options.option("N", "Total number of trials in the study.", min=1)] = 100,
    jobs: Annotated[
        int, options.option("N", "Trials that run at the same time, with one thread each.", min=1)
    ] = os.cpu_count() or 1,
    space: Annotated[
        Path | None, options.option("FILE", "TOML file with the settings to search. Default: those of the paper.")
    ] = None,
    show_space: Annotated[
        bool, options.flag("--show-space", "Print the paper's search space as TOML and exit.")
    ] = False,
    storage: Annotated[
        str | None,
        options.option("URL", "Database URL or journal file in which trials are kept. Default: SQLite in --out."),
    ] = None,
    study: Annotated[
        str, options.option("NAME", "Name of the study. Machines with the same study share the work.")
    ] = "emoglot",
) -> None:
    """Search for the settings with the best macro-F1.

    Writes best.toml, which `emoglot train --config` reads, a table of all trials, and plots.
    """
    with needs_extra("tune", "searching for settings"):
        from emoglot.research.tuning.space import PAPER
        from emoglot.research.tuning.study import run_study
        from emoglot.research.tuning.summary import BEST, write_summary
    if show_space:
        typer.echo(PAPER.read_text(encoding="utf-8"), nl=False)
        return
    if out is None:
        raise UsageError("a search needs --out, a folder for its results")
    search = _make_search(encoder, training, reading, space or PAPER, storage, study, out)
    _check_out(out, out / STORAGE_FILE, out / BEST, Path(storage or STORAGE_FILE))
    with kept_when_interrupted("every finished trial"), progress_bars() as update:

        def on_news(news: TrialNews) -> None:
            update("trials", news.ended, trials, _describe(news))

        found = run_study(search, trials, jobs, partial(update, "encoding"), on_news)
    note(f"best: trial {found.best_trial.number}, macro-F1 {100 * found.best_value:.1f}")
    with spinner("writing the results"):
        written = write_summary(found, search, out)
    for path in written:
        typer.echo(str(path))


def _make_search(
    encoder: str,
    training: options.TrainingOptions,
    reading: options.ReadingOptions,
    space: Path,
    storage: str | None,
    study: str,
    out: Path,
) -> Search:
    """Return what the trials have in common."""
    from emoglot.encoders.store import cache_folder
    from emoglot.research.tuning.space import read_space
    from emoglot.research.tuning.study import Search

    recipe = training.recipe()
    settings = training.settings(recipe)
    searched = read_space(space, settings)
    data, validation = read_training(training, recipe, reading)
    return Search(
        encoder=encoder,
        cache=training.cache or cache_folder() / "features",
        training=data,
        validation=validation,
        config=settings,
        space=searched,
        storage=storage or f"sqlite:///{(out / STORAGE_FILE).resolve()}",
        name=study,
    )


def _check_out(out: Path, *ours: Path) -> None:
    """Create the folder; raise UsageError if it contains anything other than the results of a search."""
    out.mkdir(parents=True, exist_ok=True)
    found = {path.resolve() for path in out.iterdir()}
    if found and not found & {path.resolve() for path in ours}:
        raise UsageError(
            f"--out must be a new folder or the folder of a search, {out} is neither: choose another --out"
        )


def _describe(news: TrialNews) -> str:
    outcome = "stopped early" if news.macro_f1 is None else f"macro-F1 {100 * news.macro_f1:.1f}"
    return f"trial {news.number}: {outcome}; best {100 * news.best:.1f}"
