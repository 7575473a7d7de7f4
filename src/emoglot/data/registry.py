"""The formats of data files by name, and `read`, which reads any of them as a dataset."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from emoglot.data.corpora import brighter, collection, goemotions, polarity, semeval, xed
from emoglot.data.dataset import Dataset
from emoglot.data.formats import SPREADSHEETS, WRITTEN
from emoglot.data.lines import Given
from emoglot.data.recognise import recognise_format
from emoglot.data.streams import Reading
from emoglot.data.tables import read_table
from emoglot.data.tabular import LabelledColumns, table_to_dataset
from emoglot.errors import DataError, UsageError
from emoglot.labels import check_names

# The readers of formats whose columns are fixed.
CORPORA: Mapping[str, Callable[[Path, Given], Dataset]] = {
    "semeval": semeval.read_semeval,
    "brighter": brighter.read_brighter,
    "xed": xed.read_xed,
    "goemotions": goemotions.read_goemotions,
    "goemotions-semeval": goemotions.read_mapped,
    "collection-train": partial(collection.read_collection, split="train"),
    "collection-dev": partial(collection.read_collection, split="dev"),
    "polarity": polarity.read_polarity,
}
TABLES = (*WRITTEN, *SPREADSHEETS)
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
    encoding: str | None = None,
    delimiter: str | None = None,
) -> Dataset:
    """Read a labelled data file.

    Parameters
    ----------
    path
        The file.
    format
        Its format, such as "csv" or "semeval"; by default it is recognised by content and name.
    skip_bad
        Whether to drop malformed lines and list them in `bad_lines`; by default, one raises a `DataError`.
    text_column, label_columns, labels_column, language_column
        The columns of a table; by default found by name.
    language
        The language of rows for which the file does not state one.
    known_labels
        The labels that a column of names could contain: one that does not occur is absent, not unknown.
    encoding
        The encoding, such as "cp1252"; by default it is recognised.
    delimiter
        The delimiter of CSV; by default it is recognised.
    """
    file = Path(path)
    labels = _checked_labels(label_columns)
    columns = LabelledColumns(text_column, labels, labels_column, language_column)
    has_columns = columns != LabelledColumns()
    reading = Reading(encoding=encoding, delimiter=delimiter)
    given = Given(reading, skip_bad, language)
    name = format or recognise_format(file, reading, tables_only=has_columns)
    if name is None:
        raise DataError(
            f"the format of {file} cannot be recognised by its content: use --format, one of {', '.join(FORMATS)}"
        )
    if name in TABLES:
        columns = replace(columns, known=tuple(known_labels))
        return table_to_dataset(read_table(file, replace(reading, kind=name)), columns, given)
    if name not in CORPORA:
        raise UsageError(f"format must be one of {', '.join(FORMATS)}, got {name!r}")
    if has_columns:
        raise UsageError(f"column names are for the formats {', '.join(TABLES)}, the columns of {name!r} are fixed")
    return CORPORA[name](file, given)


def _checked_labels(label_columns: Sequence[str] | None) -> tuple[str, ...] | None:
    if isinstance(label_columns, str):
        raise UsageError(f"label_columns must be a list of names, got the string {label_columns!r}")
    return None if label_columns is None else check_names(label_columns)
