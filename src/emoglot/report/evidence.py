"""What is known of the model: its name, the labels it gives and how well it reads each language."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from emoglot.encoders import EMBEDDED_MODEL
from emoglot.errors import ModelError
from emoglot.languages import Language, list_languages
from emoglot.persist import read_thresholds

GOOD, FAIR = 0.6, 0.45  # macro-F1 from which we call a language good or fair


@dataclass(frozen=True)
class Evidence:
    """A model as far as a report needs it; `languages` is empty where nobody has measured them."""

    name: str
    labels: tuple[str, ...]
    never_given: tuple[str, ...]  # while the language of a text is not named
    languages: tuple[Language, ...]


def read_evidence(model: Path | None) -> Evidence:
    """Read what is known of a model; by default, the one in the package."""
    folder = model or EMBEDDED_MODEL
    thresholds = read_thresholds(folder)
    try:
        languages = tuple(list_languages(folder))
    except ModelError:
        if model is None:
            raise
        languages = ()
    never = tuple(label for label, threshold in thresholds if threshold is None)
    return Evidence(
        "the model in the package" if model is None else folder.name,
        tuple(label for label, _ in thresholds),
        never,
        languages,
    )


def find_language(code: str, languages: Sequence[Language]) -> Language | None:
    """Return what was measured of a language, or of the one that it is a variety of: pt for pt-BR."""
    by_code = {language.code.lower(): language for language in languages}
    wanted = code.lower().replace("_", "-")
    return by_code.get(wanted) or by_code.get(wanted.partition("-")[0])


def verdict(language: Language | None) -> str:
    """Say in plain words how far labels in a language can be trusted."""
    if language is None:
        return "not measured: do not rely on it"
    if language.weak:
        return "weak: expect many wrong labels"
    if language.macro_f1 is None:
        return "compared with translations only, never with people"
    if language.macro_f1 >= GOOD:
        return "good: most labels are those that people give"
    if language.macro_f1 >= FAIR:
        return "fair: shares and comparisons are informative, single labels are often wrong"
    return "poor: only large differences mean something"
