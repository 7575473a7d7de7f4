"""Options of several commands, each declared once; a dataclass is a group of related options."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, asdict, dataclass, fields, is_dataclass
from functools import partial, wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from emoglot.config import Config, parse_setting
from emoglot.errors import UsageError

if TYPE_CHECKING:
    from emoglot.data.recipe import Recipe
    from emoglot.model import Model

DATA_SECTION, SETTINGS_SECTION, READING_SECTION = "Data", "Settings", "How data files are read"


def option(metavar: str, help: str, *names: str, section: str | None = None, **limits: Any) -> Any:
    """Return an option with a value, shown as `metavar` in the help."""
    return typer.Option(*names, metavar=metavar, help=help, rich_help_panel=section, **limits)


def flag(name: str, help: str, section: str | None = None) -> Any:
    """Return an option without a value."""
    return typer.Option(name, help=help, rich_help_panel=section)


data_option = partial(option, section=DATA_SECTION)
setting_option = partial(option, section=SETTINGS_SECTION)
reading_option = partial(option, section=READING_SECTION)

AsJson = Annotated[bool, flag("--json", "Print JSON instead of a table.")]
ModelName = Annotated[
    Path | None,
    option("NAME", "Model folder, or user/model on the Hugging Face hub. Default: the one in the package.", "--model"),
]
EncoderOption = Annotated[
    str | None, option("NAME", "Name or folder of the model's encoder, if it was moved or exported.", "--encoder")
]
TrainingEncoder = Annotated[
    str, option("NAME", "Encoder to train on: a name of `emoglot encoders`, or a folder.", "--encoder")
]
Quantize = Annotated[str, option("KIND", "none, or int8: a quarter of the size and about as accurate.")]
_DATA_FILES = data_option("FILE", "Labelled data file. Repeat the option to combine files.", "--data")
DataFiles = Annotated[list[Path], _DATA_FILES]
OptionalDataFiles = Annotated[list[Path] | None, _DATA_FILES]
ConfigFile = Annotated[
    Path | None,
    data_option("FILE", "TOML file with settings, and with data files in tables such as [[data.train]].", "--config"),
]
Root = Annotated[Path, data_option("DIR", "Folder that the data files named in a TOML file are relative to.", "--root")]
Translations = Annotated[
    list[Path],
    data_option(
        "PATH", "Translations: LANGUAGE.tsv, whose lines are English, a tab and the translation, or a folder of them."
    ),
]
SkipBad = Annotated[
    bool, flag("--skip-bad", "Drop malformed lines and print how many there were.", section=READING_SECTION)
]
TextColumn = Annotated[
    str | None, reading_option("NAME", "Column with the text. Default: found by its name, such as text or tweet.")
]
Encoding = Annotated[str | None, reading_option("NAME", "Encoding of the files, such as cp1252. Default: recognised.")]
Delimiter = Annotated[
    str | None, reading_option("SIGN", "Delimiter of CSV files, such as ; or tab. Default: recognised.")
]


@dataclass(frozen=True)
class ReadingOptions:
    """How labelled data files are read."""

    format: Annotated[
        str | None,
        reading_option("NAME", "Format of the files, such as csv or semeval. Default: recognised by content."),
    ] = None
    skip_bad: SkipBad = False
    text_column: TextColumn = None
    label_columns: Annotated[
        str | None,
        reading_option("NAMES", "The labels, separated by commas: columns of 0 and 1, or names in the labels column."),
    ] = None
    labels_column: Annotated[
        str | None,
        reading_option(
            "NAME", "Column that lists the labels of a row by name. Default: labels, label, emotions or emotion."
        ),
    ] = None
    language_column: Annotated[
        str | None,
        reading_option("NAME", "Column with the language, by code or name. Default: language or lang, if it exists."),
    ] = None
    encoding: Encoding = None
    delimiter: Delimiter = None

    def arguments(self) -> dict[str, Any]:
        """Return the keyword arguments of `emoglot.read`."""
        names = [name.strip() for name in self.label_columns.split(",")] if self.label_columns else None
        return {**asdict(self), "label_columns": names}


@dataclass(frozen=True)
class ModelOptions:
    """Which model a command uses."""

    model: ModelName = None
    encoder: EncoderOption = None

    def load(self) -> Model:
        """Load the model."""
        from emoglot.model import load

        return load(self.model, encoder=self.encoder)


@dataclass(frozen=True)
class LabelOptions:
    """How the labels of a text are chosen."""

    language: Annotated[
        str | None,
        option(
            "CODE",
            "Language of the texts, such as sw or Swahili; `any` for no language. Default: recognised for each text.",
        ),
    ] = None
    precision: Annotated[
        float | None,
        option("SHARE", "Use thresholds at which each label reached this precision on validation data, such as 0.8."),
    ] = None
    recall: Annotated[
        float | None,
        option("SHARE", "Use thresholds at which each label reached this recall on validation data, such as 0.8."),
    ] = None


@dataclass(frozen=True)
class TrainingOptions:
    """What a model is trained on, and with which settings."""

    train: Annotated[
        list[Path] | None, data_option("FILE", "Labelled data file to train on. Repeat the option to combine files.")
    ] = None
    validation: Annotated[
        list[Path] | None,
        data_option(
            "FILE",
            "Labelled data file for early stopping, thresholds and metrics. Default: a fifth of the training rows.",
        ),
    ] = None
    config: ConfigFile = None
    root: Root = Path()
    set_: Annotated[
        list[str] | None,
        setting_option("NAME=VALUE", "One setting, such as head.hidden=64. Repeat the option for more.", "--set"),
    ] = None
    wide: Annotated[
        bool | None, setting_option("", "Add a linear model of n-grams to the network.", "--wide/--no-wide")
    ] = None
    fine_tune: Annotated[
        bool | None,
        setting_option(
            "",
            "Train the encoder as well, which is slower and more accurate. Default: it stays frozen.",
            "--fine-tune/--frozen",
        ),
    ] = None
    seed: Annotated[
        int | None,
        setting_option("N", "Random seed: on the same machine, the same seed gives the same weights."),
    ] = None
    cache: Annotated[
        Path | None,
        setting_option(
            "DIR", "Folder in which token vectors are kept between runs, at most 20 GB. Default: the user's cache."
        ),
    ] = None

    def recipe(self) -> Recipe:
        """Read the TOML file; without one, return a recipe without settings and data."""
        from emoglot.data.recipe import Recipe

        return Recipe.from_toml(self.config) if self.config else Recipe({}, {})

    def settings(self, recipe: Recipe) -> Config:
        """Return the settings of a recipe, overridden by those of single options."""
        changes = dict(map(parse_setting, self.set_ or []))
        settings = dict(recipe.settings)
        if self.fine_tune is not None:
            changes["fine_tune.enabled"] = self.fine_tune
        if "fine_tune.enabled" in changes:  # applied first, because other defaults depend on it
            settings["fine_tune"] = {**settings.get("fine_tune", {}), "enabled": changes["fine_tune.enabled"]}
        if self.seed is not None:
            changes["training.seed"] = self.seed
        if self.wide is not None:
            changes["wide.enabled"] = self.wide
        return Config.from_dict(settings).override(changes)


def expanded(function: Callable[..., None]) -> Callable[..., None]:
    """Return a command in which each dataclass parameter is replaced by one option per field."""
    hints = get_type_hints(function, include_extras=True)
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    parameters: list[Parameter] = []
    for parameter in signature(function).parameters.values():
        if parameter.name in groups:
            parameters += _parameters_of(groups[parameter.name])
        else:
            parameters.append(parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=hints[parameter.name]))

    @wraps(function)
    def command(**given: Any) -> None:
        for name, kind in groups.items():
            given[name] = kind(**{item.name: given.pop(item.name) for item in fields(kind)})
        function(**given)

    del command.__wrapped__  # typer would use its signature
    command.__annotations__ = {}
    command.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return command


def _parameters_of(group: Any) -> list[Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        Parameter(
            item.name,
            Parameter.KEYWORD_ONLY,
            default=Parameter.empty if item.default is MISSING else item.default,
            annotation=hints[item.name],
        )
        for item in fields(group)
    ]


def check_new(out: Path) -> None:
    """Raise UsageError if a file or folder to write already exists."""
    if out.exists():
        raise UsageError(f"{out} already exists: choose another --out")
