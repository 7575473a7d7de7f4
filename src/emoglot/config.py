"""Every setting of a model and its training, as small frozen dataclasses that a TOML file can fill."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, cast

from emoglot.errors import UsageError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HEAD_KINDS = ("lstm", "gru", "rnn", "xml-cnn", "attention")
LOSS_KINDS = ("focal", "cross-entropy", "asymmetric")
WEIGHTINGS = ("dynamic", "uniform", "inverse", "class-balanced", "cost-sensitive")
TASKS = ("multi-label", "single-label")
# Where trainings are compared, these must not differ: they would be measured on other rows, or by another rule.
MEASURING = ("task", "training.seed", "training.thresholding_fraction", "training.validation_fraction")


@dataclass(frozen=True)
class HeadConfig:
    """The network between token vectors and logits. The numbers are the authors' best for three languages."""

    kind: str = "lstm"
    hidden: int = 128
    layers: int = 2
    bidirectional: bool = True
    dropout: float = 0.2201

    def __post_init__(self) -> None:
        _check_choice("head.kind", self.kind, HEAD_KINDS)
        _check_count("head.hidden", self.hidden, 1, 4096)
        _check_count("head.layers", self.layers, 1, 8)
        _check_range("head.dropout", self.dropout, 0, 0.95)


@dataclass(frozen=True)
class LossConfig:
    """The per-element loss and how classes are weighed. γ and κ are the authors' best for three languages."""

    kind: str = "focal"
    gamma: float = 4.0
    weighting: str = "dynamic"
    kappa: float = 0.2965
    beta: float = 0.999  # class-balanced weighting; the paper's best value on English
    # The three of the asymmetric loss, as its authors recommend them.
    gamma_positive: float = 0.0
    gamma_negative: float = 4.0
    margin: float = 0.05
    # Weight of the squared distance between a logit and that of the chance which a teacher gave. A chance of 0.02 and
    # one of 0.1 are far apart for it, and nearly the same for the other losses.
    distance: float = 0.0

    def __post_init__(self) -> None:
        _check_choice("loss.kind", self.kind, LOSS_KINDS)
        _check_choice("loss.weighting", self.weighting, WEIGHTINGS)
        for name in ("gamma", "gamma_positive", "gamma_negative"):
            _check_range(f"loss.{name}", getattr(self, name), 0, 20)
        _check_range("loss.kappa", self.kappa, 0, 1)
        _check_range("loss.margin", self.margin, 0, 0.5)
        _check_range("loss.distance", self.distance, 0, 100)
        if not 0 <= self.beta < 1:
            raise UsageError(f"loss.beta must be in [0, 1), got {self.beta}")


@dataclass(frozen=True)
class TrainingConfig:
    """How the head is fitted. Rate, decay and batch size are the authors' best for three languages."""

    learning_rate: float = 1.01e-3
    weight_decay: float = 1.45e-8
    batch_size: int = 32
    max_epochs: int = 100
    patience: int = 10
    token_dropout: float = 0.0  # of whole tokens, in training; not in the paper, but what lets small vectors generalise
    validation_fraction: float = 0.2  # of the training rows, only when no validation set is given
    thresholding_fraction: float = 0.3
    seed: int = 0
    # Datasets whose annotators chose one label for each text, by name, with the weight of the labels not chosen: those
    # may be true all the same. A text of such a dataset without any label was found to have none, which is sure. A name
    # stands for the dataset in all of its languages, too: "nusax" for "nusax-jv" and "nusax-su".
    single_choice: dict[str, float] = field(default_factory=dict)
    # Labels of the data that are learnt beside the others but not given with them: of sentiment, not of emotion.
    sentiment: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        _check_range("training.learning_rate", self.learning_rate, 1e-8, 10)
        _check_range("training.weight_decay", self.weight_decay, 0, 1)
        _check_count("training.batch_size", self.batch_size, 1, 65536)
        _check_count("training.max_epochs", self.max_epochs, 1, 100_000)
        _check_count("training.patience", self.patience, 1, 100_000)
        _check_range("training.token_dropout", self.token_dropout, 0, 0.95)
        _check_range("training.validation_fraction", self.validation_fraction, 0.01, 0.9)
        _check_range("training.thresholding_fraction", self.thresholding_fraction, 0.01, 0.9)
        _check_count("training.seed", self.seed, 0, 2**31 - 1)
        for name, weight in self.single_choice.items():
            _check_range(f"training.single_choice.{name}", weight, 0, 1)
        if strange := [name for name in self.sentiment if not isinstance(name, str)]:
            raise UsageError(f"training.sentiment is a list of labels, got {strange[0]!r}")

    def zero_weight(self, dataset: str) -> float:
        """Return how much a label counts that a row of a dataset has not, where it has another one."""
        return next((self.single_choice[name] for name in _dataset_names(dataset) if name in self.single_choice), 1.0)

    def unused_choices(self, datasets: Collection[str]) -> list[str]:
        """List the names in `single_choice` that stand for none of the datasets."""
        used = {name for dataset in datasets for name in _dataset_names(dataset)}
        return sorted(self.single_choice.keys() - used)


