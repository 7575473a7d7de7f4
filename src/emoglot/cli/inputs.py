"""Reads the data that the options of a command name, and prints what was dropped."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from emoglot.cli.options import ReadingOptions, TrainingOptions
from emoglot.cli.output import show_messages, warn, warn_of_bad_lines
from emoglot.errors import DataError, UsageError

if TYPE_CHECKING:
    from emoglot.data.dataset import Dataset
    from emoglot.data.parallel import Parallel
    from emoglot.data.recipe import Recipe


def read_training(training: TrainingOptions, recipe: Recipe, reading: ReadingOptions) -> tuple[Dataset, Dataset | None]:
    """Read training and validation data from a recipe and from files."""
    from emoglot.data.dataset import concatenate

    files = read_files(training.train, reading) if training.train else None
    given = [part for part in (read_recipe(recipe, "train", training.root), files) if part is not None]
    if not given:
        raise UsageError("no training data: use --train, or a --config that lists files as [[data.train]]")
    data = concatenate(given)
    if training.validation:
        return data, read_files(training.validation, reading, data.labels)
    return data, read_recipe(recipe, "validation", training.root)


def read_recipe(recipe: Recipe, purpose: str, root: Path) -> Dataset | None:
    """Read the data that a recipe lists for a purpose, if it lists any."""
    data = recipe.read(purpose, root)
    if data:
        warn_of_bad_lines(data.bad_lines, len(data))
    return data


def read_translations(paths: Sequence[Path], *, skip_bad: bool) -> Parallel:
    """Read files of translations, or folders of them."""
    from emoglot.data.parallel import read_parallel

    pairs = read_parallel(paths, skip_bad=skip_bad)
    warn_of_bad_lines(pairs.bad_lines, len(pairs))
    return pairs


def read_labelled(paths: Sequence[Path], reading: ReadingOptions, labels: Sequence[str]) -> Dataset:
    """Read data for a model with these labels, and warn about labels that the model does not have."""
    data = read_files(paths, reading, labels)
    used = [name for name, column in zip(data.labels, data.targets.T, strict=True) if 1 in column]
    if used and not set(used) & set(labels):
        raise DataError(
            f"the data must have at least one of the model's labels ({', '.join(labels)}), got {', '.join(used)}"
        )
    if foreign := [name for name in used if name not in labels]:
        warn(f"the model has no label {', '.join(foreign)}: left out")
    return data


def read_files(paths: Sequence[Path], reading: ReadingOptions, known_labels: Sequence[str] = ()) -> Dataset:
    """Read and concatenate labelled data files."""
    from emoglot.data.dataset import concatenate
    from emoglot.data.formats import find_files
    from emoglot.data.registry import read

    show_messages()
    files = [file for path in paths for file in find_files([str(path)])]  # a file that is listed twice counts twice
    data = concatenate(read(path, **reading.arguments(), known_labels=known_labels) for path in files)
    warn_of_bad_lines(data.bad_lines, len(data))
    return data
