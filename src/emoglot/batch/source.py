"""The source of a job: a file or standard input, cut into windows of rows that are scored and written together."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import IO, Any, Protocol

import pyarrow as pa
from pyarrow import parquet

from emoglot.batch.formats import JSONL, PARQUET, STANDARD, TEXT, Format, check_readable, delimiter_of
from emoglot.batch.records import Numbered, Record, csv_records, json_records, text_records
from emoglot.batch.watch import Watch, new_hash
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


@dataclass(frozen=True)
class Position:
    """Where a job goes on: after so many windows and rows, and the hash of what was read for them."""

    windows: int = 0
    rows: int = 0
    digest: str = ""


_START = Position()


@dataclass
class Window:
    """Rows in their order: the good ones with their texts, the bad ones with the reason."""

    number: int
    records: list[Record] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    rejects: list[Reject] = field(default_factory=list)
    table: pa.Table | None = None  # the good rows as they were, where they come from Parquet
    read: int = 0  # rows of the file up to the end of this window
    digest: str = ""  # the hash of the file up to there

    @property
    def end(self) -> Position:
        """The position after this window."""
        return Position(self.number + 1, self.read, self.digest)

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

    @property
    def watch(self) -> Watch | None:
        """The file itself; None for a pipe."""

    def windows(self, begin: Position = _START) -> Iterator[Window]:
        """Yield the windows after a position; raise DataError if what lies before it has changed."""

    def progress(self) -> tuple[int, int]:
        """Say how much was read, and how much there is; 0 where nobody knows."""


@contextmanager
def open_source(name: str, format: Format, columns: Columns) -> Iterator[Source]:
    """Open a file by its format, or standard input."""
    if name == STANDARD:
        yield StreamSource(sys.stdin.buffer, format, columns)
        return
    check_readable(Path(name))
    # Opened twice: to be read, and to be looked at meanwhile and afterwards, even if its name is another's by then.
    with Path(name).open("rb") as file, Path(name).open("rb") as again:
        yield _source_of(file, format, columns, Watch(name, again))


def check_unchanged(source: Source, format: Format, columns: Columns, end: Position) -> None:
    """Raise DataError if the file is not what was read of it up to its end."""
    watch = source.watch
    if watch is None or watch.is_untouched():
        return
    # It was linked, moved or given other rights, or it was changed and its time set back: what it holds decides.
    reread = _source_of(watch.rewound(), format, columns, watch)
    if next(reread.windows(end), None) is not None:
        raise watch.changed()


def _source_of(file: IO[bytes], format: Format, columns: Columns, watch: Watch) -> Source:
    if format.kind == PARQUET:
        return ParquetSource(file, columns, watch)
    return StreamSource(file, format, columns, watch)


class StreamSource:
    """CSV, TSV, JSONL or plain lines."""

    def __init__(self, file: IO[bytes], format: Format, columns: Columns, watch: Watch | None = None) -> None:
        self._file = file
        self._columns = columns
        self._hash = new_hash()
        self.watch = watch
        self.schema: pa.Schema | None = None
        try:
            self._records = self._open(self._lines(format.unpacked(file)), format)
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
        size = self.watch.size if self.watch else 0
        return (size if self._file.closed else self._file.tell(), size) if size else (0, 0)

    def windows(self, begin: Position = _START) -> Iterator[Window]:
        """Cut the records into windows."""
        self._skip(begin)
        window = Window(begin.windows, read=begin.rows)
        first, characters = begin.rows, 0
        for line, record in self._records:
            window.read += 1
            characters += self._add(window, line, record)
            if window.read - first >= WINDOW_ROWS or characters >= WINDOW_CHARACTERS:
                yield self._hashed(window)
                first, characters = window.read, 0
                window = Window(window.number + 1, read=first)
        if window.read > first:
            yield self._hashed(window)

    def _hashed(self, window: Window) -> Window:
        window.digest = self._hash.hexdigest()
        return window

    def _skip(self, begin: Position) -> None:
        skipped = sum(1 for _ in islice(self._records, begin.rows))
        # Blank lines after the last record belong to its window, and are read when another record is asked for.
        is_same = skipped == begin.rows and (
            not skipped
            or self._hash.hexdigest() == begin.digest
            or (next(self._records, None) is None and self._hash.hexdigest() == begin.digest)
        )
        if not is_same and self.watch:
            raise self.watch.changed()

    def _lines(self, stream: IO[bytes]) -> Iterator[bytes]:
        """Yield the lines of a stream, and hash them; what is not packed as its name says is told with that name."""
        try:
            for line in stream:
                self._hash.update(line)
                yield line
        except (OSError, pa.ArrowException) as error:
            name = self.watch.name if self.watch else "standard input"
            raise DataError(f"{name} can't be read: {error}") from error

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

    def __init__(self, file: IO[bytes], columns: Columns, watch: Watch) -> None:
        self._columns = columns
        self._hash = new_hash()
        self.watch = watch
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

    def windows(self, begin: Position = _START) -> Iterator[Window]:
        """Cut the rows into windows; of row groups that lie before them, only the bytes are read."""
        try:
            for number, batch in enumerate(self._batches(begin), start=begin.windows):
                first = self._rows
                self._rows += batch.num_rows
                yield self._window(pa.Table.from_batches([batch]), first, number)
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"{self.watch.name} can't be read: {error}") from error

    def _batches(self, begin: Position) -> Iterator[pa.RecordBatch]:
        group, inside = self._skip(begin)
        for index in range(group, self._file.metadata.num_row_groups):
            if not inside:
                self._hash_group(index)
            # Group by group, so that a window never depends on where reading began.
            for batch in self._file.iter_batches(WINDOW_ROWS, row_groups=[index]):
                if inside >= batch.num_rows:
                    inside -= batch.num_rows
                    self._rows += batch.num_rows
                else:
                    assert not inside, "a job goes on where a window began"
                    yield batch

    def _skip(self, begin: Position) -> tuple[int, int]:
        """Pass whole row groups; return the one where reading begins, and the rows of it that lie before."""
        metadata = self._file.metadata
        footer = metadata.serialized_size + 8  # its length and a mark
        self.watch.hash_range(self._hash, self.watch.size - footer, footer)
        group = 0
        while group < metadata.num_row_groups and self._rows + metadata.row_group(group).num_rows <= begin.rows:
            self._rows += metadata.row_group(group).num_rows
            self._hash_group(group)
            group += 1
        inside = begin.rows - self._rows
        if inside and group < metadata.num_row_groups:
            self._hash_group(group)
        if begin.rows and self._hash.hexdigest() != begin.digest:
            raise self.watch.changed()
        return group, inside

    def _hash_group(self, index: int) -> None:
        group = self._file.metadata.row_group(index)
        if not group.num_rows:  # which belongs to no window
            return
        for chunk in map(group.column, range(group.num_columns)):
            first = min(chunk.dictionary_page_offset or chunk.data_page_offset, chunk.data_page_offset)
            self.watch.hash_range(self._hash, first, chunk.total_compressed_size)

    def _window(self, table: pa.Table, first: int, number: int) -> Window:
        window = Window(number, read=self._rows, digest=self._hash.hexdigest())
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


def _strings(names: Sequence[str]) -> pa.Schema:
    return pa.schema([(name, pa.string()) for name in names])


def _not_a_text(column: str, value: object) -> str:
    return f"the text must be a string, column {column!r} holds {shown(value)}"
