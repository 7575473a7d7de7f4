"""Windows: rows of the input that are scored and written together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from emoglot.data.columns import existing, find_text_column
from emoglot.data.lines import MalformedLineError
from emoglot.data.records import Record
from emoglot.errors import shown
from emoglot.text.arguments import is_missing

# Rows per window, within which rows are sorted by length and duplicates found; fewer if they have this many characters.
WINDOW_ROWS = 8192
WINDOW_CHARACTERS = 2**22


@dataclass(frozen=True)
class Reject:
    """A row that could not be scored."""

    line: int
    reason: str
    id: Any = None
    file: str | None = None  # if there are several files

    def to_dict(self) -> dict[str, Any]:
        """Return the entry of the list of rejected rows."""
        return {name: value for name, value in asdict(self).items() if name != "file" or value is not None}


@dataclass(frozen=True)
class Position:
    """Where a job continues: the number of windows and rows before, and the hash of the input up to there."""

    windows: int = 0
    rows: int = 0
    digest: str = ""


@dataclass(frozen=True)
class InputColumns:
    """The columns of the input that are used; by default, the column of texts is found by its usual names."""

    text: str | None = None
    id: str | None = None
    language: str | None = None

    def find(self, columns: Sequence[str], name: str) -> str:
        """Return the column with the texts; raise DataError if it or another given column is missing."""
        for column, role in ((self.id, "id column"), (self.language, "language column")):
            if column is not None:
                existing(columns, column, role, name)
        return find_text_column(columns, self.text, name)


@dataclass
class Window:
    """Rows in order: valid ones with their texts, rejected ones with the reason."""

    number: int
    records: list[Record] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    rejects: list[Reject] = field(default_factory=list)
    table: Any = None  # the valid rows as a pyarrow.Table, if they come from Parquet
    read: int = 0  # rows of the input up to the end of this window
    digest: str = ""  # the hash of the input up to there
    file: str | None = None  # if there are several files

    @property
    def end(self) -> Position:
        """The position after this window."""
        return Position(self.number + 1, self.read, self.digest)

    def rows(self) -> list[Record]:
        """Return the valid rows as Python objects."""
        if self.table is None:
            return self.records
        from emoglot.batch.parquet import to_python

        return to_python(self.table)

    def column(self, name: str) -> list[Any]:
        """Return one column of the valid rows."""
        if self.table is None:
            return [record.get(name) for record in self.records]
        from emoglot.batch.parquet import to_python

        return to_python(self.table.column(name))

    def add(self, line: int, record: Record | MalformedLineError, text_column: str, columns: InputColumns) -> int:
        """Add a record, or the reason why it cannot be scored; return the number of characters of its text."""
        if isinstance(record, MalformedLineError):
            self.rejects.append(Reject(line, str(record), _own_id(record.cells, columns.id)))
            return 0
        text = text_of(record.get(text_column))
        if not isinstance(text, str):
            self.rejects.append(Reject(line, not_a_text(text_column, text), _own_id(record, columns.id)))
            return 0
        self.records.append(record)
        self.texts.append(text)
        return len(text)


def text_of(value: Any) -> Any:
    """Return a value, or an empty text for a missing one, which is not an error."""
    return "" if is_missing(value) else value


def _own_id(record: Mapping[str, Any], column: str | None) -> Any:
    own = record.get(column) if column else None
    return own.encode("utf-8", "replace").decode("utf-8") if isinstance(own, str) else own


def not_a_text(column: str, value: object) -> str:
    """Return the reason why a value is not a text."""
    return f"the text must be a string, got {shown(value)} in column {column!r}"
