"""The languages of a model, with the measured quality of each."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from emoglot.data.parallel import Parallel
from emoglot.encoders.registry import BUNDLED_MODEL
from emoglot.errors import ModelError, UsageError
from emoglot.evaluation.metrics import cohen_kappa
from emoglot.inference.checks import read_entries
from emoglot.inference.description import LANGUAGES_FILE
from emoglot.inference.folder import write_page
from emoglot.model import Model
from emoglot.schema import build


@dataclass(frozen=True)
class Language:
    """The measured quality of a language.

    `macro_f1` is measured on labelled texts, `agreement` (Cohen's κ) between the labels of translations and those of
    their English; each is None without such texts. Both are low or missing for a `weak` language.
    """

    code: str
    name: str
    weak: bool
    macro_f1: float | None
    labelled_rows: int
    agreement: float | None
    translated_rows: int


def list_languages(model_folder: Path = BUNDLED_MODEL) -> list[Language]:
    """Read the measured languages of a model, by default of the one in the package."""
    entries = read_entries(model_folder)
    if entries is None:
        raise ModelError(f"{model_folder} has no {LANGUAGES_FILE}: its languages were not measured")
    try:
        return [build(Language, entry) for entry in entries]
    except (TypeError, UsageError) as error:
        raise ModelError(f"{model_folder / LANGUAGES_FILE} is damaged: {error}") from error


def write_languages(languages: Sequence[Language], model_folder: Path) -> None:
    """Write the measured languages to a model folder."""
    entries = [language.__dict__ for language in languages]
    write_page(model_folder, LANGUAGES_FILE, json.dumps(entries, indent=1, ensure_ascii=False) + "\n")


def agreement(model: Model, parallel: Parallel) -> dict[str, tuple[float, int]]:
    """Return for every language the agreement of its labels with those of the English, and the number of pairs.

    It is Cohen's κ: 1 is full agreement, 0 is chance. The labels are those that `predict` gives by default.
    """
    english = model.choose(model.analyse(parallel.english))[parallel.english_of]
    translated = model.choose(model.analyse(parallel.texts))
    result = {}
    languages = np.array(parallel.languages)
    for language in np.unique(languages).tolist():
        own = languages == language
        result[language] = (cohen_kappa(english[own], translated[own]), int(own.sum()))
    return result
