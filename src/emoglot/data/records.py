"""The records of a file of any size in sequence, each with its line; a malformed record is returned as an error."""

from __future__ import annotations

import csv
import json
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import count, islice
from typing import IO, Any, TypeAlias

from emoglot.data.cells import check_count
from emoglot.data.columns import TEXT_COLUMNS, check_different, first_of
from emoglot.data.formats import CSV, JSONL, PARQUET, SPREADSHEETS, TEXT, TSV
from emoglot.data.lines import MalformedLineError, check_text, decode_line
from emoglot.data.streams import Reading, Stream
from emoglot.errors import DataError, needs_extra, shown

Record: TypeAlias = dict[str, Any]
Numbered: TypeAlias = tuple[int, Record | MalformedLineError]
Fields: TypeAlias = Iterator[tuple[int, list[str] | MalformedLineError]]
OnBytes: TypeAlias = Callable[[bytes], Any]

LONGEST_FIELD = 2**20  # characters: an unclosed quote would otherwise join the whole file
TOO_LONG = f"a field must not have more than {LONGEST_FIELD} characters"
UNNAMED = "unnamed_"  # columns without a name, except the first, which may be an index of pandas
DELIMITERS = (",", ";", "\t", "|")
_SNIFFED_BYTES, _SNIFFED_ROWS = 2**16, 20
_PARQUET_ROWS = 1024
_REASONS = {
    "unexpected end of data": "a quote that is opened here is never closed",
    "expected after": "a quote inside a quoted field must be doubled",
    "new-line character": "a carriage return must be in quotes or at the end of the line",
    "NUL": "the text must not contain a NUL byte",
    "field larger": f"{TOO_LONG}; is a quote that is opened here never closed?",
}
# The limit of the csv module is global to the process: one reader at a time sets and restores it.
_field_limit_lock = threading.Lock()


@dataclass
class Records:
    """The columns of a file, None if only its rows have them, and its records."""

    kind: str
    columns: tuple[str, ...] | None
    rows: Iterator[Numbered]


def open_records(
    stream: Stream, reading: Reading, on_bytes: OnBytes = lambda data: None, text_column: str | None = None
) -> Records:
    """Read a stream according to its kind; `on_bytes` is called with all bytes that are read.

    A text file has one column, `text`, unless it is a table that a spreadsheet program has saved as text.
    """
    kind = stream.kind or kind_of_content(stream)
    if kind == TEXT and reading.kind is None and has_tabs(stream, text_column):
        kind = TSV
        stream.note(
            "it is read as a table, since its lines are separated by tabs; use --in-format txt if each line is a text"
        )
    if kind in SPREADSHEETS:
        from emoglot.data.spreadsheets import spreadsheet_rows

        return _table(stream, kind, spreadsheet_rows(stream, on_bytes))
    if kind == PARQUET:
        columns, rows = _parquet_records(stream.file, stream.name)
        return Records(kind, columns, rows)
    lines = stream.lines(on_bytes)
    if kind == TEXT:
        return Records(kind, ("text",), _text_records(lines, stream.encoding))
    if kind == JSONL:
        if stream.sample.lstrip().startswith(b"["):
            raise DataError(f"{stream.name} is one JSON array: write one object per line, for example with jq -c '.[]'")
        return Records(kind, None, _json_records(lines, stream.encoding))
    if not stream.sample.strip():
        raise DataError(f"a table needs a header, {stream.name} is empty")
    delimiter = reading.delimiter or ("\t" if kind == TSV else find_delimiter(stream))
    return _table(stream, kind, csv_rows(lines, delimiter))


def kind_of_content(stream: Stream) -> str:
    """Return the kind of a file by its content; raise DataError if it cannot be recognised."""
    start = stream.sample.lstrip()
    if start.startswith(b"{"):
        return JSONL
    if has_header(stream):
        return CSV
    raise DataError(
        f"the format of {stream.name} cannot be recognised: its name has no known ending, it does not begin like JSON, "
        "Parquet or a spreadsheet, and its first line is not a header; use --in-format, such as txt for a text per line"
    )


def has_header(stream: Stream) -> bool:
    """Return whether the first line of a stream names a column of texts."""
    header, *_ = _sniff(stream, find_delimiter(stream))
    return first_of([name.strip() for name in header], TEXT_COLUMNS) is not None


def has_tabs(stream: Stream, text_column: str | None = None) -> bool:
    """Return whether the first lines are a table with tabs: equally many fields, and a header that names the texts."""
    rows = _sniff(stream, "\t")
    header = [name.strip() for name in rows[0]]
    has_texts = text_column in header or first_of(header, TEXT_COLUMNS) is not None
    return len(header) > 1 and len(rows) > 1 and has_texts and all(len(row) == len(header) for row in rows)


def find_delimiter(stream: Stream) -> str:
    """Return the delimiter of most of the first rows, and log it if it is not a comma."""
    best, best_quality = DELIMITERS[0], (0.0, 1)
    for delimiter in DELIMITERS:
        rows = _sniff(stream, delimiter)
        width = len(rows[0])
        quality = (sum(len(row) == width for row in rows) / len(rows), width)
        if width > 1 and quality > best_quality:
            best, best_quality = delimiter, quality
    if best != DELIMITERS[0]:
        stream.note(f"its columns are separated by {best!r}; use --delimiter if that is wrong")
    return best


