"""The arguments of a model: texts, labels and languages, in whatever form Python programs have them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from emoglot.data.dataset import NO_LANGUAGE, Dataset
from emoglot.errors import DataError
from emoglot.labels import SEMEVAL_LABELS, check_names, is_array_like, label_names, to_targets
from emoglot.language.names import resolve_language

ANY = "any"  # instead of a language: the thresholds for any text


def check_texts(texts: Iterable[str]) -> Sequence[str]:
    """Refuse what is not a list of strings."""
    if isinstance(texts, (str, bytes)) or not isinstance(texts, Iterable):
        raise DataError(f"texts are a list of strings, got {type(texts).__name__}: put it in a list")
    if isinstance(texts, Mapping) or hasattr(texts, "columns"):  # which would give their names
        raise DataError(f"texts are a list of strings, got {type(texts).__name__}: take its column of texts")
    texts = texts if isinstance(texts, (list, tuple)) else list(texts)
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise DataError(f"a text is a string, got {text!r} ({type(text).__name__}) at index {index}")
    return texts


def check_languages(language: str | Sequence[str | None] | None, count: int) -> str | list[str | None] | None:
    """Return one code for all texts, or one for each; None where it is missing, in the way of any data frame."""
    if language is None or isinstance(language, str):
        return _code(language)
    if not isinstance(language, Iterable) or isinstance(language, (set, frozenset, Mapping)):
        raise DataError(f"language is a code or name, or a list with one for each text, got {language!r}")
    codes = [None if is_missing(code) else code for code in language]
    if len(codes) != count:
        raise DataError(f"language is one code, or one for each text, got {len(codes)} for {count} texts")
    if strange := [code for code in codes if not isinstance(code, str | None)]:
        raise DataError(f"a language is a code such as 'en', got {strange[0]!r}")
    return [_code(code) for code in codes]


def _code(language: str | None) -> str | None:
    if language is None or language == ANY:
        return language
    code = resolve_language(language)
    return None if code == NO_LANGUAGE else code


def is_missing(value: Any) -> bool:
    """Say whether a cell of a data frame holds nothing, in the way of any library."""
    return value is None or (isinstance(value, float) and np.isnan(value)) or type(value).__name__ == "NAType"


def given_labels(labels: Any) -> Any:
    """Take a generator or a column of a data frame for what it holds; a whole frame, which knows its names, stays."""
    if _is_frame(labels):
        return labels
    if hasattr(labels, "to_numpy"):
        labels = labels.to_numpy()
    is_column = isinstance(labels, np.ndarray) and labels.ndim == 1 and labels.dtype == object
    return list(labels) if is_column or isinstance(labels, Iterator) else labels


def names_of(labels: Any) -> tuple[str, ...]:
    """Give the label set of labels for which nobody said it."""
    if _is_frame(labels):
        return check_names(list(labels.columns))
    if not is_array_like(labels):
        return check_names(label_names(labels))
    if isinstance(labels, np.ndarray) and labels.ndim != 2:
        raise DataError(f"an array of labels has a row for each text, got the shape {labels.shape}")
    width = labels.shape[1] if isinstance(labels, np.ndarray) else len(labels[0])
    if width == len(SEMEVAL_LABELS):
        return SEMEVAL_LABELS
    raise DataError(f"an array of labels needs the names of its {width} columns: EmotionClassifier(..., labels=[...])")


def to_dataset(texts: Iterable[str], labels: Any, names: tuple[str, ...]) -> Dataset:
    """Join texts with their labels; of their languages, nothing is known."""
    texts, labels = check_texts(texts), given_labels(labels)
    targets = to_targets(_in_order(labels, names) if _is_frame(labels) else labels, names)
    if len(targets) != len(texts):
        raise DataError(f"every text needs its labels, got {len(texts)} texts and {len(targets)} rows of labels")
    unknown = (NO_LANGUAGE,) * len(texts)
    return Dataset(tuple(texts), targets, names, languages=unknown, sources=("given",) * len(texts))


def _is_frame(labels: Any) -> bool:
    return hasattr(labels, "columns") and hasattr(labels, "to_numpy")


def _in_order(frame: Any, names: tuple[str, ...]) -> Any:
    """Take the columns of a data frame by their names."""
    if set(frame.columns) != set(names):
        given = ", ".join(map(str, frame.columns))
        raise DataError(
            f"a data frame of labels has a column for each of {', '.join(names)}, and no other, got {given}"
        )
    return frame[list(names)].to_numpy()
