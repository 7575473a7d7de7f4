"""The languages a model reads, each with the evidence for it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from emoglot.encoders import EMBEDDED_MODEL
from emoglot.errors import ModelError
from emoglot.model import EmotionClassifier
from emoglot.parallel import Parallel
from emoglot.persist import LANGUAGES_FILE


@dataclass(frozen=True)
class Language:
    """What was measured of a language.

    `macro_f1` on labelled texts where there are any; `agreement` between the labels of translations and those of their
    English beyond chance (κ), where there are any. `weak` languages have little of either to show.
    """

    code: str
    name: str
    weak: bool
    macro_f1: float | None
    labelled_rows: int
    agreement: float | None
    translated_rows: int


def list_languages(model_folder: Path = EMBEDDED_MODEL) -> list[Language]:
    """Read what was measured of a model; by default the one in the package."""
    path = model_folder / LANGUAGES_FILE
    try:
        return [Language(**entry) for entry in json.loads(path.read_text(encoding="utf-8"))]
    except FileNotFoundError:
        raise ModelError(f"{model_folder} has no {LANGUAGES_FILE}: nobody has measured its languages") from None
    except (OSError, ValueError, TypeError) as error:
        raise ModelError(f"{path} is damaged: {error}") from error


def write_languages(languages: Sequence[Language], model_folder: Path) -> None:
    """Record what was measured beside the model."""
    entries = [language.__dict__ for language in languages]
    text = json.dumps(entries, indent=1, ensure_ascii=False)
    (model_folder / LANGUAGES_FILE).write_text(text + "\n", encoding="utf-8")


def agreement(model: EmotionClassifier, parallel: Parallel) -> dict[str, tuple[float, int]]:
    """Give for every language how far its labels agree with those of the English, and the number of pairs.

    It is Cohen's κ: the share of decisions that are the same, beyond what chance would give, so that a model that says
    little or much gains nothing by it. 1 is full agreement, 0 is chance.
    """
    english = model.decide(model.predict_proba(parallel.english))[parallel.english_of]
    translated = model.decide(model.predict_proba(parallel.texts))
    result = {}
    languages = np.array(parallel.languages)
    for language in np.unique(languages).tolist():
        own = languages == language
        same = (english[own] == translated[own]).mean(axis=0)
        shares = english[own].mean(axis=0), translated[own].mean(axis=0)
        by_chance = shares[0] * shares[1] + (1 - shares[0]) * (1 - shares[1])
        possible = (1 - by_chance).sum()
        result[language] = (float((same - by_chance).sum() / possible) if possible else 0.0, int(own.sum()))
    return result
