"""The search space: settings and their ranges, read from a TOML file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import Trial

from emoglot.config import MEASURING, Config, read_toml
from emoglot.errors import UsageError

PAPER = Path(__file__).with_name("space.toml")

_RANGE = {"low", "high", "log", "step"}


@dataclass(frozen=True)
class Space:
    """The settings to search, with their distributions."""

    distributions: Mapping[str, BaseDistribution]
    content: Mapping[str, Any]  # of the file

    def suggest(self, trial: Trial) -> dict[str, Any]:
        """Return a value for each setting, suggested by a trial."""
        return {name: _suggest(trial, name, values) for name, values in self.distributions.items()}


def read_space(path: Path, base: Config) -> Space:
    """Read a space; raise UsageError for values that are invalid in `base`."""
    content = read_toml(path)
    if not content:
        raise UsageError(f'{path} must list settings to search, such as "head.hidden" = [64, 128], got none')
    try:
        return Space({name: _distribution(name, entry, base) for name, entry in content.items()}, content)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from error


def _suggest(trial: Trial, name: str, values: BaseDistribution) -> Any:
    if isinstance(values, CategoricalDistribution):
        return trial.suggest_categorical(name, values.choices)
    if isinstance(values, IntDistribution):
        return trial.suggest_int(name, values.low, values.high, step=values.step, log=values.log)
    assert isinstance(values, FloatDistribution)
    return trial.suggest_float(name, values.low, values.high, step=values.step, log=values.log)


def _distribution(name: str, entry: Any, base: Config) -> BaseDistribution:
    if name in MEASURING:
        raise UsageError(f"{name} cannot be searched, because all trials must be evaluated in the same way: use --set")
    if isinstance(entry, list) and entry:
        for value in entry:
            base.override({name: value})
        return CategoricalDistribution(entry)
    if not isinstance(entry, dict) or not {"low", "high"} <= set(entry) <= _RANGE:
        raise UsageError(
            f'a setting must have a list or a range, such as "{name}" = {{ low = 1, high = 2 }}, got {entry!r}'
        )
    low, high = (_value(base.override({name: entry[end]}), name) for end in ("low", "high"))
    kind = IntDistribution if isinstance(low, int) else FloatDistribution
    options = {option: entry[option] for option in ("log", "step") if option in entry}
    try:
        return kind(low, high, **options)
    except (ValueError, TypeError) as error:
        raise UsageError(f"{name}: {error}") from error


def _value(config: Config, name: str) -> Any:
    found: Any = config.to_dict()
    for part in name.split("."):
        found = found[part]
    return found
