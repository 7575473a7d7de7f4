"""Validation of the arguments of a prediction: texts and languages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from emoglot.errors import DataError, shown
from emoglot.text.language_names import ANY, NO_LANGUAGE, resolve_language

Languages = str | Sequence[str | None] | None  # one for all texts, or one for each; None to recognise it


def check_texts(texts: Iterable[str]) -> Sequence[str]:
    """Return the texts as a sequence; raise DataError if they are not strings."""
    if isinstance(texts, str):
        raise DataError("texts must be a list of strings, got str: put it in a list")
    if isinstance(texts, bytes):
        raise DataError("texts must be a list of strings, got bytes: decode them first, for example as UTF-8")
    if not isinstance(texts, Iterable):
        raise DataError(f"texts must be a string or a list of strings, got {shown(texts)}: {_way_out(texts)}")
    if isinstance(texts, Mapping) or hasattr(texts, "columns"):  # iterating over them yields names
        raise DataError(f"texts must be a list of strings, got {type(texts).__name__}: pass its column of texts")
    texts = texts if isinstance(texts, (list, tuple)) else list(texts)
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise DataError(f"a text must be a string, got {text!r} ({type(text).__name__}) at index {index}")
    return texts


def _way_out(value: object) -> str:
    return "use '' for a missing text" if is_missing(value) else "convert it with str() if it is a text"


def check_languages(language: Languages, count: int) -> str | list[str | None] | None:
    """Return one language code for all texts, or one for each; None where it is missing."""
    if language is None or isinstance(language, str):
        return _code(language)
    if not isinstance(language, Iterable) or isinstance(language, (set, frozenset, Mapping)):
        raise DataError(f"language must be a code or name, or a list with one for each text, got {language!r}")
    codes = [None if is_missing(code) else code for code in language]
    if len(codes) != count:
        raise DataError(f"language must be one code, or one for each text, got {len(codes)} for {count} texts")
    if strange := [code for code in codes if not isinstance(code, str | None)]:
        raise DataError(f"a language must be a code such as 'en', got {strange[0]!r}")
    return [_code(code) for code in codes]


def _code(language: str | None) -> str | None:
    if language is None or language == ANY:
        return language
    code = resolve_language(language)
    return None if code == NO_LANGUAGE else code


def is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN or the NA of a data frame library."""
    return value is None or (isinstance(value, float) and np.isnan(value)) or type(value).__name__ == "NAType"
