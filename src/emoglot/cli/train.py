"""`emoglot train`: trains a model and writes its folder."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from emoglot.cli import options
from emoglot.cli.inputs import read_training, read_translations
from emoglot.cli.output import kept_when_interrupted, note, progress_bar, progress_bars
from emoglot.errors import UsageError

if TYPE_CHECKING:
    from emoglot.config import Config
    from emoglot.data.dataset import Dataset
    from emoglot.data.parallel import Parallel
    from emoglot.data.recipe import Recipe
    from emoglot.model import Model
    from emoglot.training.distill import Lessons
    from emoglot.training.loop import Epoch

_PAUSE = 60.0  # seconds between progress lines, if there is no progress bar


@dataclass(frozen=True)
class RunOptions:
    """How a model is trained, apart from its data and settings."""

    permissive: Annotated[
        bool,
        options.flag(
            "--permissive",
            "Train only on data that the TOML file marks with `permissive = true`.",
            section=options.DATA_SECTION,
        ),
    ] = False
    teacher: Annotated[
        list[Path] | None,
        options.option("DIR", "Trained model whose scores are learnt in addition to the labels. Several are averaged."),
    ] = None
    parallel: Annotated[
        list[Path] | None,
        options.data_option("PATH", "Translations that --teacher labels by their English: LANGUAGE.tsv, or a folder."),
    ] = None
    start: Annotated[Path | None, options.option("DIR", "Model to continue from, with the same encoder.")] = None
    quantize: options.Quantize = "none"
    device: Annotated[
        str, options.option("NAME", "Device for torch: cpu, cuda, mps, or auto for a CUDA GPU if there is one.")
    ] = "auto"
    overwrite: Annotated[bool, options.flag("--overwrite", "Replace the model folder if it exists.")] = False


@options.expanded
def train(
    encoder: options.TrainingEncoder,
    out: Annotated[
        Path, options.option("DIR", "Model folder to write; an interrupted run continues from DIR.checkpoint.")
    ],
    training: options.TrainingOptions,
    reading: options.ReadingOptions,
    run: RunOptions,
) -> None:
    """Train a model on labelled data.

    The data comes from --train and --validation, or from a TOML file with --config and --root. --quantize applies to
    models trained with --fine-tune, whose encoder becomes part of the model folder.
    """
    from emoglot.model import load
    from emoglot.training.train import check_folder, checkpoint_of, save_trained, train_model

    check_folder(out, overwrite=run.overwrite)
    recipe = _permissive(training.recipe()) if run.permissive else training.recipe()
    settings = training.settings(recipe)
    data, validation = read_training(training, recipe, reading)
    if run.permissive:
        settings = settings.for_sources(data.sources)
    checkpoint = checkpoint_of(out)
    with kept_when_interrupted(f"the state in {checkpoint}", checkpoint.exists):
        lessons = None
        if _has_teacher(run, validation):
            paths = run.parallel or recipe.files("parallel", training.root)
            pairs = read_translations(paths, skip_bad=reading.skip_bad) if paths else None
            lessons = _ask_teachers(run.teacher or [], data, pairs, settings, out)
        with progress_bars(_PAUSE) as update:
            model = train_model(
                encoder,
                lessons.data if lessons else data,
                validation,
                settings,
                quantize=run.quantize,
                device=run.device,
                cache=training.cache,
                chances=lessons.chances if lessons else None,
                on_features=partial(update, "encoding"),
                on_step=partial(update, "training", news="steps of this epoch"),
                on_epoch=_print_epoch,
                checkpoint=checkpoint,
                start=load(run.start, encoder=encoder) if run.start else None,
            )
        save_trained(model, out, overwrite=run.overwrite)
    _print_result(model, run.quantize)
    typer.echo(str(out))


def _permissive(recipe: Recipe) -> Recipe:
    if not any(entry.permissive for entry in recipe.data.get("train", ())):
        raise UsageError("--permissive needs a --config that marks training data with `permissive = true`")
    return recipe.permissive()


def _has_teacher(run: RunOptions, validation: Dataset | None) -> bool:
    """Return whether there are teachers; raise UsageError if they, or what they need, are missing."""
    if not run.teacher and run.parallel:
        raise UsageError("--parallel needs a teacher that labels the translations: use --teacher")
    if run.teacher and validation is None:
        raise UsageError("--teacher needs labelled rows that are not in the training data: use --validation")
    return bool(run.teacher)


def _ask_teachers(
    folders: list[Path], data: Dataset, parallel: Parallel | None, settings: Config, out: Path
) -> Lessons:
    """Score the texts to learn with trained models; the scores are kept beside the model folder."""
    from emoglot.model import load
    from emoglot.training.distill import make_lessons

    work = out.resolve().with_name(f"{out.resolve().name}.lessons")
    with progress_bar("scoring with the teacher") as on_progress:
        return make_lessons([load(folder) for folder in folders], data, parallel, settings, work, on_progress)


def _print_epoch(epoch: Epoch) -> None:
    note(f"epoch {epoch.number}: loss {epoch.loss:.4f}, macro-F1 {100 * epoch.macro_f1:.1f}, {epoch.seconds:.1f} s")


def _print_result(model: Model, quantize: str) -> None:
    metrics = model.metrics.overall
    note(
        f"validation: macro-F1 {100 * metrics.macro_f1:.1f}, micro-F1 {100 * metrics.micro_f1:.1f}, "
        f"Jaccard {100 * metrics.jaccard:.1f} on {metrics.rows} rows"
    )
    if by_quantization := model.state.training.get("macro_f1_by_quantization"):
        before, after = (100 * by_quantization[kind] for kind in ("none", quantize))
        note(f"macro-F1 in float32 {before:.2f}, in {quantize} {after:.2f}")