@dataclass(frozen=True)
class FineTuneConfig:
    """How the encoder is trained together with the head; it is not in the paper, whose encoder is frozen.

    `training` holds for both: its learning rate is the head's.
    """

    enabled: bool = False
    learning_rate: float = 1e-4  # of the encoder's highest layer
    layer_decay: float = 0.95  # each layer learns by this factor more slowly than the one above it
    weight_decay: float = 0.01
    warm_up: float = 0.06  # share of all steps in which the learning rates rise from 0; then they fall again
    frozen_layers: int = 0  # the lowest, which stay as they are: their output is computed once and cached
    embeddings: bool = False  # whether the table of token vectors, most of an XLM-R, is trained
    accumulate: int = 1  # batches in a step
    max_tokens: int = 128  # a longer text is cut in training; prediction reads all that the encoder can
    dropout: float = 0.1

    def __post_init__(self) -> None:
        _check_range("fine_tune.learning_rate", self.learning_rate, 1e-8, 1)
        _check_range("fine_tune.layer_decay", self.layer_decay, 0.1, 1)
        _check_range("fine_tune.weight_decay", self.weight_decay, 0, 1)
        _check_range("fine_tune.warm_up", self.warm_up, 0, 1)
        _check_count("fine_tune.frozen_layers", self.frozen_layers, 0, 1000)
        _check_count("fine_tune.accumulate", self.accumulate, 1, 65536)
        _check_count("fine_tune.max_tokens", self.max_tokens, 8, 8192)
        _check_range("fine_tune.dropout", self.dropout, 0, 0.95)
        if self.frozen_layers and self.embeddings:
            raise UsageError(
                f"fine_tune.embeddings trains what lies below the {self.frozen_layers} frozen layers: set "
                "fine_tune.frozen_layers=0, or leave the embeddings frozen"
            )


# What else differs from the defaults when the encoder is trained: a network that reads in context needs no LSTM above
# it, and three epochs are enough.
FINE_TUNING: dict[str, Any] = {
    "fine_tune": {"enabled": True},
    "head": {"kind": "attention"},
    "loss": {"gamma": 2.0},
    "training": {"learning_rate": 1e-3, "max_epochs": 3, "patience": 3},
}


@dataclass(frozen=True)
class WideConfig:
    """The optional channel of word and character n-grams; it is not in the paper."""

    enabled: bool = False
    buckets: int = 2**18  # four times as many gained nothing on the three languages of E-c
    word_ngrams: int = 2
    char_ngrams: int = 5
    regularisation: float = 3.0  # the inverse strength C of the logistic regression; 1 and 10 did worse on E-c
    without_sources: list[str] = field(default_factory=list)  # datasets that only the network is trained on
    say: float = 0.5  # the weight of its logits where it knows a text's n-grams; the rest is the network's

    def __post_init__(self) -> None:
        _check_count("wide.buckets", self.buckets, 1, 2**24)
        _check_count("wide.word_ngrams", self.word_ngrams, 1, 5)
        _check_count("wide.char_ngrams", self.char_ngrams, 1, 8)
        _check_range("wide.regularisation", self.regularisation, 1e-6, 1e6)
        _check_range("wide.say", self.say, 0, 1)


