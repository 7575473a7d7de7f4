"""Records of a CSV or TSV text, each with the physical line on which it begins."""

from __future__ import annotations

import csv
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from emoglot.data.lines import MalformedLineError, check_text

# The C long that holds the limit has 32 bits on Windows.
LONGEST_FIELD = min(sys.maxsize, 2**31 - 1)

# The limit of the csv module belongs to the process: one reader of ours at a time lifts it, and puts it back.
_field_limit_lock = threading.Lock()

UNCLOSED = "unexpected end of data"
REASONS = {
    UNCLOSED: "a quote that opens here is never closed",
    "expected after": "a quote inside a quoted field must be doubled",
    "new-line character": "a carriage return must stand in quotes or before the end of the line",
    "NUL": "the text must not contain a NUL byte",
    "field larger": "a field must not be so long; is a quote that opens here never closed?",
}


def csv_records(text: str, delimiter: str) -> list[tuple[int, list[str] | MalformedLineError]]:
    """Parse a whole text; blank lines are left out, and a malformed record stands as the error it is."""
    lines = [f"{line}\n" for line in text.split("\n")]
    records: list[tuple[int, list[str] | MalformedLineError]] = []
    start = 0
    with _long_fields():
        while start < len(lines):
            start = _parse_from(lines, start, delimiter, records)
    return records


def _parse_from(
    lines: list[str], start: int, delimiter: str, records: list[tuple[int, list[str] | MalformedLineError]]
) -> int:
    """Append the records from line index `start` on; return the index to go on from."""
    # Not a slice: with many bad records, copying the rest after each would take longer than reading.
    reader = csv.reader((lines[index] for index in range(start, len(lines))), delimiter=delimiter, strict=True)
    while True:
        first = start + reader.line_num
        try:
            fields = next(reader)
        except StopIteration:
            return len(lines)
        except csv.Error as error:
            records.append((first + 1, MalformedLineError(reason_of(error))))
            # An open quote has swallowed lines, or the rest of the file: give up its own only.
            if start + reader.line_num > first + 1:
                return first + 1
            continue
        if fields:
            records.append((first + 1, _checked(fields)))


def _checked(fields: list[str]) -> list[str] | MalformedLineError:
    try:
        check_text("\t".join(fields))
    except MalformedLineError as error:
        return error
    return fields


def reason_of(error: csv.Error) -> str:
    """Say what is wrong in words."""
    return next((reason for part, reason in REASONS.items() if part in str(error)), f"not readable as CSV: {error}")


@contextmanager
def _long_fields() -> Iterator[None]:
    with _field_limit_lock:
        previous = csv.field_size_limit(LONGEST_FIELD)
        try:
            yield
        finally:
            csv.field_size_limit(previous)
