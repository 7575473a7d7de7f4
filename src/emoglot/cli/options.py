"""Options that several commands take, each described once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from emoglot.cli.output import note, warn, warn_of_bad_lines
from emoglot.config import Config, parse_setting
from emoglot.errors import DataError, UsageError

if TYPE_CHECKING:
    from emoglot.data.dataset import Dataset
    from emoglot.model import EmotionClassifier
    from emoglot.parallel import Parallel
    from emoglot.recipe import Recipe

Format = Annotated[str | None, typer.Option("--format", help="The files' format; recognised by content if not given.")]
SkipBad = Annotated[bool, typer.Option("--skip-bad", help="Drop malformed lines and report how many.")]
TextColumn = Annotated[str | None, typer.Option(help="The column with the text.")]
LabelColumns = Annotated[str | None, typer.Option(help="Columns of 0 and 1, one for each label, comma separated.")]
LabelsColumn = Annotated[str | None, typer.Option(help="The column that lists a row's labels.")]
LanguageColumn = Annotated[str | None, typer.Option(help="The column with the language code.")]
TrainingEncoder = Annotated[str, typer.Option("--encoder", help="An encoder: see `emoglot encoders`; or a folder.")]
TrainingFiles = Annotated[
    list[Path] | None, typer.Option("--train", help="Training data; give it several times to combine files.")
]
ValidationFiles = Annotated[
    list[Path] | None,
    typer.Option("--validation", help="Validation data; without it, a fifth of the training rows serves."),
]
ConfigFile = Annotated[Path | None, typer.Option("--config", help="Settings, and perhaps data, as a TOML file.")]
DataRoot = Annotated[Path, typer.Option("--data", help="Where the files that the config names are.")]
Settings = Annotated[list[str] | None, typer.Option("--set", help="One setting, such as head.hidden=64.")]
Wide = Annotated[bool | None, typer.Option("--wide/--no-wide", help="Add the channel of n-grams.")]
FineTune = Annotated[
    bool | None, typer.Option("--fine-tune/--frozen", help="Train the encoder, too; by default it stays as it is.")
]
Device = Annotated[str, typer.Option(help="Where torch trains: auto, cpu, cuda or mps.")]
Seed = Annotated[int | None, typer.Option(help="Same seed, same machine: same weights.")]
Cache = Annotated[Path | None, typer.Option(help="Where token vectors are kept between runs.")]
Model = Annotated[Path | None, typer.Option("--model", help="A model folder; by default the model in the package.")]
Language = Annotated[
    str | None,
    typer.Option(help="The language of the texts, such as sw or Swahili; recognised if not given, any for none."),
]
Precision = Annotated[
    float | None, typer.Option(help="Give a label only from where it was right so often, such as 0.8.")
]
Recall = Annotated[
    float | None, typer.Option(help="Give a label from where so many of its texts were found, such as 0.8.")
]
EncoderOption = Annotated[str | None, typer.Option("--encoder", help="Where the model's encoder is now, if it moved.")]


@dataclass(frozen=True)
class Reading:
    """How data files are to be read."""

    format: str | None
    skip_bad: bool
    text_column: str | None
    label_columns: str | None
    labels_column: str | None
    language_column: str | None

    def options(self) -> dict[str, Any]:
        """Give the arguments of `emoglot.read`."""
        names = [name.strip() for name in self.label_columns.split(",")] if self.label_columns else None
        return {**asdict(self), "label_columns": names}


def make_settings(
    recipe: Recipe, changes: Sequence[str], wide: bool | None, seed: int | None, fine_tune: bool | None = None
) -> Config:
    """Take the settings of a recipe, then those given one by one."""
    overrides = dict(parse_setting(setting) for setting in changes)
    settings = dict(recipe.settings)
    if fine_tune is not None:
        overrides["fine_tune.enabled"] = fine_tune
    if "fine_tune.enabled" in overrides:  # here already, as other defaults follow from it
        settings["fine_tune"] = {**settings.get("fine_tune", {}), "enabled": overrides["fine_tune.enabled"]}
    if seed is not None:
        overrides["training.seed"] = seed
    if wide is not None:
        overrides["wide.enabled"] = wide
    return Config.from_dict(settings).override(overrides)


def read_training(
    recipe: Recipe, root: Path, train: Sequence[Path], validation: Sequence[Path], reading: Reading
) -> tuple[Dataset, Dataset | None]:
    """Read training and validation data, of a recipe or given by name."""
    from emoglot.data.dataset import concatenate

    parts = [read_recipe(recipe, "train", root), read_all(train, reading) if train else None]
    given = [part for part in parts if part is not None]
    if not given:
        raise UsageError("no training data: give --train, or a --config that lists some as [[data.train]]")
    training = concatenate(given)
    if validation:
        return training, read_all(validation, reading, training.labels)
    return training, read_recipe(recipe, "validation", root)


def read_recipe(recipe: Recipe, purpose: str, root: Path) -> Dataset | None:
    """Read what a recipe lists for a purpose, saying what was dropped."""
    data = recipe.read(purpose, root)
    if data:
        warn_of_bad_lines(data.bad_lines, len(data))
    return data


def read_pairs(paths: Sequence[Path], skip_bad: bool) -> Parallel | None:
    """Read translations, if there are any, saying what was dropped."""
    from emoglot.parallel import read_parallel

    if not paths:
        return None
    pairs = read_parallel(paths, skip_bad=skip_bad)
    warn_of_bad_lines(pairs.bad_lines, len(pairs))
    return pairs


def tell_never_given(model: EmotionClassifier, precision: float | None, recall: float | None) -> None:
    """Say which labels no threshold makes as precise as asked for."""
    if precision is None and recall is None:
        return
    if never := model.strictness.never_given(model.labels_, precision, recall):
        wanted = f"a precision of {precision:g}" if recall is None else f"a recall of {recall:g}"
        note(f"never given, as no score of validation data reached {wanted}: {', '.join(never)}")


def check_new(out: Path) -> None:
    """Refuse to write over anything."""
    if out.exists():
        raise UsageError(f"{out} exists already: give another --out")


def read_labelled(paths: Sequence[Path], reading: Reading, labels: Sequence[str]) -> Dataset:
    """Read data for a model that has these labels, saying which it has besides."""
    data = read_all(paths, reading, labels)
    used = [name for name, column in zip(data.labels, data.targets.T, strict=True) if 1 in column]
    if used and not set(used) & set(labels):
        raise DataError(f"the data names none of the model's labels ({', '.join(labels)}), got {', '.join(used)}")
    if foreign := [name for name in used if name not in labels]:
        warn(f"the model has no label {', '.join(foreign)}: left out")
    return data


def read_all(paths: Sequence[Path], reading: Reading, known_labels: Sequence[str] = ()) -> Dataset:
    """Read and concatenate data files, saying what was dropped."""
    from emoglot.data import read
    from emoglot.data.dataset import concatenate

    data = concatenate(read(path, **reading.options(), known_labels=known_labels) for path in paths)
    warn_of_bad_lines(data.bad_lines, len(data))
    return data
