"""Lines of a data file: numbers them, checks them, and drops or reports malformed ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from emoglot.data.streams import LONGEST_LINE, Reading, open_path
from emoglot.errors import DataError, shown

Raw = TypeVar("Raw")
Row = TypeVar("Row")

# surrogateescape keeps the byte 0xE9 as U+DCE9; any other surrogate comes from a JSON escape.
ESCAPED_BYTES = range(0xDC80, 0xDD00)


@dataclass(frozen=True)
class BadLine:
    """A line that was dropped: the file's name, the number of the line (from 1) and the rule it broke."""

    path: str
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.path}, line {self.line}: {self.reason}"


@dataclass(frozen=True)
class Given:
    """What the user states about a data file; `language` is for rows whose language the file does not state."""

    reading: Reading
    skip_bad: bool  # drop malformed lines
    language: str | None


class MalformedLineError(Exception):
    """A line that breaks a rule of its format; `keep_good` turns it into a `DataError` or a `BadLine`."""

    def __init__(self, reason: str, cells: Mapping[str, Any] | None = None) -> None:
        super().__init__(reason)
        self.cells = cells or {}  # as far as they could be parsed


def decode_line(line: bytes) -> str:
    """Decode a line of a stream; an invalid byte becomes a surrogate, which `check_text` rejects."""
    if len(line) > LONGEST_LINE:
        raise MalformedLineError(f"a line must not have more than {LONGEST_LINE} bytes")
    return line.decode("utf-8", "surrogateescape")


def check_text(text: str, encoding: str = "UTF-8") -> None:
    """Raise MalformedLineError for an invalid byte, a lone surrogate or a NUL."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        code = ord(text[error.start])
        found = f"the byte 0x{code & 0xFF:02X}" if code in ESCAPED_BYTES else f"the lone surrogate U+{code:04X}"
        raise MalformedLineError(f"the text must be {encoding.upper()}, got {found}") from None
    if "\0" in text:
        raise MalformedLineError("the text must not contain a NUL byte")


def read_lines(path: Path, reading: Reading | None = None) -> Iterator[tuple[int, str | MalformedLineError]]:
    r"""Yield the lines of a text file with their numbers, without line endings.

    Only \n ends a line, since tweets contain other line separators such as U+2028 and U+0085.
    """
    with open_path(path, reading or Reading()) as stream:
        stream.announce()
        for number, line in enumerate(stream.lines(), start=1):
            try:
                text = decode_line(line).removesuffix("\n").removesuffix("\r")
                check_text(text, stream.encoding)
            except MalformedLineError as error:
                yield number, error
            else:
                yield number, text


def numbered_lines(path: Path, reading: Reading | None = None) -> Iterator[tuple[int, str | MalformedLineError]]:
    """Yield the lines that are not empty; raise DataError if there are none."""
    is_blank = True
    for number, line in read_lines(path, reading):
        if line:
            is_blank = is_blank and isinstance(line, str) and not line.strip()
            yield number, line
    if is_blank:
        raise DataError(f"a data file needs at least one row, {path} is empty")


def header_of(lines: Iterator[tuple[int, str | MalformedLineError]], path: Path) -> str:
    """Return the first line, which must be well-formed."""
    _, line = next(lines)
    if isinstance(line, MalformedLineError):
        raise DataError(f"the header of {path} is malformed: {line}")
    return line


def check_header(
    lines: Iterator[tuple[int, str | MalformedLineError]], path: Path, columns: Sequence[str], kind: str
) -> None:
    """Raise DataError unless the first line of a file of this kind has these columns."""
    header = header_of(lines, path)
    if header.split("\t") != list(columns):
        raise DataError(f"the header of {kind} must be {' '.join(columns)}, got {shown(header)} in {path}")


def keep_good(
    path: Path,
    records: Iterable[tuple[int, Raw | MalformedLineError]],
    parse: Callable[[Raw], Row],
    *,
    skip_bad: bool,
) -> tuple[list[Row], tuple[BadLine, ...]]:
    """Parse every record; with `skip_bad` malformed ones are dropped and listed, else the first of them is raised."""
    rows: list[Row] = []
    bad: list[BadLine] = []
    for line, record in records:
        try:
            if isinstance(record, MalformedLineError):
                raise record
            rows.append(parse(record))
        except MalformedLineError as error:
            bad.append(BadLine(path.name, line, str(error)))
    if bad and not skip_bad:
        raise DataError(_complaint(path, bad))
    if not rows:
        cause = f"the first of {len(bad)} malformed lines is {bad[0]}" if bad else "it has no data below its header"
        raise DataError(f"a data file needs at least one usable row, {path} has none: {cause}")
    return rows, tuple(bad)


def _complaint(path: Path, bad: list[BadLine]) -> str:
    others = f" ({len(bad) - 1} more malformed in this file)" if len(bad) > 1 else ""
    return f"{path}, line {bad[0].line}: {bad[0].reason}{others}; correct it, or drop such lines with --skip-bad"
