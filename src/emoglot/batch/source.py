"""The source of a job: files or a pipe, split into windows of rows that are scored and written together."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, Protocol

from emoglot.batch import window as limits
from emoglot.batch.watch import Watch, new_hash
from emoglot.batch.window import InputColumns, Position, Window
from emoglot.data.columns import existing, name_columns
from emoglot.data.formats import PARQUET, STANDARD, TEXT, check_readable, find_files
from emoglot.data.lines import MalformedLineError
from emoglot.data.records import Numbered, open_records
from emoglot.data.streams import Reading, Stream, open_stream
from emoglot.errors import DataError, UsageError

STANDARD_INPUT = "standard input"
_BUFFER_BYTES = 1 << 18
_LOOKED_AT = 20  # rows of JSONL to find the columns in; any of them may be malformed or lack a column


class Input(Protocol):
    """One file of a source."""

    watch: Watch | None  # None for a pipe
    columns: tuple[str, ...] | None  # None if only the rows have them
    schema: Any  # a pyarrow.Schema, or None if the columns have no types

    def skip(self, rows: int) -> int:
        """Skip at most this many rows and return how many; everything skipped is hashed."""

    def is_at_end(self) -> bool:
        """Return whether no row is left; what follows the last row is hashed."""

    def windows(self, number: int, read: int) -> Iterator[Window]:
        """Yield the remaining rows in windows, numbered from `number`, after `read` rows."""

    def progress(self) -> int:
        """Return how many bytes of the file were read."""


@dataclass(frozen=True)
class Opener:
    """Opens the files of a source."""

    reading: Reading
    columns: InputColumns

    def open(self, name: str, digest: hashlib.blake2b, stack: ExitStack, *, announce: bool = False) -> Input:
        """Open a file, a named pipe or standard input; `digest` is updated with what is read."""
        if name == STANDARD:
            return self.input_of(sys.stdin.buffer, STANDARD_INPUT, None, digest, stack, announce=announce)
        path = Path(name)
        check_readable(path)
        file = stack.enter_context(path.open("rb", buffering=_BUFFER_BYTES))
        # Opened twice: for reading, and for checks during and after that, even if another file has its name by then.
        watch = Watch(name, stack.enter_context(path.open("rb"))) if path.is_file() else None
        return self.input_of(file, name, watch, digest, stack, announce=announce)

    def input_of(
        self,
        file: IO[bytes],
        name: str,
        watch: Watch | None,
        digest: hashlib.blake2b,
        stack: ExitStack,
        *,
        announce: bool = False,
    ) -> Input:
        """Return an open file as rows."""
        stream = open_stream(file, name, self.reading, stack)
        if stream.kind == PARQUET:
            from emoglot.batch.parquet import ParquetInput

            if watch is None:
                raise DataError(f"Parquet cannot be read from a pipe, got {name}: use a file")
            one: Input = ParquetInput(stream, self.columns, watch, digest)
        else:
            one = RecordsInput(stream, file, self.reading, self.columns, watch, digest)
        if announce:
            stream.announce()
        return one


class Source:
    """The rows of files, one file after another; a window never has rows of two files."""

    def __init__(self, names: Sequence[str], opener: Opener, stack: ExitStack) -> None:
        self.files = names
        self._opener = opener
        self._hash = new_hash()
        # A pipe can be opened only once; of several files, only the current one is open.
        self._only = opener.open(names[0], self._hash, stack, announce=True) if len(names) == 1 else None
        looks = [self._look(name) for name in names] if self._only is None else [self._only]
        self.schema = _common_schema(looks, names)
        known = [one.columns for one in looks if one.columns is not None]
        self.columns = tuple(dict.fromkeys(chain(*known))) if len(known) == len(looks) else None
        self._watches = [one.watch for one in looks if one.watch is not None]
        self.is_pipe = not self._watches
        self._done = 0  # bytes of the files before the current one
        self._current: Input | None = None

    def _look(self, name: str) -> Input:
        with ExitStack() as stack:
            one = self._opener.open(name, new_hash(), stack, announce=True)
            if one.watch is None:
                raise UsageError(f"a pipe cannot be scored together with other files, got {name}: score it alone")
            return one

    def find_columns(self) -> tuple[str, ...] | None:
        """Return the columns of all files, for which JSONL is read once more; None for a pipe without a header."""
        if self.columns is None and not self.is_pipe:
            self.columns = tuple(dict.fromkeys(chain.from_iterable(map(self._columns_of, self.files))))
        return self.columns

    def _columns_of(self, name: str) -> tuple[str, ...]:
        with ExitStack() as stack:
            one = self._opener.open(name, new_hash(), stack)
            assert isinstance(one, RecordsInput)  # a Parquet file declares its columns
            return one.keys() if one.columns is None else one.columns

    @property
    def identity(self) -> list[Any]:
        """What must be the same when a job is resumed."""
        return [watch.identity for watch in self._watches]

    def progress(self) -> tuple[int, int]:
        """Return the number of bytes that were read, and of all bytes; 0 for a pipe."""
        total = sum(watch.size for watch in self._watches)
        return (self._done + (self._current.progress() if self._current else 0), total) if total else (0, 0)

    def windows(self, begin: Position) -> Iterator[Window]:
        """Yield the windows after a position; raise DataError if the input before or after it has changed."""
        number, read, left = begin.windows, 0, begin.rows
        for index, name in enumerate(self.files):
            before = new_hash() if self._only else self._hash.copy()  # of a single file, the header is already hashed
            first = read
            with self._opened(index) as one:
                passed = one.skip(left)
                read, left = read + passed, left - passed
                if passed and not left:
                    self._check_digest(one, begin.digest)
                if not left:
                    for window in one.windows(number, read):
                        number, read = window.number + 1, window.read
                        yield _with_file(window, name) if len(self.files) > 1 else window
                    self._check_unchanged(one, before, read - first)
        if left:
            raise self._watches[-1].changed()

    @contextmanager
    def _opened(self, index: int) -> Iterator[Input]:
        with ExitStack() as stack:
            one = self._only or self._opener.open(self.files[index], self._hash, stack)
            if one.watch and one.watch.identity != self._watches[index].identity:
                raise one.watch.changed()
            self._current = one
            yield one
            self._current, self._done = None, self._done + (one.watch.size if one.watch else 0)

    def _check_digest(self, one: Input, digest: str) -> None:
        """Raise DataError if the skipped input differs from what was read before."""
        if self._hash.hexdigest() == digest:
            return
        # Blank lines after the last row belong to its window, and are read when the next row is requested.
        if not (one.is_at_end() and self._hash.hexdigest() == digest):
            raise (one.watch or self._watches[0]).changed()

    def _check_unchanged(self, one: Input, before: hashlib.blake2b, rows: int) -> None:
        """Raise DataError if a file differs from what was read."""
        watch = one.watch
        if watch is None or watch.is_untouched():
            return
        # It was linked, moved, given other permissions, or changed with its time set back: compare its content.
        with ExitStack() as stack:
            again = self._opener.input_of(watch.rewound(), watch.name, watch, before, stack)
            is_same = again.skip(rows) == rows and again.is_at_end() and before.digest() == self._hash.digest()
            if not is_same:
                raise watch.changed()


def _with_file(window: Window, name: str) -> Window:
    shown = os.fsencode(name).decode("utf-8", "replace")  # a name may be invalid UTF-8
    window.file = shown
    window.rejects = [replace(reject, file=shown) for reject in window.rejects]
    return window


def _common_schema(inputs: Sequence[Input], names: Sequence[str]) -> Any:
    """Return the types of Parquet columns, which must be the same in all files."""
    first = inputs[0].schema
    for one, name in zip(inputs, names, strict=True):
        if (one.schema is None) != (first is None) or (first is not None and not one.schema.equals(first)):
            raise DataError(
                f"Parquet files that are scored together must have the same columns, {name} has "
                f"{name_columns(one.columns or ())}, unlike {names[0]}: score it alone"
            )
    return first


@contextmanager
def open_source(names: Sequence[str], reading: Reading, columns: InputColumns) -> Iterator[Source]:
    """Open files, folders of files, a named pipe or standard input."""
    with ExitStack() as stack:
        yield Source(find_files(names), Opener(reading, columns), stack)


class RecordsInput:
    """A file of records: CSV, TSV, JSONL, plain lines or a spreadsheet."""

    schema = None

    def __init__(
        self,
        stream: Stream,
        file: IO[bytes],
        reading: Reading,
        columns: InputColumns,
        watch: Watch | None,
        digest: hashlib.blake2b,
    ) -> None:
        self._file = file
        self._columns = columns
        self._hash = digest
        self.watch = watch
        opened = open_records(stream, reading, digest.update, columns.text)
        self.columns, self._records = opened.columns, opened.rows
        if opened.kind == TEXT and columns.text:
            self.columns, self._records = (columns.text,), _renamed(opened.rows, columns.text)
        self._text = self._find_text(stream)

    def _find_text(self, stream: Stream) -> str:
        """Return the column with the texts; in JSONL it is found in the first rows."""
        columns = self.columns
        if columns is None:
            first = list(islice(self._records, _LOOKED_AT))
            self._records = chain(first, self._records)
            records = [record for _, record in first if not isinstance(record, MalformedLineError)]
            columns = tuple(dict.fromkeys(chain(*records)))
            if not columns:
                return self._columns.text or "text"
            if self._columns.text is not None:
                return existing(columns, self._columns.text, "text column", stream.name)
        found = self._columns.find(columns, stream.name)
        if found != (self._columns.text or "text"):
            stream.note(f"the texts are in the column {found!r}; use --text-column if that is wrong")
        return found

    def progress(self) -> int:
        """Return how many bytes of the file were read; a compressed file is closed at its end."""
        size = self.watch.size if self.watch else 0
        return size if self._file.closed else self._file.tell() if size else 0

    def skip(self, rows: int) -> int:
        """Skip at most this many rows and return how many."""
        return sum(1 for _ in islice(self._records, rows))

    def keys(self) -> tuple[str, ...]:
        """Read all rows and return their columns, in order of appearance."""
        records = (record for _, record in self._records if not isinstance(record, MalformedLineError))
        return tuple(dict.fromkeys(chain.from_iterable(records)))

    def is_at_end(self) -> bool:
        """Return whether no row is left."""
        return next(self._records, None) is None

    def windows(self, number: int, read: int) -> Iterator[Window]:
        """Yield the remaining rows in windows."""
        window, first, characters = Window(number, read=read), read, 0
        for line, record in self._records:
            window.read += 1
            characters += window.add(line, record, self._text, self._columns)
            if window.read - first >= limits.WINDOW_ROWS or characters >= limits.WINDOW_CHARACTERS:
                window.digest = self._hash.hexdigest()
                yield window
                window, first, characters = Window(window.number + 1, read=window.read), window.read, 0
        if window.read > first:
            window.digest = self._hash.hexdigest()
            yield window


def _renamed(rows: Iterator[Numbered], column: str) -> Iterator[Numbered]:
    for line, record in rows:
        yield line, record if isinstance(record, MalformedLineError) else {column: record["text"]}
