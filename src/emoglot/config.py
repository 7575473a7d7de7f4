"""The settings of a model and its training, as frozen dataclasses that can be read from TOML."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import reduce
from pathlib import Path
from typing import Any

from emoglot.errors import UsageError
from emoglot.schema import Checked, Rule, choice, fill, number, ruled, within

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HEAD_KINDS = ("lstm", "gru", "rnn", "xml-cnn", "attention")
LOSS_KINDS = ("focal", "cross-entropy", "asymmetric")
WEIGHTINGS = ("dynamic", "uniform", "inverse", "class-balanced", "cost-sensitive")
TASKS = ("multi-label", "single-label")
PRECISIONS = ("float32", "bfloat16")
# Settings that must be equal in trainings that are compared: they change which rows are measured, or how.
MEASURING = ("task", "training.seed", "training.thresholding_fraction", "training.validation_fraction")


@dataclass(frozen=True)
class HeadConfig(Checked, prefix="head."):
    """The network between token vectors and logits; defaults are the authors' best for three languages."""

    kind: str = choice(HEAD_KINDS)
    hidden: int = number(128, 1, 4096)
    layers: int = number(2, 1, 8)
    bidirectional: bool = True
    dropout: float = number(0.2201, 0, 0.95)


@dataclass(frozen=True)
class LossConfig(Checked, prefix="loss."):
    """The loss per element and the class weights; γ and κ are the authors' best for three languages."""

    kind: str = choice(LOSS_KINDS)
    gamma: float = number(4.0, 0, 20)
    weighting: str = choice(WEIGHTINGS)
    kappa: float = number(0.2965, 0, 1)
    # For class-balanced weighting; the paper's best value for English.
    beta: float = field(default=0.999, metadata=ruled(Rule("in [0, 1)", lambda value: bool(0 <= value < 1))))
    # For the asymmetric loss, as its authors recommend.
    gamma_positive: float = number(0.0, 0, 20)
    gamma_negative: float = number(4.0, 0, 20)
    margin: float = number(0.05, 0, 0.5)
    # Weight of the squared distance between a logit and the logit of the teachers' probability. It distinguishes
    # probabilities of 0.02 and 0.1, which the other losses hardly do.
    distance: float = number(0.0, 0, 100)


@dataclass(frozen=True)
class TrainingConfig(Checked, prefix="training."):
    """The training of the head; rate, decay and batch size are the authors' best for three languages."""

    learning_rate: float = number(1.01e-3, 1e-8, 10)
    weight_decay: float = number(1.45e-8, 0, 1)
    batch_size: int = number(32, 1, 65536)
    max_epochs: int = number(100, 1, 100_000)
    epoch_rows: int = number(0, 0, 2**31 - 1)  # rows of an epoch, drawn anew for each; 0 for all
    patience: int = number(10, 1, 100_000)
    token_dropout: float = number(0.0, 0, 0.95)  # not in the paper, but small vectors generalise better
    validation_fraction: float = number(0.2, 0.01, 0.9)  # of the training rows, only when no validation set is given
    thresholding_fraction: float = number(0.3, 0.01, 0.9)
    seed: int = number(0, 0, 2**31 - 1)
    # Datasets whose annotators chose one label per text, with the weight of the labels not chosen, which may be true as
    # well. A text without any label has full weight. A name includes all languages of the dataset: "nusax" stands for
    # "nusax-jv" and "nusax-su".
    single_choice: dict[str, float] = field(default_factory=dict, metadata=ruled(within(0, 1)))
    # Labels that are trained with the others but predicted as sentiment.
    sentiment: list[str] = field(default_factory=list)

    def zero_weight(self, dataset: str) -> float:
        """Return the weight of the absent labels of a row of a dataset, if the row has another label."""
        return next((self.single_choice[name] for name in _dataset_names(dataset) if name in self.single_choice), 1.0)

    def unused_choices(self, datasets: Collection[str]) -> list[str]:
        """Return the names in `single_choice` that match none of the datasets."""
        used = {name for dataset in datasets for name in _dataset_names(dataset)}
        return sorted(self.single_choice.keys() - used)


