"""An experiment: a table or figure of the paper as a TOML file, whose rows are settings unlike the method's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from emoglot.config import MEASURING, Config, read_toml
from emoglot.errors import UsageError

FOLDER = Path(__file__).parent
LANGUAGES = ("ar", "en", "es")  # of E-c, in the order of the paper's tables
NETWORK = "network"
METHODS = (NETWORK, "tw-star", "logistic", "fasttext", "prior", "quoted")
FIGURES = ("macro_f1", "micro_f1", "jaccard")
CHOSEN, USUAL = CUTS = ("chosen", "usual")  # cut by our thresholds, and where a method is cut elsewhere
PLOTS = ("bars", "groups", "curves", "classes", "rank")


@dataclass(frozen=True)
class Column:
    """The rows of the validation set that a column of the table is measured on."""

    name: str
    languages: tuple[str, ...]


@dataclass(frozen=True)
class Training:
    """What one cell trains: all that its result depends on, except data, encoder and seed."""

    method: str
    languages: tuple[str, ...]
    settings: tuple[tuple[str, Any], ...] = ()

    def config(self) -> Config:
        """Give the method's settings with this training's differences."""
        return Config.from_settings(dict(self.settings))


@dataclass(frozen=True)
class Row:
    """A line of the table: a way to train, and what the paper reports of it."""

    name: str
    method: str = NETWORK
    train: tuple[str, ...] = ()  # languages; none: those of the column
    settings: tuple[tuple[str, Any], ...] = ()
    paper: Mapping[str, tuple[float, ...]] = field(default_factory=dict)  # by column, one number for each figure
    curve: str | None = None  # the line of a plot that this is a point of …
    at: float | None = None  # … and where

    def training(self, column: Column) -> Training | None:
        """Say what to train for a column; nothing for figures that are quoted."""
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
    against: str | None = None  # the row that all others are compared with by a paired bootstrap

    def trainings(self) -> list[Training]:
        """List what must be trained, each once."""
        found = [row.training(column) for row in self.rows for column in self.columns]
        return list(dict.fromkeys(training for training in found if training))


def names() -> list[str]:
    """List the experiments there are."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def load(name: str) -> Experiment:
    """Read an experiment of the paper, or one from a file of your own."""
    path = Path(name)
    if path.suffix == ".toml":
        if path.stem in names():
            raise UsageError(f"{name} would be written over the paper's {path.stem}: give it another name")
        return read(path)
    if name not in names():
        raise UsageError(f"there is no experiment {name!r}; there are: {', '.join(names())}, or your own FILE.toml")
    return read(FOLDER / f"{name}.toml")


def read(path: Path) -> Experiment:
    """Read the file of an experiment."""
    content = read_toml(path)
    try:
        figures = tuple(content.get("figures", FIGURES[:1]))
        columns = tuple(Column(entry["name"], tuple(entry["languages"])) for entry in content["columns"])
        experiment = Experiment(
            name=path.stem,
            title=content["title"],
            plot=content["plot"],
            figures=figures,
            columns=columns,
            rows=tuple(row for entry in content.get("rows", []) for row in _rows(entry, columns, figures)),
            note=content.get("note", "").strip(),
            cuts=tuple(content.get("cuts", [CHOSEN])),
            against=content.get("against"),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"{path} does not describe an experiment: {error!r}") from error
    _check(experiment, path)
    return experiment


def _rows(entry: Mapping[str, Any], columns: Sequence[Column], figures: Sequence[str]) -> list[Row]:
    """Give the row of an entry or, where one setting sweeps over many values, a row for each value."""
    known = {"name", "method", "train", "set", "paper", "sweep", "over"}
    if unknown := set(entry) - known:
        raise KeyError(f"a row has {', '.join(sorted(known))}, not {', '.join(sorted(unknown))}")
    if any(isinstance(value, dict | list) for value in entry.get("set", {}).values()):
        raise KeyError('a setting is one value, and its name is in quotes, such as "head.kind" = "gru"')
    if not all(isinstance(value, int | float) for value in entry.get("over", [])):
        raise KeyError(f"a sweep is over numbers, not {entry['over']}")
    paper = entry.get("paper", {})
    base = Row(
        name=entry["name"],
        method=entry.get("method", NETWORK),
        train=tuple(entry.get("train", ())),
        settings=tuple(sorted(entry.get("set", {}).items())),
        paper={name: tuple(values if isinstance(values, list) else [values]) for name, values in paper.items()},
    )
    if "sweep" not in entry:
        return [base]
    setting = entry["sweep"]
    return [
        Row(
            name=f"{base.name}, {setting.rpartition('.')[2]} = {value:g}",
            method=base.method,
            train=base.train,
            settings=tuple(sorted([*base.settings, (setting, value)])),
            curve=base.name,
            at=float(value),
        )
        for value in entry["over"]
    ]


def _check(experiment: Experiment, path: Path) -> None:
    """Refuse what would only be noticed after hours."""
    if experiment.plot not in PLOTS:
        raise UsageError(f"{path}: plot must be one of {', '.join(PLOTS)}, got {experiment.plot!r}")
    if experiment.plot in ("bars", "classes") and len(experiment.columns) != 1:
        raise UsageError(
            f"{path}: a plot of {experiment.plot} has one column, got {len(experiment.columns)}; groups may have many"
        )
    if not set(experiment.figures) <= set(FIGURES):
        raise UsageError(f"{path}: figures are {', '.join(FIGURES)}, got {', '.join(experiment.figures)}")
    if not {CHOSEN} <= set(experiment.cuts) <= set(CUTS):
        raise UsageError(f"{path}: cuts are {CHOSEN}, and perhaps {USUAL}, got {', '.join(experiment.cuts)}")
    if experiment.against is not None and experiment.against not in {row.name for row in experiment.rows}:
        raise UsageError(f"{path}: {experiment.against!r} is not the name of a row")
    for kind, given in (("columns", experiment.columns), ("rows", experiment.rows)):
        if len({one.name for one in given}) < len(given):
            raise UsageError(f"{path}: {kind} must have names of their own")
    for column in experiment.columns:
        _check_languages(column.languages, path)
    _check_rows(experiment, path)


def _check_languages(languages: Sequence[str], path: Path) -> None:
    if not languages or set(languages) - set(LANGUAGES):
        raise UsageError(f"{path}: languages are some of {', '.join(LANGUAGES)}, got {', '.join(languages) or 'none'}")


def _check_rows(experiment: Experiment, path: Path) -> None:
    columns = {column.name for column in experiment.columns}
    for row in experiment.rows:
        if row.method not in METHODS:
            raise UsageError(f"{path}: a method is one of {', '.join(METHODS)}, got {row.method!r} for {row.name!r}")
        lengths = {len(values) for values in row.paper.values()}
        if not set(row.paper) <= columns or lengths - {len(experiment.figures)}:
            raise UsageError(f"{path}: the paper's figures of {row.name!r} must fit the columns and the figures")
    for training in experiment.trainings():
        training.config()
        if unlike := {name for name, _ in training.settings} & set(MEASURING):
            raise UsageError(f"{path}: {', '.join(sorted(unlike))} can't be set: rows must be measured alike")
        _check_languages(training.languages, path)
