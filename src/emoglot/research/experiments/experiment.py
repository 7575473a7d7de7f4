"""An experiment: a table or figure of the paper, read from a TOML file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from emoglot.config import MEASURING, Config, read_toml
from emoglot.errors import UsageError
from emoglot.schema import Rule, build, choice, one_of, ruled

FOLDER = Path(__file__).parent
LANGUAGES = ("ar", "en", "es")  # of E-c, in the order of the paper's tables
NETWORK = "network"
METHODS = (NETWORK, "tw-star", "logistic", "fasttext", "prior", "quoted")
FIGURES = ("macro_f1", "micro_f1", "jaccard")
CHOSEN, USUAL = CUTS = ("chosen", "usual")  # our thresholds, and the usual one of a method
PLOTS = ("bars", "groups", "curves", "classes", "rank")
_ONE_VALUE = Rule(
    'one value, under a name in quotes such as "head.kind"', lambda value: not isinstance(value, dict | list)
)


@dataclass(frozen=True)
class Column:
    """A column of the table: evaluation on the rows of some languages."""

    name: str
    languages: tuple[str, ...]


@dataclass(frozen=True)
class Training:
    """Everything that a result depends on, except data, encoder and seed."""

    method: str
    languages: tuple[str, ...]
    settings: tuple[tuple[str, Any], ...] = ()

    def config(self) -> Config:
        """Return the settings of this training."""
        return Config.from_settings(dict(self.settings))


@dataclass(frozen=True)
class Row:
    """A row of the table: a training and the results that the paper reports for it."""

    name: str
    method: str = NETWORK
    train: tuple[str, ...] = ()  # languages; by default those of the column
    settings: tuple[tuple[str, Any], ...] = ()
    paper: Mapping[str, tuple[float, ...]] = field(default_factory=dict)  # by column, one number for each figure
    curve: str | None = None  # the line of the plot that this point belongs to …
    at: float | None = None  # … and its position

    def training(self, column: Column) -> Training | None:
        """Return the training for a column, or None for quoted figures."""
        if self.method == "quoted":
            return None
        return Training(self.method, self.train or column.languages, self.settings)


@dataclass(frozen=True)
class Experiment:
    """A table or figure of the paper."""

    name: str
    title: str
    plot: str
    figures: tuple[str, ...]
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    note: str = ""
    cuts: tuple[str, ...] = (CHOSEN,)
    against: str | None = None  # the row that the others are compared with by a paired bootstrap

    def trainings(self) -> list[Training]:
        """Return the distinct trainings."""
        found = [row.training(column) for row in self.rows for column in self.columns]
        return list(dict.fromkeys(training for training in found if training))


def names() -> list[str]:
    """Return the names of the experiments of the paper."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def load_experiment(name: str) -> Experiment:
    """Read an experiment of the paper by name, or any by its TOML file."""
    path = Path(name)
    if path.suffix == ".toml":
        if path.stem in names():
            raise UsageError(f"{name} would overwrite the paper's {path.stem}: choose another name")
        return read_experiment(path)
    if name not in names():
        raise UsageError(f"there is no experiment {name!r}: choose one of {', '.join(names())}, or your own FILE.toml")
    return read_experiment(FOLDER / f"{name}.toml")


@dataclass(frozen=True)
class _Entry:
    """A row as written in a file; one that sweeps a setting over several values stands for several rows."""

    name: str
    method: str = choice(METHODS)
    train: tuple[str, ...] = ()
    set: dict[str, Any] = field(default_factory=dict, metadata=ruled(_ONE_VALUE))
    paper: dict[str, float | tuple[float, ...]] = field(default_factory=dict)
    sweep: str | None = None
    over: tuple[int | float, ...] = ()

    def rows(self) -> Iterator[Row]:
        """Yield the rows."""
        paper = {name: values if isinstance(values, tuple) else (values,) for name, values in self.paper.items()}
        base = Row(self.name, self.method, self.train, tuple(sorted(self.set.items())), paper)
        if self.sweep is None:
            yield base
            return
        for value in self.over:
            name = f"{self.name}, {self.sweep.rpartition('.')[2]} = {value:g}"
            settings = tuple(sorted([*base.settings, (self.sweep, value)]))
            yield replace(base, name=name, settings=settings, paper={}, curve=self.name, at=float(value))


@dataclass(frozen=True)
class _File:
    """An experiment as written in a file."""

    title: str
    plot: str = field(metadata=ruled(one_of(PLOTS)))
    columns: tuple[Column, ...]
    figures: tuple[str, ...] = field(default=FIGURES[:1], metadata=ruled(one_of(FIGURES)))
    rows: tuple[_Entry, ...] = ()
    note: str = ""
    cuts: tuple[str, ...] = field(default=(CHOSEN,), metadata=ruled(one_of(CUTS)))
    against: str | None = None


def read_experiment(path: Path) -> Experiment:
    """Read the file of an experiment."""
    try:
        file = build(_File, read_toml(path))
    except UsageError as error:
        raise UsageError(f"{path} does not describe an experiment: {error}") from error
    rows = tuple(row for entry in file.rows for row in entry.rows())
    experiment = Experiment(path.stem, **{**vars(file), "rows": rows, "note": file.note.strip()})
    _check(experiment, path)
    return experiment


def _check(experiment: Experiment, path: Path) -> None:
    """Raise UsageError for an invalid experiment before anything is trained."""
    if experiment.plot in ("bars", "classes") and len(experiment.columns) != 1:
        raise UsageError(
            f"{path}: a plot of {experiment.plot} has one column, got {len(experiment.columns)}; groups may have many"
        )
    if CHOSEN not in experiment.cuts:
        raise UsageError(f"{path}: cuts must include {CHOSEN}, got {', '.join(experiment.cuts)}")
    if experiment.against is not None and experiment.against not in {row.name for row in experiment.rows}:
        raise UsageError(f"{path}: {experiment.against!r} is not the name of a row")
    for kind, given in (("columns", experiment.columns), ("rows", experiment.rows)):
        if len({one.name for one in given}) < len(given):
            raise UsageError(f"{path}: {kind} must have unique names")
    for column in experiment.columns:
        _check_languages(column.languages, path)
    _check_rows(experiment, path)


def _check_languages(languages: Sequence[str], path: Path) -> None:
    if not languages or set(languages) - set(LANGUAGES):
        raise UsageError(f"{path}: languages are some of {', '.join(LANGUAGES)}, got {', '.join(languages) or 'none'}")


def _check_rows(experiment: Experiment, path: Path) -> None:
    columns = {column.name for column in experiment.columns}
    for row in experiment.rows:
        lengths = {len(values) for values in row.paper.values()}
        if not set(row.paper) <= columns or lengths - {len(experiment.figures)}:
            raise UsageError(f"{path}: the paper's figures of {row.name!r} must fit the columns and the figures")
    for training in experiment.trainings():
        training.config()
        if unlike := {name for name, _ in training.settings} & set(MEASURING):
            raise UsageError(
                f"{path}: {', '.join(sorted(unlike))} cannot be set: all rows must be evaluated in the same way"
            )
        _check_languages(training.languages, path)