def _sniff(stream: Stream, delimiter: str) -> list[list[str]]:
    text = stream.sample[:_SNIFFED_BYTES].decode("utf-8", "replace")
    lines = text.split("\n")[: -1 if len(stream.sample) > _SNIFFED_BYTES else None]
    rows: list[list[str]] = []
    try:
        reader = csv.reader((line + "\n" for line in lines), delimiter=delimiter)
        rows.extend(islice((row for row in reader if row), _SNIFFED_ROWS))
    except csv.Error:
        pass
    return rows or [[""]]


def _table(stream: Stream, kind: str, rows: Fields) -> Records:
    """Return rows as records, with the first row as header."""
    _, header = next(rows, (0, []))
    try:
        if isinstance(header, MalformedLineError):
            raise header
        check_text("\t".join(header), stream.encoding)
    except MalformedLineError as error:
        raise DataError(f"the header of {stream.name} is malformed: {error}") from None
    columns = [name.strip() for name in header]
    check_different([name for name in columns if name], stream.name)
    for index, name in enumerate(columns):
        if not name and "" in columns[:index]:
            numbered = (f"{UNNAMED}{number}" for number in count(index + 1))
            columns[index] = next(free for free in numbered if free not in columns)
    return Records(kind, tuple(columns), _named(rows, columns, stream.encoding))


def _named(rows: Fields, columns: list[str], encoding: str) -> Iterator[Numbered]:
    for number, fields in rows:
        record: Record = {}
        try:
            if isinstance(fields, MalformedLineError):
                raise fields
            check_count(fields, len(columns))
            record = dict(zip(columns, fields, strict=True))
            check_text("\t".join(fields), encoding)
        except MalformedLineError as error:
            yield number, MalformedLineError(str(error), record)
        else:
            yield number, record


def _text_records(lines: Iterable[bytes], encoding: str) -> Iterator[Numbered]:
    for number, line in enumerate(lines, start=1):
        try:
            text = decode_line(line).rstrip("\r\n")
            check_text(text, encoding)
            _check_lengths({"text": text})
        except MalformedLineError as error:
            yield number, error
        else:
            yield number, {"text": text}


def _json_records(lines: Iterable[bytes], encoding: str) -> Iterator[Numbered]:
    for number, line in enumerate(lines, start=1):
        try:
            text = decode_line(line)
            if text.strip():
                yield number, _json_record(text, encoding)
        except MalformedLineError as error:
            yield number, error


def _json_record(line: str, encoding: str) -> Record:
    check_text(line, encoding)
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits raises a ValueError as well
        raise MalformedLineError(f"a line must be a JSON object, got {shown(line.rstrip())} ({error})") from None
    if not isinstance(record, dict):
        raise MalformedLineError(f"a line must be a JSON object, got {shown(line.rstrip())}")
    if "\\u" in line:  # an escape may be half a character
        check_text(json.dumps(record, ensure_ascii=False))
    _check_lengths(record)
    return record


def _check_lengths(record: Record) -> None:
    for name, value in record.items():
        if isinstance(value, str) and len(value) > LONGEST_FIELD:
            raise MalformedLineError(f"{TOO_LONG}, {name!r} has {len(value)}", record)


def csv_rows(lines: Iterator[bytes], delimiter: str) -> Fields:
    """Parse rows; after a malformed row, continue with the line after its first line."""
    source = _Lines(lines)
    while True:
        reader = csv.reader(source, delimiter=delimiter, strict=True)
        # A new reader after an error, since the old one has lost its position.
        while True:
            first = source.begin_record()
            try:
                fields = _next_row(reader)
            except StopIteration:
                return
            except (csv.Error, MalformedLineError) as error:
                reason = str(error)
                if isinstance(error, csv.Error):
                    reason = next((text for part, text in _REASONS.items() if part in reason), f"malformed: {reason}")
                yield first, MalformedLineError(reason)
                source.go_back_to(first + 1)
                break
            if fields:
                yield first, fields


def _next_row(reader: Iterator[list[str]]) -> list[str]:
    with _field_limit_lock:
        previous = csv.field_size_limit(LONGEST_FIELD)
        try:
            return next(reader)
        finally:
            csv.field_size_limit(previous)


class _Lines:
    """Lines that can be read again from the second line of the current record on."""

    def __init__(self, lines: Iterator[bytes]) -> None:
        self._lines = lines
        self._again: deque[bytes] = deque()
        self._record: list[bytes] = []
        self._number = 0  # of the last line

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._again.popleft() if self._again else next(self._lines)
        self._record.append(line)
        self._number += 1
        return decode_line(line)

    def begin_record(self) -> int:
        """Discard the lines of the previous record; return the number of the next line."""
        self._record = []
        return self._number + 1

    def go_back_to(self, number: int) -> None:
        """Read the current record's lines again, from this number on."""
        kept = len(self._record) - (self._number + 1 - number)
        self._again.extendleft(reversed(self._record[kept:]))
        self._number = number - 1
        self._record = []


def _parquet_records(file: IO[bytes], name: str) -> tuple[tuple[str, ...], Iterator[Numbered]]:
    with needs_extra("parquet", "reading Parquet files"):
        import pyarrow as pa
        from pyarrow import parquet

    def rows() -> Iterator[Numbered]:
        try:
            batches = opened.iter_batches(_PARQUET_ROWS)
            yield from enumerate((row for batch in batches for row in batch.to_pylist()), start=1)
        except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
            raise DataError(f"{name} is not a readable Parquet file: {error}") from error

    try:
        opened = parquet.ParquetFile(file)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DataError(f"{name} is not a readable Parquet file: {error}") from error
    check_different(opened.schema_arrow.names, name)
    return tuple(opened.schema_arrow.names), rows()
