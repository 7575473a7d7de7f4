"""`emoglot tune`: searches for settings, and writes the best as a file for `emoglot train`."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from emoglot.cli import options
from emoglot.cli.output import kept_when_interrupted, note, progress_bars
from emoglot.errors import MissingExtraError, UsageError

if TYPE_CHECKING:
    from emoglot.tuning.study import News

STORAGE_FILE = "study.db"


def tune(
    encoder: options.TrainingEncoder = "e5-small",
    out: Annotated[
        Path | None, typer.Option(help="The folder of results; a search that was interrupted goes on.")
    ] = None,
    trials: Annotated[int, typer.Option(min=1, help="How many trials the study shall have in the end.")] = 100,
    space: Annotated[Path | None, typer.Option(help="What to search, as a TOML file; by default the paper's.")] = None,
    show_space: Annotated[bool, typer.Option("--show-space", help="Print the paper's space, to be edited.")] = False,
    storage: Annotated[
        str | None,
        typer.Option(help="Where the trials are kept: a database URL, or a journal file; by default SQLite in --out."),
    ] = None,
    study: Annotated[
        str, typer.Option(help="The name of the study; machines that share it share the work.")
    ] = "emoglot",
    jobs: Annotated[int, typer.Option(min=1, help="Trials at a time, of one thread each.")] = os.cpu_count() or 1,
    train: options.TrainingFiles = None,
    validation: options.ValidationFiles = None,
    config: options.ConfigFile = None,
    data: options.DataRoot = Path(),
    set_: options.Settings = None,
    wide: options.Wide = None,
    seed: options.Seed = None,
    cache: options.Cache = None,
    format_: options.Format = None,
    skip_bad: options.SkipBad = False,
    text_column: options.TextColumn = None,
    label_columns: options.LabelColumns = None,
    labels_column: options.LabelsColumn = None,
    language_column: options.LanguageColumn = None,
) -> None:
    """Search for the settings with the best macro-F1 on validation data."""
    try:
        from emoglot.tuning.space import PAPER, read_space
        from emoglot.tuning.study import Search, run_study
        from emoglot.tuning.summary import BEST, write_summary
    except ImportError as missing:
        raise MissingExtraError(missing.name or "optuna", "tune", "searching for settings") from missing
    from emoglot.encoders.store import cache_folder
    from emoglot.recipe import Recipe

    if show_space:
        typer.echo(PAPER.read_text(encoding="utf-8"), nl=False)
        return
    if out is None:
        raise UsageError("a search needs --out, a folder for its results")
    recipe = Recipe.from_toml(config) if config else Recipe({}, {})
    settings = options.make_settings(recipe, set_ or [], wide, seed)
    reading = options.Reading(format_, skip_bad, text_column, label_columns, labels_column, language_column)
    searched = read_space(space or PAPER, settings)
    training_data, validation_data = options.read_training(recipe, data, train or [], validation or [], reading)
    _check_out(out, out / STORAGE_FILE, out / BEST, Path(storage or STORAGE_FILE))
    search = Search(
        encoder=encoder,
        cache=cache or cache_folder() / "features",
        training=training_data,
        validation=validation_data,
        config=settings,
        space=searched,
        storage=storage or f"sqlite:///{(out / STORAGE_FILE).resolve()}",
        name=study,
    )
    with kept_when_interrupted("every trial that ended"), progress_bars() as update:

        def on_news(news: News) -> None:
            update("trials", news.ended, trials, _describe(news))

        found = run_study(search, trials, jobs, partial(update, "encoding"), on_news)
    note(f"best: trial {found.best_trial.number}, macro-F1 {100 * found.best_value:.1f}")
    for path in write_summary(found, search, out):
        typer.echo(str(path))


def _check_out(out: Path, *ours: Path) -> None:
    """Make the folder, refusing one in which other things lie."""
    out.mkdir(parents=True, exist_ok=True)
    found = {path.resolve() for path in out.iterdir()}
    if found and not found & {path.resolve() for path in ours}:
        raise UsageError(f"{out} is not empty and not the folder of a search: choose another --out")


def _describe(news: News) -> str:
    outcome = "stopped early" if news.macro_f1 is None else f"macro-F1 {100 * news.macro_f1:.1f}"
    return f"trial {news.number}: {outcome}; best {100 * news.best:.1f}"
