"""Labelled data: the dataset, its split, and `read`, which takes every format to it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Protocol, TypeAlias

from emoglot.data import brighter, collection, goemotions, polarity, semeval, tables, xed
from emoglot.data.dataset import Dataset, concatenate, map_labels
from emoglot.data.goemotions import GOEMOTIONS_LABELS, GOEMOTIONS_TO_SEMEVAL
from emoglot.data.lines import BadLine
from emoglot.data.recognise import recognise
from emoglot.data.split import stratified_split
from emoglot.data.tables import Table
from emoglot.data.tabular import Columns, to_dataset
from emoglot.errors import DataError, UsageError
from emoglot.labels import check_names

__all__ = [
    "FORMATS",
    "GOEMOTIONS_LABELS",
    "GOEMOTIONS_TO_SEMEVAL",
    "BadLine",
    "Dataset",
    "concatenate",
    "map_labels",
    "read",
    "stratified_split",
]


class CorpusReader(Protocol):
    """A reader of a format whose columns are fixed."""

    def __call__(self, path: Path, *, skip_bad: bool = False, language: str | None = None) -> Dataset:
        """Read the file."""


TableReader: TypeAlias = Callable[[Path], Table]

CORPORA: Mapping[str, CorpusReader] = {
    "semeval": semeval.read,
    "brighter": brighter.read,
    "xed": xed.read,
    "goemotions": goemotions.read,
    "goemotions-semeval": goemotions.read_mapped,
    "collection-train": partial(collection.read, split="train"),
    "collection-dev": partial(collection.read, split="dev"),
    "polarity": polarity.read,
}
TABLES: Mapping[str, TableReader] = {
    "csv": tables.read_csv,
    "tsv": tables.read_tsv,
    "jsonl": tables.read_jsonl,
    "parquet": tables.read_parquet,
}
FORMATS = (*CORPORA, *TABLES)


def read(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    skip_bad: bool = False,
    text_column: str | None = None,
    label_columns: Sequence[str] | None = None,
    labels_column: str | None = None,
    language_column: str | None = None,
    language: str | None = None,
    known_labels: Sequence[str] = (),
) -> Dataset:
    """Read a data file; its format, one of `FORMATS`, is told from its content and extension if it is not given.

    The four column names are for tables only. `language` is for rows of which the file does not tell the language.
    `known_labels` are those that a column of names could hold: one that it never uses is then absent, not unknown.
    A malformed line is a `DataError`, or with `skip_bad` dropped and listed in the dataset's `bad_lines`.
    """
    file = Path(path)
    labels = _checked_labels(label_columns)
    columns = Columns(text_column, labels, labels_column, language_column)
    has_columns = columns != Columns()
    name = format or recognise(file, tables_only=has_columns)
    if name is None:
        raise DataError(
            f"the format of {file} can't be told from its content: name it with --format, one of {', '.join(FORMATS)}"
        )
    if name in TABLES:
        columns = replace(columns, known=tuple(known_labels))
        return to_dataset(TABLES[name](file), columns, skip_bad=skip_bad, language=language)
    if name not in CORPORA:
        raise UsageError(f"format must be one of {', '.join(FORMATS)}, got {name!r}")
    if has_columns:
        raise UsageError(f"column names are for the formats {', '.join(TABLES)}, the columns of {name!r} are fixed")
    return CORPORA[name](file, skip_bad=skip_bad, language=language)


def _checked_labels(label_columns: Sequence[str] | None) -> tuple[str, ...] | None:
    if isinstance(label_columns, str):
        raise UsageError(f"label_columns must be a list of names, got the string {label_columns!r}")
    return None if label_columns is None else check_names(label_columns)