# How often a pair of each source is drawn, against 1 for sentences: words are many, and were translated out of context.
SOURCE_WEIGHTS = {
    "memolon": 0.15,
    "cldr": 0.2,
    "omw": 0.4,
    "wiktdict": 0.4,
    "gatitos": 0.5,
    "bible": 0.5,
    "goemotions_ko": 0.5,
    "ui_aosp": 0.5,
    "ui_commonvoice": 0.5,
    "ui_firefox": 0.5,
    "ui_mozilla_android": 0.5,
    "ui_mozilla_www": 0.5,
    "ui_wikipedia_android": 0.5,
}


@dataclass(frozen=True)
class TeachingConfig:
    """How a network learns from the scores of larger ones."""

    annotators: float = 0.5  # what a known label counts for, against the teachers' score of it
    labelled: bool = True  # whether teachers are asked about texts, too, whose emotions annotators labelled
    pairs: int = 2000  # translations of each language
    sources: dict[str, float] = field(default_factory=SOURCE_WEIGHTS.copy)

    def __post_init__(self) -> None:
        _check_range("teaching.annotators", self.annotators, 0, 1)
        _check_count("teaching.pairs", self.pairs, 1, 2**31 - 1)
        for name, weight in self.sources.items():
            _check_range(f"teaching.sources.{name}", weight, 0, 1000)


@dataclass(frozen=True)
class ExtensionConfig:
    """How words of a new language are learnt."""

    words: int = 8000  # at most, with letters that the encoder lacks
    epochs: int = 8
    batch_size: int = 32
    learning_rate: float = 0.01
    seed: int = 0

    def __post_init__(self) -> None:
        _check_count("words", self.words, 1, 1_000_000)
        _check_count("epochs", self.epochs, 1, 10_000)
        _check_count("batch_size", self.batch_size, 1, 65536)
        _check_range("learning_rate", self.learning_rate, 1e-8, 10)
        _check_count("seed", self.seed, 0, 2**31 - 1)

    def override(self, settings: Mapping[str, Any]) -> ExtensionConfig:
        """Return a copy with settings replaced."""
        return cast(ExtensionConfig, _fill(self, settings, ""))


