"""Lines of a data file: how they are decoded and numbered, and what becomes of the malformed ones."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from emoglot.errors import DataError

Record = TypeVar("Record")
Row = TypeVar("Row")

UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
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


class MalformedLineError(Exception):
    """A line that breaks a rule of its format; `keep_good` turns it into a `DataError` or a `BadLine`."""

    def __init__(self, reason: str, cells: Mapping[str, Any] | None = None) -> None:
        super().__init__(reason)
        self.cells = cells or {}  # as far as they could be told apart


def read_bytes(path: Path) -> bytes:
    """Read a whole file, with one clear sentence when that can't be done."""
    if path.is_dir():
        raise DataError(f"{path} is a directory: give the path of a data file")
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise DataError(f"there is no file {path}: check the path") from None
    except OSError as error:
        raise DataError(f"{path} can't be read: {error.strerror}") from error


def decode(data: bytes, path: Path) -> str:
    """Decode UTF-8 that is not blank; a foreign byte becomes a surrogate, which `check_text` refuses line by line."""
    if data.startswith(UTF16_MARKS):
        raise DataError(f"a data file must be UTF-8, {path} is UTF-16: save it as UTF-8")
    text = data.decode("utf-8", "surrogateescape").removeprefix("\ufeff")
    if not text.strip():
        raise DataError(f"a data file needs at least one row, {path} is empty")
    return text


def read_text(path: Path) -> str:
    """Read a whole UTF-8 file."""
    return decode(read_bytes(path), path)


def read_packed(path: Path) -> str:
    """Read a whole UTF-8 file that may be gzip."""
    data = read_bytes(path)
    if path.suffix != ".gz":
        return decode(data, path)
    try:
        return decode(gzip.decompress(data), path)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path} is no complete gzip file: {error}") from error


def numbered_lines(text: str) -> Iterator[tuple[int, str]]:
    r"""Number the lines that are not blank; only \n ends a line, since tweets hold U+2028, U+0085 and the like."""
    for number, line in enumerate(text.split("\n"), start=1):
        content = line.removesuffix("\r")
        if content:
            yield number, content


def check_text(text: str) -> None:
    """Refuse a byte that is not UTF-8, half a surrogate pair and a NUL."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        code = ord(text[error.start])
        found = f"the byte 0x{code & 0xFF:02X}" if code in ESCAPED_BYTES else f"the lone surrogate U+{code:04X}"
        raise MalformedLineError(f"the text must be UTF-8, got {found}") from None
    if "\0" in text:
        raise MalformedLineError("the text must not contain a NUL byte")


def keep_good(
    path: Path,
    records: Iterable[tuple[int, Record | MalformedLineError]],
    parse: Callable[[Record], Row],
    *,
    skip_bad: bool,
) -> tuple[list[Row], tuple[BadLine, ...]]:
    """Parse every record; a malformed one is dropped and listed if `skip_bad`, and the first of them raised if not."""
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
