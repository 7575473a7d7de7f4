"""`emoglot train`: data files in, a model folder out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from emoglot.cli import options
from emoglot.cli.output import note, progress_bar
from emoglot.config import Config, parse_setting
from emoglot.errors import UsageError

if TYPE_CHECKING:
    from emoglot.train import Epoch


def train(
    encoder: Annotated[str, typer.Option(help="An encoder: see `emoglot encoders`; or a folder.")],
    out: Annotated[Path, typer.Option(help="The model folder to write.")],
    train: Annotated[
        list[Path] | None, typer.Option(help="Training data; give it several times to combine files.")
    ] = None,
    validation: Annotated[
        list[Path] | None, typer.Option(help="Validation data; without it, a fifth of the training rows serves.")
    ] = None,
    start: Annotated[
        Path | None, typer.Option(help="A model on the same encoder, whose network is trained further.")
    ] = None,
    config: Annotated[Path | None, typer.Option(help="Settings, and perhaps data, as a TOML file.")] = None,
    data: Annotated[Path, typer.Option(help="Where the files that the config names are.")] = Path(),
    set_: Annotated[list[str] | None, typer.Option("--set", help="One setting, such as head.hidden=64.")] = None,
    wide: Annotated[bool | None, typer.Option("--wide/--no-wide", help="Add the channel of n-grams.")] = None,
    seed: Annotated[int | None, typer.Option(help="Same seed, same machine: same weights.")] = None,
    cache: Annotated[Path | None, typer.Option(help="Where token vectors are kept between runs.")] = None,
    overwrite: Annotated[bool, typer.Option(help="Replace the model folder if it exists.")] = False,
    format_: options.Format = None,
    skip_bad: options.SkipBad = False,
    text_column: options.TextColumn = None,
    label_columns: options.LabelColumns = None,
    labels_column: options.LabelsColumn = None,
    language_column: options.LanguageColumn = None,
) -> None:
    """Train a model and write it to a folder."""
    from emoglot.data.dataset import concatenate
    from emoglot.persist import check_target
    from emoglot.recipe import Recipe

    if out.exists() and not overwrite:
        raise UsageError(f"{out} exists already: give another --out, or --overwrite to replace it")
    check_target(out)
    recipe = Recipe.from_toml(config) if config else Recipe({}, {})
    settings = Config.from_dict(recipe.settings)
    overrides = dict(parse_setting(setting) for setting in set_ or [])
    if seed is not None:
        overrides["training.seed"] = seed
    if wide is not None:
        overrides["wide.enabled"] = wide
    settings = settings.override(overrides)
    reading = options.Reading(format_, skip_bad, text_column, label_columns, labels_column, language_column)
    parts = [recipe.read("train", data), options.read_all(train, reading) if train else None]
    given = [part for part in parts if part is not None]
    if not given:
        raise UsageError("no training data: give --train, or a --config that lists some as [[data.train]]")
    training_data = concatenate(given)
    validation_data = (
        options.read_all(validation, reading, training_data.labels) if validation else recipe.read("validation", data)
    )

    from emoglot.model import EmotionClassifier, load

    model = EmotionClassifier(encoder, config=settings, cache=cache)
    # After an interruption the same command goes on from here.
    checkpoint = out.resolve().with_name(f"{out.resolve().name}.checkpoint")
    with progress_bar("encoding") as on_features:
        model.fit_datasets(
            training_data,
            validation_data,
            on_features=on_features,
            on_epoch=_report,
            checkpoint=checkpoint,
            start=load(start, encoder=encoder) if start else None,
        )
    model.save(out)
    checkpoint.unlink(missing_ok=True)
    metrics = model.metrics_["overall"]
    note(
        f"validation: macro-F1 {100 * metrics['macro_f1']:.1f}, micro-F1 {100 * metrics['micro_f1']:.1f}, "
        f"Jaccard {100 * metrics['jaccard']:.1f} on {metrics['rows']} rows"
    )
    typer.echo(f"{out}")


def _report(epoch: Epoch) -> None:
    note(f"epoch {epoch.number}: loss {epoch.loss:.4f}, macro-F1 {100 * epoch.macro_f1:.1f}, {epoch.seconds:.1f} s")
