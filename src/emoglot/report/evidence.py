"""The model of a report: its name, labels and measured quality per language."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from emoglot.encoders.registry import BUNDLED_MODEL
from emoglot.errors import ModelError
from emoglot.evaluation.evidence import Language, list_languages
from emoglot.inference.folder import read_thresholds
from emoglot.inference.hub import find_model, model_name

GOOD, FAIR = 0.6, 0.45  # least macro-F1 of a good or fair language


@dataclass(frozen=True)
class Evidence:
    """The facts about a model that a report needs; `languages` is empty if they were not measured."""

    name: str
    labels: tuple[str, ...]
    never_given: tuple[str, ...]  # unless the language of a text is given
    languages: tuple[Language, ...]


def read_evidence(model: Path | None) -> Evidence:
    """Read the evidence of a model, by default of the one in the package."""
    folder = BUNDLED_MODEL if model is None else find_model(model)
    thresholds = read_thresholds(folder)
    try:
        languages = tuple(list_languages(folder))
    except ModelError:
        if model is None:
            raise
        languages = ()
    never = tuple(label for label, threshold in thresholds if threshold is None)
    return Evidence(
        "the model in the package" if model is None else model_name(folder),
        tuple(label for label, _ in thresholds),
        never,
        languages,
    )


def find_language(code: str, languages: Sequence[Language]) -> Language | None:
    """Return the measurements of a language, or of the broader one: pt for pt-BR."""
    by_code = {language.code.lower(): language for language in languages}
    wanted = code.lower().replace("_", "-")
    return by_code.get(wanted) or by_code.get(wanted.partition("-")[0])


def verdict(language: Language | None) -> str:
    """Return a description of how reliable labels in a language are."""
    if language is None:
        return "not measured: do not rely on it"
    if language.weak:
        return "weak: expect many wrong labels"
    if language.macro_f1 is None:
        return "compared with translations only, never with people"
    if language.macro_f1 >= GOOD:
        return "good: most labels agree with those of people"
    if language.macro_f1 >= FAIR:
        return "fair: shares and comparisons are informative, single labels are often wrong"
    return "poor: only large differences mean something"
