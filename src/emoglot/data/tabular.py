"""Plain tables: which column holds the text, the labels and the language, and the dataset that follows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from emoglot.data.annotations import Annotation, BinaryColumns, NamesColumn
from emoglot.data.cells import shown, text_cell
from emoglot.data.dataset import NO_LANGUAGE, Dataset
from emoglot.data.lines import MalformedLineError, check_text, keep_good
from emoglot.data.tables import Record, Table
from emoglot.errors import DataError

TEXT_COLUMNS = ("text", "tweet", "sentence", "content", "comment")
LABELS_COLUMN = "labels"
LANGUAGE_COLUMNS = ("language", "lang")
# Never labels; the nameless column is the index that pandas writes.
OTHER_COLUMNS = ("", "text", "id", "language", "lang", "source", "split")


@dataclass(frozen=True)
class Columns:
    """What the caller says about the columns of a table; None leaves the choice to the header."""

    text: str | None = None
    labels: tuple[str, ...] | None = None  # columns of 0 and 1, or the names that the names column may hold
    names: str | None = None
    language: str | None = None
    known: tuple[str, ...] = ()  # labels that a column of names could hold, whether or not it does


def to_dataset(table: Table, columns: Columns, *, skip_bad: bool = False, language: str | None = None) -> Dataset:
    """Take texts, labels and languages from a table; `language` is for rows without a language cell."""
    text_column = _text_column(table, columns.text)
    language_column = _language_column(table, columns.language)
    annotation = _annotation(table, columns, {text_column, language_column})

    def parse(record: Record) -> tuple[str, Any, str]:
        text = text_cell(record.get(text_column), text_column)
        check_text(text)
        code = _language_cell(record.get(language_column), language_column) if language_column else ""
        return text, annotation.cell(record), code or language or NO_LANGUAGE

    rows, bad_lines = keep_good(table.path, table.records, parse, skip_bad=skip_bad)
    texts, cells, codes = zip(*rows, strict=True)
    labels, targets = annotation.targets(cells)
    return Dataset(texts, targets, labels, codes, (table.path.stem,) * len(texts), bad_lines)


def _text_column(table: Table, given: str | None) -> str:
    if given is not None:
        return _existing(table, given, "text column")
    found = _first_of(table, TEXT_COLUMNS)
    if found is None:
        raise DataError(
            f"a table needs a column of texts named {', '.join(TEXT_COLUMNS)} or given as the text column, "
            f"{table.path} has {_listed(table.columns)}"
        )
    return found


def _language_column(table: Table, given: str | None) -> str | None:
    return _first_of(table, LANGUAGE_COLUMNS) if given is None else _existing(table, given, "language column")


def _annotation(table: Table, columns: Columns, taken: set[str | None]) -> Annotation:
    if columns.names is not None:
        return NamesColumn(_existing(table, columns.names, "labels column"), columns.labels, columns.known)
    names_column = _first_of(table, (LABELS_COLUMN,))
    if columns.labels is not None:
        missing = [name for name in columns.labels if name not in table.columns]
        if missing and names_column is not None:
            return NamesColumn(names_column, columns.labels)
        return BinaryColumns(tuple(_existing(table, name, "label column") for name in columns.labels))
    if names_column is not None:
        return NamesColumn(names_column, known=columns.known, is_guess=True)
    labels = tuple(name for name in table.columns if name not in taken and name.lower() not in OTHER_COLUMNS)
    if not labels:
        raise DataError(f"a table needs at least one label column, {table.path} has only {_listed(table.columns)}")
    return BinaryColumns(labels)


def _language_cell(value: object, column: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise MalformedLineError(f"column {column!r} must hold language codes such as 'en', got {shown(value)}")
    return value.strip()


def _first_of(table: Table, wanted: Sequence[str]) -> str | None:
    """Find the first wanted column, spelt exactly so or else in other cases."""
    for name in wanted:
        if name in table.columns:
            return name
        for column in table.columns:
            if column.lower() == name:
                return column
    return None


def _existing(table: Table, name: str, role: str) -> str:
    if name not in table.columns:
        raise DataError(f"the {role} must be in the header, {name!r} is not: {table.path} has {_listed(table.columns)}")
    return name


def _listed(columns: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in columns) or "no columns"
