"""A recipe: a TOML file with the settings of a run and, under [data], the files it reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from emoglot.config import read_toml
from emoglot.data.dataset import Dataset, concatenate
from emoglot.data.registry import read
from emoglot.errors import DataError, UsageError, shown
from emoglot.schema import Checked, build, number

DATA = "data"
PURPOSES = ("train", "validation", "thresholds", "parallel")
LEARNT = ("train", "parallel")  # the others choose thresholds or measure
_SEED = 0  # of samples: the same rows for every recipe


@dataclass(frozen=True)
class Ingredient(Checked):
    """Some files of labelled data, and which of their rows to use."""

    path: str  # a pattern such as "brighter/train/*.csv", relative to the data folder
    format: str | None = None
    skip_bad: bool = False
    rows: int | None = number(None, 1)  # size of a random sample
    rows_each: int | None = number(None, 1)  # largest size of a random sample per dataset and language
    repeats: int = number(1, 1)  # how often each row is repeated, to increase the weight of small datasets
    without_languages: tuple[str, ...] = ()
    without_files: tuple[str, ...] = ()  # patterns of file names to exclude
    only_files: tuple[str, ...] = ()  # patterns of file names, one of which must match
    permissive: bool = False  # whether the terms of the data allow any use of a model trained on it
    without_texts_of: str | None = None  # a pattern of files whose texts are excluded

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.path or Path(self.path).is_absolute():
            raise UsageError(f"path must be inside the data folder, got {self.path!r}")

    def files(self, root: Path) -> list[Path]:
        """Return the files, sorted by name."""
        return _found(root, self.path, self.without_files, self.only_files or ("*",))

    def read(self, root: Path) -> Dataset:
        """Read the files and select the rows."""
        data = concatenate(read(path, format=self.format, skip_bad=self.skip_bad) for path in self.files(root))
        if self.without_texts_of is not None:
            foreign = {text for path in _found(root, self.without_texts_of) for text in read(path).texts}
            data = data.select([row for row, text in enumerate(data.texts) if text not in foreign])
        if self.without_languages:
            data = data.select([row for row, name in enumerate(data.languages) if name not in self.without_languages])
        if self.rows_each is not None:
            data = data.select(_sample_each(data, self.rows_each))
        if self.rows is not None and self.rows < len(data):
            data = data.select(np.sort(np.random.default_rng(_SEED).permutation(len(data))[: self.rows]))
        return data.select(np.tile(np.arange(len(data)), self.repeats))


@dataclass(frozen=True)
class Recipe:
    """Settings, and data by purpose."""

    settings: Mapping[str, Any]
    data: Mapping[str, tuple[Ingredient, ...]]

    @classmethod
    def from_toml(cls, path: Path) -> Recipe:
        """Read a recipe; a file with only settings is valid as well."""
        settings = read_toml(path)
        data = settings.pop(DATA, {})
        if not isinstance(data, dict) or not all(isinstance(entries, list) for entries in data.values()):
            raise UsageError(f"{path}: files must be listed as tables such as [[{DATA}.train]], got {shown(data)}")
        if unknown := data.keys() - set(PURPOSES):
            raise UsageError(f"{path}: [{DATA}] must only have {', '.join(PURPOSES)}, got {', '.join(sorted(unknown))}")
        return cls(settings, {name: tuple(_ingredients(name, entries)) for name, entries in data.items()})

    def permissive(self) -> Recipe:
        """Return the recipe with only the training data that is marked as permissive."""
        kept = {
            purpose: tuple(entry for entry in entries if entry.permissive or purpose not in LEARNT)
            for purpose, entries in self.data.items()
        }
        return replace(self, data=kept)

    def read(self, purpose: str, root: Path) -> Dataset | None:
        """Read the labelled data for a purpose, if the recipe lists any."""
        ingredients = self.data.get(purpose)
        return concatenate(ingredient.read(root) for ingredient in ingredients) if ingredients else None

    def files(self, purpose: str, root: Path) -> list[Path]:
        """Return the files for a purpose, such as translations."""
        return [path for ingredient in self.data.get(purpose, ()) for path in ingredient.files(root)]


def _ingredients(purpose: str, entries: list[Any]) -> Iterator[Ingredient]:
    for entry in entries:
        try:
            yield build(Ingredient, entry)
        except UsageError as error:
            raise UsageError(f"an entry of [[{DATA}.{purpose}]] is invalid: {error}") from error


def _sample_each(data: Dataset, count: int) -> list[int]:
    """Draw at most this many rows from each dataset and language, in the order of the data."""
    taken: Counter[tuple[str, str]] = Counter()
    chosen = []
    for row in np.random.default_rng(_SEED).permutation(len(data)).tolist():
        group = (data.sources[row], data.languages[row])
        if taken[group] < count:
            taken[group] += 1
            chosen.append(row)
    return sorted(chosen)


def _found(root: Path, pattern: str, left_out: Sequence[str] = (), taken: Sequence[str] = ("*",)) -> list[Path]:
    matching = [path for path in root.glob(pattern) if any(map(path.match, taken))]
    found = sorted(path for path in matching if not any(map(path.match, left_out)))
    if not found:
        raise DataError(f"there is no file {pattern} in {root}: set the folder of the recipe's files with --root")
    return found
