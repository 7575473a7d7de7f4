"""The source of a job: a file or standard input, cut into windows of rows that are scored and written together."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Protocol

import pyarrow as pa
from pyarrow import parquet

from emoglot.batch.formats import JSONL, PARQUET, STANDARD, TEXT, Format, check_readable, delimiter_of
from emoglot.batch.records import Numbered, Record, csv_records, json_records, text_records
from emoglot.data.cells import shown
from emoglot.data.lines import MalformedLineError
from emoglot.errors import DataError

# So many rows are sorted by length, and searched for repeats, together; or fewer, once they have so many characters.
WINDOW_ROWS = 8192
WINDOW_CHARACTERS = 2**22


@dataclass(frozen=True)
class Reject:
    """A row that could not be scored."""

    line: int
    reason: str
    id: Any = None


@dataclass
class Window:
    """Rows in their order: the good ones with their texts, the bad ones with the reason."""

    number: int
    records: list[Record] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    rejects: list[Reject] = field(default_factory=list)
    table: pa.Table | None = None  # the good rows as they were, where they come from Parquet
    read: int = 0  # rows of the file up to the end of this window

    def rows(self) -> list[Record]:
        """Give the good rows as Python has them."""
        return self.records if self.table is None else _to_python(self.table)

    def column(self, name: str) -> list[Any]:
        """Give one column of the good rows."""
        if self.table is None:
            return [record.get(name) for record in self.records]
        return _to_python(self.table.column(name))


@dataclass(frozen=True)
class Columns:
    """Which columns of the input have a meaning."""

    text: str
    id: str | None = None
    language: str | None = None

    def check(self, existing: Sequence[str]) -> None:
        """Refuse a file without them."""
        missing = [name for name in (self.text, self.id, self.language) if name and name not in existing]
        if missing:
            raise DataError(f"the input has no column {missing[0]!r}; it has {', '.join(map(repr, existing))}")


class Source(Protocol):
    """Rows of a file."""

    @property
    def schema(self) -> pa.Schema | None:
        """All columns with their types, where the file says so before its rows."""

    def windows(self, skip: int = 0, number: int = 0) -> Iterator[Window]:
        """Give the windows after the first `skip` rows, counted from `number`."""

    def progress(self) -> tuple[int, int]:
        """Say how much was read, and how much there is; 0 where nobody knows."""


@contextmanager
def open_source(name: str, format: Format, columns: Columns) -> Iterator[Source]:
    """Open a file by its format, or standard input."""
    if name == STANDARD:
        yield StreamSource(sys.stdin.buffer, 0, format, columns)
        return
    check_readable(Path(name))
    with Path(name).open("rb") as file:
        if format.kind == PARQUET:
            yield ParquetSource(file, columns)
        else:
            yield StreamSource(file, os.path.getsize(name), format, columns, name)


class StreamSource:
    """CSV, TSV, JSONL or plain lines."""

    def __init__(
        self, file: IO[bytes], size: int, format: Format, columns: Columns, name: str = "standard input"
    ) -> None:
        self._file = file
        self._size = size
        self._columns = columns
        self.schema: pa.Schema | None = None
        try:
            self._records = self._open(_lines(format.unpacked(file), name), format)
        except MalformedLineError as error:
            raise DataError(f"the header is malformed: {error}") from error
        if self.schema is not None:
            columns.check(self.schema.names)

    def _open(self, lines: Iterator[bytes], format: Format) -> Iterator[Numbered]:
        if format.kind == TEXT:
            self.schema = _strings([self._columns.text])
            return text_records(lines, self._columns.text)
        if format.kind == JSONL:
            return json_records(lines)
        names, records = csv_records(lines, delimiter_of(format.kind))
        repeated = {name for name in names if names.count(name) > 1}
        if repeated:
            raise MalformedLineError(f"columns must differ from one another, {sorted(repeated)[0]!r} is there twice")
        self.schema = _strings(names)
        return records

    def progress(self) -> tuple[int, int]:
        """Say how many bytes of the file were read; one that was packed is closed at its end."""
        if not self._size:
            return 0, 0
        return self._size if self._file.closed else self._file.tell(), self._size

    def windows(self, skip: int = 0, number: int = 0) -> Iterator[Window]:
        """Cut the records into windows."""
        for _ in range(skip):
            next(self._records)
        window = Window(number, read=skip)
        characters = 0
        for line, record in self._records:
            window.read += 1
            characters += self._add(window, line, record)
            if window.read - skip >= WINDOW_ROWS or characters >= WINDOW_CHARACTERS:
                yield window
                skip, characters = window.read, 0
                window = Window(window.number + 1, read=skip)
        if window.read > skip:
            yield window

    def _add(self, window: Window, line: int, record: Record | MalformedLineError) -> int:
        if isinstance(record, MalformedLineError):
            window.rejects.append(Reject(line, str(record), self._id(record.cells)))
            return 0
        text = record.get(self._columns.text)
        if not isinstance(text, str):
            window.rejects.append(Reject(line, _not_a_text(self._columns.text, text), self._id(record)))
            return 0
        window.records.append(record)
        window.texts.append(text)
        return len(text)

    def _id(self, record: Mapping[str, Any]) -> Any:
        own = record.get(self._columns.id) if self._columns.id else None
        return own.encode("utf-8", "replace").decode("utf-8") if isinstance(own, str) else own


class ParquetSource:
    """A Parquet file, whose other columns are passed on as they are."""

    def __init__(self, file: IO[bytes], columns: Columns) -> None:
        self._columns = columns
        try:
            self._file = parquet.ParquetFile(file)
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"the input is not a readable Parquet file: {error}") from error
        self.schema = self._file.schema_arrow
        columns.check(self.schema.names)
        kind = self.schema.field(columns.text).type
        if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind)):
            raise DataError(f"the column {columns.text!r} must hold strings, it holds {kind}")
        self._rows = 0

    def progress(self) -> tuple[int, int]:
        """Say how many rows were read."""
        return self._rows, self._file.metadata.num_rows

    def windows(self, skip: int = 0, number: int = 0) -> Iterator[Window]:
        """Cut the rows into windows; row groups that lie before them are not read."""
        for batch in self._batches(skip):
            first = self._rows
            self._rows += batch.num_rows
            yield self._window(pa.Table.from_batches([batch]), first, number)
            number += 1

    def _batches(self, skip: int) -> Iterator[pa.RecordBatch]:
        metadata = self._file.metadata
        group = 0
        while group < metadata.num_row_groups and self._rows + metadata.row_group(group).num_rows <= skip:
            self._rows += metadata.row_group(group).num_rows
            group += 1
        inside = skip - self._rows
        for index in range(group, metadata.num_row_groups):  # so that a window never depends on where reading began
            for batch in self._file.iter_batches(WINDOW_ROWS, row_groups=[index]):
                if inside >= batch.num_rows:
                    inside -= batch.num_rows
                    self._rows += batch.num_rows
                else:
                    assert not inside, "a job goes on where a window began"
                    yield batch

    def _window(self, table: pa.Table, first: int, number: int) -> Window:
        window = Window(number, read=self._rows)
        kept = []
        own_ids = _to_python(table.column(self._columns.id)) if self._columns.id else [None] * table.num_rows
        for row, value in enumerate(_to_python(table.column(self._columns.text))):
            try:
                text = value.decode("utf-8") if isinstance(value, bytes) else value
            except UnicodeDecodeError as error:
                window.rejects.append(Reject(first + row + 1, f"the text must be UTF-8: {error.reason}", own_ids[row]))
                continue
            if not isinstance(text, str):
                reason = _not_a_text(self._columns.text, text)
                window.rejects.append(Reject(first + row + 1, reason, own_ids[row]))
                continue
            kept.append(row)
            window.texts.append(text)
        window.table = table if len(kept) == table.num_rows else table.take(kept)
        return window


def _to_python(values: pa.Table | pa.ChunkedArray) -> list[Any]:
    """Give what Arrow holds; it may hold dates and bytes that Python can't."""
    try:
        return list(values.to_pylist())
    except (pa.ArrowException, ValueError, OverflowError) as error:
        raise DataError(f"the input has a value that can't be read: {error}") from error


def _lines(stream: IO[bytes], name: str) -> Iterator[bytes]:
    """Give the lines of a stream; what is not packed as its name says is told with that name."""
    try:
        yield from stream
    except (OSError, pa.ArrowException) as error:
        raise DataError(f"{name} can't be read: {error}") from error


def _strings(names: Sequence[str]) -> pa.Schema:
    return pa.schema([(name, pa.string()) for name in names])


def _not_a_text(column: str, value: object) -> str:
    return f"the text must be a string, column {column!r} holds {shown(value)}"