@dataclass(frozen=True)
class FineTuneConfig(Checked, prefix="fine_tune."):
    """The training of the encoder together with the head; not in the paper, whose encoder is frozen.

    `training` applies to both; its learning rate is that of the head.
    """

    enabled: bool = False
    learning_rate: float = number(1e-4, 1e-8, 1)  # of the encoder's highest layer
    layer_decay: float = number(0.95, 0.1, 1)  # factor of the learning rate from one layer to the next lower one
    weight_decay: float = number(0.01, 0, 1)
    warm_up: float = number(0.06, 0, 1)  # share of all steps in which the learning rates rise; then they fall
    frozen_layers: int = number(0, 0, 1000)  # lowest layers that are not trained; their output is cached
    embeddings: bool = False  # whether the token embeddings, most of an XLM-R, are trained
    accumulate: int = number(1, 1, 65536)  # batches per step
    max_tokens: int = number(128, 8, 8192)  # of a text in training; prediction uses the limit of the encoder
    dropout: float = number(0.1, 0, 0.95)
    precision: str = choice(PRECISIONS)  # of the encoder's products in training; weights are always float32

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.frozen_layers and self.embeddings:
            raise UsageError(
                f"fine_tune.embeddings cannot be trained below {self.frozen_layers} frozen layers: set "
                "fine_tune.frozen_layers=0, or leave the embeddings frozen"
            )


# The defaults that differ when the encoder is trained: it needs no LSTM above it, and three epochs are enough.
FINE_TUNING: dict[str, Any] = {
    "fine_tune": {"enabled": True},
    "head": {"kind": "attention"},
    "loss": {"gamma": 2.0},
    "training": {"learning_rate": 1e-3, "max_epochs": 3, "patience": 3},
}


@dataclass(frozen=True)
class WideConfig(Checked, prefix="wide."):
    """The optional channel of word and character n-grams; not in the paper."""

    enabled: bool = False
    buckets: int = number(2**18, 1, 2**24)  # four times as many were not better on the three languages of E-c
    word_ngrams: int = number(2, 1, 5)
    char_ngrams: int = number(5, 1, 8)
    regularisation: float = number(3.0, 1e-6, 1e6)  # C of the logistic regression; 1 and 10 were worse on E-c
    without_sources: list[str] = field(default_factory=list)  # datasets on which only the network is trained
    weight: float = number(0.5, 0, 1)  # of its logits in a text whose n-grams it knows; the rest is the network's


# Sampling weights of sources, 1 for sentences: words are many, and were translated without context.
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
class TeachingConfig(Checked, prefix="teaching."):
    """The training of a network on the scores of teachers."""

    annotators: float = number(0.5, 0, 1)  # weight of a known label against the teachers' score
    labelled: bool = True  # whether teachers also score texts whose emotions are annotated
    pairs: int = number(2000, 1, 2**31 - 1)  # translations per language
    english: int = number(4, 0, 1000)  # English sentences of the translations, in multiples of `pairs`
    pool: int = number(1, 1, 1000)  # times as many are scored; those whose English has strong emotions are preferred
    # Languages that the teachers know well: a sentence gets the mean score of its English and of its translations into
    # these, so that peculiarities of English annotators are not passed on.
    voters: list[str] = field(default_factory=list)
    # Factor by which the logits that translations learn are moved away from the teachers' thresholds: a score close to
    # its threshold is cut differently in every language.
    sharpness: float = number(1.0, 1, 100)
    sources: dict[str, float] = field(default_factory=SOURCE_WEIGHTS.copy, metadata=ruled(within(0, 1000)))


@dataclass(frozen=True)
class ExtensionConfig(Checked):
    """The training of the words of a new language."""

    words: int = number(8000, 1, 1_000_000)  # at most, including letters that the encoder lacks
    epochs: int = number(8, 1, 10_000)
    batch_size: int = number(32, 1, 65536)
    learning_rate: float = number(0.01, 1e-8, 10)
    seed: int = number(0, 0, 2**31 - 1)


