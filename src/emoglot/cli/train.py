"""`emoglot train`: data files in, a model folder out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from emoglot.cli import options
from emoglot.cli.output import note, progress_bar
from emoglot.errors import UsageError

if TYPE_CHECKING:
    from emoglot.config import Config
    from emoglot.data.dataset import Dataset
    from emoglot.parallel import Parallel
    from emoglot.teaching import Lessons
    from emoglot.train import Epoch


def train(
    encoder: options.TrainingEncoder,
    out: Annotated[Path, typer.Option(help="The model folder to write.")],
    train: options.TrainingFiles = None,
    validation: options.ValidationFiles = None,
    start: Annotated[
        Path | None, typer.Option(help="A model on the same encoder, whose network is trained further.")
    ] = None,
    teacher: Annotated[
        list[Path] | None,
        typer.Option(help="A trained model whose scores are learnt beside the labels; several are averaged."),
    ] = None,
    parallel: Annotated[
        list[Path] | None,
        typer.Option(help="Translations that a teacher labels by their English: LANGUAGE.tsv, or a folder of them."),
    ] = None,
    config: options.ConfigFile = None,
    data: options.DataRoot = Path(),
    permissive: Annotated[
        bool,
        typer.Option("--permissive", help="Of the config's data, learn from what is marked as permissive."),
    ] = False,
    set_: options.Settings = None,
    wide: options.Wide = None,
    fine_tune: options.FineTune = None,
    quantize: Annotated[
        str, typer.Option(help="none, or int8 for an encoder that is fine-tuned: a quarter of its size.")
    ] = "none",
    device: options.Device = "auto",
    seed: options.Seed = None,
    cache: options.Cache = None,
    overwrite: Annotated[bool, typer.Option(help="Replace the model folder if it exists.")] = False,
    format_: options.Format = None,
    skip_bad: options.SkipBad = False,
    text_column: options.TextColumn = None,
    label_columns: options.LabelColumns = None,
    labels_column: options.LabelsColumn = None,
    language_column: options.LanguageColumn = None,
) -> None:
    """Train a model and write it to a folder."""
    from emoglot.persist import check_target
    from emoglot.recipe import Recipe

    if out.exists() and not overwrite:
        raise UsageError(f"{out} exists already: give another --out, or --overwrite to replace it")
    check_target(out)
    recipe = Recipe.from_toml(config) if config else Recipe({}, {})
    if permissive:
        if not any(entry.permissive for entry in recipe.data.get("train", ())):
            raise UsageError("--permissive needs a --config that marks training data with `permissive = true`")
        recipe = recipe.permissive()
    settings = options.make_settings(recipe, set_ or [], wide, seed, fine_tune)
    reading = options.Reading(format_, skip_bad, text_column, label_columns, labels_column, language_column)
    training_data, validation_data = options.read_training(recipe, data, train or [], validation or [], reading)

    if permissive:  # the config speaks of the other datasets, too
        unused = settings.training.unused_choices(set(training_data.sources))
        choices = {name: value for name, value in settings.training.single_choice.items() if name not in unused}
        settings = settings.override({"training.single_choice": choices})

    from emoglot.model import EmotionClassifier, load

    model = EmotionClassifier(encoder, config=settings, quantize=quantize, device=device, cache=cache)
    lessons = None
    if teacher:
        if validation_data is None:
            raise UsageError("a student is measured on labelled rows that it did not learn from: give --validation")
        pairs = options.read_pairs(parallel or recipe.files("parallel", data), skip_bad)
        lessons = _ask_teachers(teacher, training_data, pairs, settings, out)
    elif parallel:
        raise UsageError("translations are labelled by a teacher: name one with --teacher")
    # After an interruption the same command goes on from here.
    checkpoint = out.resolve().with_name(f"{out.resolve().name}.checkpoint")
    with progress_bar("encoding") as on_features:
        model.fit_datasets(
            lessons.data if lessons else training_data,
            validation_data,
            chances=lessons.chances if lessons else None,
            on_features=on_features,
            on_epoch=_report,
            checkpoint=checkpoint,
            start=load(start, encoder=encoder) if start else None,
        )
    if out.exists() and not overwrite:
        raise UsageError(f"{out} was made meanwhile: move it away, and the same command goes on from {checkpoint}")
    model.save(out)
    checkpoint.unlink(missing_ok=True)
    metrics = model.metrics_["overall"]
    note(
        f"validation: macro-F1 {100 * metrics['macro_f1']:.1f}, micro-F1 {100 * metrics['micro_f1']:.1f}, "
        f"Jaccard {100 * metrics['jaccard']:.1f} on {metrics['rows']} rows"
    )
    if by_quantization := model.state.training.get("macro_f1_by_quantization"):
        before, after = (100 * by_quantization[kind] for kind in ("none", quantize))
        note(f"macro-F1 in float32 {before:.2f}, in {quantize} {after:.2f}")
    typer.echo(f"{out}")


def _ask_teachers(
    folders: list[Path], data: Dataset, parallel: Parallel | None, settings: Config, out: Path
) -> Lessons:
    """Let trained models score what is to be learnt; what they said is kept beside the model."""
    from emoglot.model import load
    from emoglot.teaching import make_lessons

    work = out.resolve().with_name(f"{out.resolve().name}.lessons")
    with progress_bar("asking the teacher") as on_progress:
        return make_lessons([load(folder) for folder in folders], data, parallel, settings, work, on_progress)


def _report(epoch: Epoch) -> None:
    note(f"epoch {epoch.number}: loss {epoch.loss:.4f}, macro-F1 {100 * epoch.macro_f1:.1f}, {epoch.seconds:.1f} s")
