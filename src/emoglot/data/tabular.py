"""Plain tables: which columns contain the text, the labels and the language, and the dataset made of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from emoglot.data.annotations import Annotation, BinaryColumns, NamesColumn
from emoglot.data.cells import text_cell
from emoglot.data.columns import LANGUAGE_COLUMNS, existing, find_text_column, first_of, name_columns
from emoglot.data.dataset import Dataset
from emoglot.data.lines import Given, MalformedLineError, check_text, keep_good
from emoglot.data.records import UNNAMED, Record
from emoglot.data.tables import Table
from emoglot.errors import DataError, shown
from emoglot.text.language_names import NO_LANGUAGE

# The usual names of a column with the names of labels, casefolded.
NAMES_COLUMNS = ("labels", "label", "emotions", "emotion")
# Never labels; the column without a name is an index of pandas.
OTHER_COLUMNS = ("", "text", "id", "language", "lang", "source", "split")


@dataclass(frozen=True)
class LabelledColumns:
    """The columns of a table; None is found by the header."""

    text: str | None = None
    labels: tuple[str, ...] | None = None  # columns of 0 and 1, or the names that the names column may contain
    names: str | None = None
    language: str | None = None
    known: tuple[str, ...] = ()  # labels that a column of names could contain


def table_to_dataset(table: Table, columns: LabelledColumns, given: Given) -> Dataset:
    """Return the texts, labels and languages of a table."""
    text_column = find_text_column(table.columns, columns.text, str(table.path))
    language_column = first_of(table.columns, LANGUAGE_COLUMNS)
    if columns.language is not None:
        language_column = _existing(table, columns.language, "language column")
    annotation = _annotation(table, columns, {text_column, language_column})

    def parse(record: Record) -> tuple[str, Any, str]:
        text = text_cell(record.get(text_column), text_column)
        check_text(text)
        code = _language_cell(record.get(language_column), language_column) if language_column else ""
        return text, annotation.cell(record), code or given.language or NO_LANGUAGE

    rows, bad_lines = keep_good(table.path, table.records, parse, skip_bad=given.skip_bad)
    texts, cells, codes = zip(*rows, strict=True)
    labels, targets = annotation.targets(cells)
    return Dataset(texts, targets, labels, codes, (table.path.stem,) * len(texts), bad_lines)


def _annotation(table: Table, columns: LabelledColumns, taken: set[str | None]) -> Annotation:
    if columns.names is not None:
        return NamesColumn(_existing(table, columns.names, "labels column"), columns.labels, columns.known)
    if columns.labels is not None and set(columns.labels) <= set(table.columns):
        return BinaryColumns(columns.labels)
    names_column = _names_column(table, taken)
    if columns.labels is not None:
        if names_column is not None:
            return NamesColumn(names_column, columns.labels)
        return BinaryColumns(tuple(_existing(table, name, "label column") for name in columns.labels))
    if names_column is not None:
        return NamesColumn(names_column, known=columns.known, is_guess=True)
    labels = tuple(name for name in table.columns if name not in taken and not _is_other(name))
    if not labels:
        raise DataError(f"a table needs at least one label column, {table.path} has only {name_columns(table.columns)}")
    return BinaryColumns(labels)


def _names_column(table: Table, taken: set[str | None]) -> str | None:
    """Return the column with a usual name for names of labels, or None; raise DataError if there are several."""
    found = [column for column in table.columns if column.casefold() in NAMES_COLUMNS and column not in taken]
    if len(found) > 1:
        raise DataError(
            f"only one column can have the names of the labels, {table.path} has {name_columns(found)}: "
            "choose one with --labels-column, or list columns of 0 and 1 with --label-columns"
        )
    return found[0] if found else None


def _is_other(column: str) -> bool:
    return column.lower() in OTHER_COLUMNS or column.startswith(UNNAMED)


def _language_cell(value: object, column: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise MalformedLineError(f"column {column!r} must contain language codes such as 'en', got {shown(value)}")
    return value.strip()


def _existing(table: Table, name: str, role: str) -> str:
    return existing(table.columns, name, role, str(table.path))