@dataclass(frozen=True)
class Config(Checked):
    """All settings of a training; the defaults are the authors' best settings for three languages.

    `task` is "multi-label" or "single-label"; the other fields are tables of settings. `override({"loss.gamma": 2.0})`
    returns a config with another setting, and `to_toml` lists all of them.
    """

    task: str = choice(TASKS)
    head: HeadConfig = field(default_factory=HeadConfig)
    loss: LossConfig = field(default_factory=LossConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    fine_tune: FineTuneConfig = field(default_factory=FineTuneConfig)
    wide: WideConfig = field(default_factory=WideConfig)
    teaching: TeachingConfig = field(default_factory=TeachingConfig)

    @property
    def single_label(self) -> bool:
        """Whether exactly one label of a text is true."""
        return self.task == "single-label"

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Config:
        """Return the defaults with dotted settings replaced; `fine_tune.enabled` changes the defaults."""
        is_tuned = settings.get("fine_tune.enabled") is True
        return (cls.for_fine_tuning() if is_tuned else cls()).override(settings)

    def differences(self) -> dict[str, Any]:
        """Return the dotted settings that differ from the defaults."""
        ours, usual = flat(self.to_dict()), flat(Config().to_dict())
        return {name: value for name, value in ours.items() if value != usual[name]}

    def override(self, settings: Mapping[str, Any]) -> Config:
        """Return a copy with dotted settings replaced, such as {"head.hidden": 64}."""
        config: Config = self
        for name, value in settings.items():
            config = fill(config, reduce(lambda table, key: {key: table}, reversed(name.split(".")), value))
        return config

    def for_sources(self, sources: Collection[str]) -> Config:
        """Return a copy without settings for datasets that are not among the sources of the training data."""
        choices, unused = self.training.single_choice, self.training.unused_choices(set(sources))
        kept = {name: weight for name, weight in choices.items() if name not in unused}
        return replace(self, training=replace(self.training, single_choice=kept))

    def to_dict(self) -> dict[str, Any]:
        """Return nested dictionaries, as stored in a model folder."""
        return asdict(self)

    def to_toml(self) -> str:
        """Return the TOML that `from_toml` reads."""
        tables = [(name, value) for name, value in self.to_dict().items() if isinstance(value, dict)]
        lines = [f"task = {_toml(self.task)}"]
        for name, table in tables:
            lines += ["", f"[{name}]", *(f"{key} = {_toml(value)}" for key, value in table.items())]
        return "\n".join(lines) + "\n"

    @classmethod
    def for_fine_tuning(cls) -> Config:
        """Return the defaults for fine-tuning."""
        return fill(cls(), FINE_TUNING)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Config:
        """Build a config from nested dictionaries; `fine_tune.enabled` changes the defaults of the others."""
        fine_tune = values.get("fine_tune")
        is_tuned = isinstance(fine_tune, Mapping) and fine_tune.get("enabled") is True
        return fill(cls.for_fine_tuning() if is_tuned else cls(), values)

    @classmethod
    def from_toml(cls, path: Path) -> Config:
        """Read a TOML file with the tables [head], [loss], [training], [fine_tune], [wide] and [teaching]."""
        return cls.from_dict(read_toml(path))


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file; raise UsageError if that fails."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read the config {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not TOML: {error}") from error


def _dataset_names(dataset: str) -> tuple[str, str]:
    """Return the name of a dataset with and without its language."""
    return dataset, re.sub(r"-[a-z]{2,3}(-[A-Z][A-Za-z]+)?$", "", dataset)


def flat(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tables of a config as dotted settings."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        found |= {f"{name}.{key}": entry for key, entry in value.items()} if isinstance(value, dict) else {name: value}
    return found


def _toml(value: Any) -> str:
    """Return a value as TOML, which equals JSON for all settings but tables."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(name)} = {_toml(entry)}" for name, entry in value.items()) + "}"
    return json.dumps(value, ensure_ascii=False)  # TOML has no surrogates


def parse_setting(setting: str) -> tuple[str, Any]:
    """Parse `head.hidden=64` into a name and a TOML value; a bare word is a string, and .5 a number."""
    name, separator, value = setting.partition("=")
    if not separator or not name.strip():
        raise UsageError(f"a setting must have the form name=value, such as head.hidden=64, got {setting!r}")
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
