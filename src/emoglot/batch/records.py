"""Records of a file of any size, one after another, each with its line; what is malformed stands as the error it is."""

from __future__ import annotations

import csv
import json
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from emoglot.data.csvrecords import reason_of
from emoglot.data.lines import MalformedLineError, check_text

# A quote that is never closed would swallow the file: a field ends here at the latest.
LONGEST_FIELD_IN_STREAM = 2**20

Record = dict[str, Any]
Numbered = tuple[int, "Record | MalformedLineError"]


def text_records(lines: Iterable[bytes], column: str) -> Iterator[Numbered]:
    """Take every line for a text."""
    for number, line in enumerate(_decoded(lines), start=1):
        text = line.rstrip("\r\n")
        yield number, _checked({column: text})


def json_records(lines: Iterable[bytes]) -> Iterator[Numbered]:
    """Read one JSON object per line; blank lines are left out."""
    for number, line in enumerate(_decoded(lines), start=1):
        if not line.strip():
            continue
        try:
            check_text(line)
            record = json.loads(line)
            check_text(json.dumps(record, ensure_ascii=False))  # escapes can bring in what the line has not
        except MalformedLineError as error:
            yield number, error
        except (ValueError, RecursionError) as error:
            yield number, MalformedLineError(f"a line must be a JSON object: {error}")
        else:
            is_object = isinstance(record, dict)
            yield number, record if is_object else MalformedLineError("a line must be a JSON object")


def csv_records(lines: Iterable[bytes], delimiter: str) -> tuple[list[str], Iterator[Numbered]]:
    """Give the header and the records of comma or tab separated values."""
    rows = _csv_rows(_decoded(lines), delimiter)
    _, header = next(rows, (0, []))
    if isinstance(header, MalformedLineError):
        raise header
    return [name.strip() for name in header], _named(rows, [name.strip() for name in header])


def _named(rows: Iterator[tuple[int, list[str] | MalformedLineError]], header: list[str]) -> Iterator[Numbered]:
    for number, fields in rows:
        if isinstance(fields, MalformedLineError):
            yield number, fields
        elif len(fields) != len(header):
            yield number, MalformedLineError(f"a line must have {len(header)} fields, got {len(fields)}")
        else:
            yield number, _checked(dict(zip(header, fields, strict=True)))


def _csv_rows(lines: Iterator[str], delimiter: str) -> Iterator[tuple[int, list[str] | MalformedLineError]]:
    """Parse rows; after a malformed one go on with the line that follows its first."""
    source = _Lines(lines)
    while True:
        reader = csv.reader(source, delimiter=delimiter, strict=True)
        # A reader is made anew after an error, since the old one has lost its place.
        while True:
            first = source.begin_record()
            previous = csv.field_size_limit(LONGEST_FIELD_IN_STREAM)
            try:
                fields = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                yield first, MalformedLineError(reason_of(error))
                source.go_back_to(first + 1)
                break
            finally:
                csv.field_size_limit(previous)
            if fields:
                yield first, fields


class _Lines:
    """Lines that can be given again from the second line of the current record on."""

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines = lines
        self._again: deque[str] = deque()
        self._record: list[str] = []
        self._number = 0  # of the last line given

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._again.popleft() if self._again else next(self._lines)
        self._record.append(line)
        self._number += 1
        return line

    def begin_record(self) -> int:
        """Forget the lines of the record before; give the number of the line that comes."""
        self._record = []
        return self._number + 1

    def go_back_to(self, number: int) -> None:
        """Give the current record's lines again, from this number on."""
        kept = len(self._record) - (self._number + 1 - number)
        self._again.extendleft(reversed(self._record[kept:]))
        self._number = number - 1
        self._record = []


def _decoded(lines: Iterable[bytes]) -> Iterator[str]:
    """Decode line by line; a foreign byte becomes a surrogate, which is refused with its own line only."""
    for number, line in enumerate(lines):
        text = line.decode("utf-8", "surrogateescape")
        yield text.removeprefix("\ufeff") if number == 0 else text


def _checked(record: Record) -> Record | MalformedLineError:
    try:
        check_text("\t".join(record.values()))
    except MalformedLineError as error:
        return MalformedLineError(str(error), record)
    return record