@dataclass(frozen=True)
class Config:
    """All settings of one model."""

    task: str = "multi-label"
    head: HeadConfig = field(default_factory=HeadConfig)
    loss: LossConfig = field(default_factory=LossConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    fine_tune: FineTuneConfig = field(default_factory=FineTuneConfig)
    wide: WideConfig = field(default_factory=WideConfig)
    teaching: TeachingConfig = field(default_factory=TeachingConfig)

    def __post_init__(self) -> None:
        _check_choice("task", self.task, TASKS)

    @property
    def single_label(self) -> bool:
        """Whether just one label of a text is true."""
        return self.task == "single-label"

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Config:
        """Return the defaults with dotted settings replaced; `fine_tune.enabled` changes the defaults."""
        is_tuned = settings.get("fine_tune.enabled") is True
        return (cls.for_fine_tuning() if is_tuned else cls()).override(settings)

    def differences(self) -> dict[str, Any]:
        """Return the dotted settings that are not the defaults: what tells this config from any other."""
        ours, usual = _flat(self.to_dict()), _flat(Config().to_dict())
        return {name: value for name, value in ours.items() if value != usual[name]}

    def override(self, settings: Mapping[str, Any]) -> Config:
        """Return a copy with dotted settings replaced, such as {"head.hidden": 64}."""
        config: Config = self
        for name, value in settings.items():
            section, _, key = name.rpartition(".")
            table: dict[str, Any] = {section: {key: value}} if section else {key: value}
            if "." in section:  # an entry of a table inside of a section
                section, _, inner = section.partition(".")
                entries = getattr(getattr(config, section, None), inner, {})
                table = {section: {inner: {**(entries if isinstance(entries, dict) else {}), key: value}}}
            config = cast(Config, _fill(config, table, ""))
        return config

    def to_dict(self) -> dict[str, Any]:
        """Give plain nested dictionaries, as stored in a model folder."""
        return asdict(self)

    def to_toml(self) -> str:
        """Write the file that `from_toml` reads."""
        tables = [(name, value) for name, value in self.to_dict().items() if isinstance(value, dict)]
        lines = [f"task = {_toml(self.task)}"]
        for name, table in tables:
            lines += ["", f"[{name}]", *(f"{key} = {_toml(value)}" for key, value in table.items())]
        return "\n".join(lines) + "\n"

    @classmethod
    def for_fine_tuning(cls) -> Config:
        """Return the defaults for an encoder that is trained, too."""
        return cast(Config, _fill(cls(), FINE_TUNING, ""))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Config:
        """Read nested dictionaries, refusing settings that do not exist; `fine_tune.enabled` changes the defaults."""
        fine_tune = values.get("fine_tune")
        is_tuned = isinstance(fine_tune, Mapping) and fine_tune.get("enabled") is True
        return cast(Config, _fill(cls.for_fine_tuning() if is_tuned else cls(), values, ""))

    @classmethod
    def from_toml(cls, path: Path) -> Config:
        """Read a TOML file with the tables [head], [loss], [training], [fine_tune], [wide] and [teaching]."""
        return cls.from_dict(read_toml(path))


def read_toml(path: Path) -> dict[str, Any]:
    """Read a file of settings, with one clear sentence when that can't be done."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"can't read the config {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not TOML: {error}") from error


def _dataset_names(dataset: str) -> tuple[str, str]:
    """Return the names by which a dataset may be meant: its own, and that without its language."""
    return dataset, re.sub(r"-[a-z]{2,3}(-[A-Z][A-Za-z]+)?$", "", dataset)


def _flat(values: Mapping[str, Any]) -> dict[str, Any]:
    """Turn the tables of a config into dotted settings."""
    flat: dict[str, Any] = {}
    for name, value in values.items():
        flat |= {f"{name}.{key}": entry for key, entry in value.items()} if isinstance(value, dict) else {name: value}
    return flat


def _toml(value: Any) -> str:
    """Write a value as TOML, which is JSON's way for all that a setting can be, except for tables."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(name)} = {_toml(entry)}" for name, entry in value.items()) + "}"
    return json.dumps(value, ensure_ascii=False)  # TOML has no surrogates


def parse_setting(setting: str) -> tuple[str, Any]:
    """Read `head.hidden=64` as a name and a TOML value; a bare word is a string, and .5 is a number as in a shell."""
    name, separator, value = setting.partition("=")
    if not separator or not name.strip():
        raise UsageError(f"a setting is written name=value, such as head.hidden=64, got {setting!r}")
    return name.strip(), _parse_value(value.strip())


def _parse_value(value: str) -> Any:
    try:
        return tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        pass
    try:
        return float(value)
    except ValueError:
        return value


def _fill(config: Any, values: Mapping[str, Any], prefix: str) -> Any:
    """Replace the fields of a dataclass, and of those inside it, by the values of nested mappings."""
    known = {item.name: getattr(config, item.name) for item in fields(config)}
    changes: dict[str, Any] = {}
    for name, value in values.items():
        if name not in known:
            raise UsageError(f"there is no setting {prefix}{name!r}; there are: {', '.join(known)}")
        changes[name] = _convert(f"{prefix}{name}", value, known[name])
    return replace(config, **changes)


def _convert(name: str, value: Any, current: Any) -> Any:
    """Check a value against the type of the one it replaces."""
    if is_dataclass(current):
        if not isinstance(value, Mapping):
            raise UsageError(f"{name} is a table of settings, got {value!r}")
        return _fill(current, value, f"{name}.")
    if isinstance(current, float) and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if type(value) is not type(current):
        raise UsageError(f"{name} must be of type {type(current).__name__}, got {value!r}")
    return value


def _check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise UsageError(f"{name} must be one of {', '.join(choices)}, got {value!r}")


def _check_range(name: str, value: float, low: float, high: float) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise UsageError(f"{name} must be a number, got {value!r}")
    if not low <= value <= high:
        raise UsageError(f"{name} must be in [{low:g}, {high:g}], got {value!r}")


def _check_count(name: str, value: int, low: int, high: int) -> None:
    if not isinstance(value, int):
        raise UsageError(f"{name} must be a whole number, got {value!r}")
    _check_range(name, value, low, high)
