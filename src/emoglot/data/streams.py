"""Reads files of any compression and encoding as UTF-8 lines."""

from __future__ import annotations

import io
import logging
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from emoglot.data.encodings import UTF_8, Transcoded, check_encoding, find_encoding, is_utf8
from emoglot.data.formats import (
    GZIP,
    PARQUET,
    SPREADSHEETS,
    ZIP,
    ZSTD,
    check_kind,
    check_readable,
    decompressed,
    named_format,
)
from emoglot.errors import DataError, UsageError

log = logging.getLogger("emoglot")

SAMPLE_BYTES = 2**20
LONGEST_LINE = 2**22  # bytes: enough for the longest field in any script
_BUFFER_BYTES = 1 << 18
_MARK = "\ufeff".encode()
_TABS = {"tab": "\t", "\\t": "\t"}
_ZIP_MAGIC = b"PK\x03\x04"
_ENCRYPTED = 1  # a flag of a file in an archive
_KINDS = {b"PAR1": PARQUET, b"\xd0\xcf\x11\xe0": "xls"}
_COMPRESSIONS = {b"\x1f\x8b": GZIP, b"\x28\xb5\x2f\xfd": ZSTD}
_UNREADABLE = (OSError, EOFError, zlib.error, zipfile.BadZipFile, NotImplementedError)


@dataclass(frozen=True)
class Reading:
    """How to read a file; None is recognised by name and content."""

    kind: str | None = None
    encoding: str | None = None
    delimiter: str | None = None

    def __post_init__(self) -> None:
        check_kind(self.kind)
        check_encoding(self.encoding)
        object.__setattr__(self, "delimiter", _TABS.get(self.delimiter or "", self.delimiter))
        if self.delimiter is not None and (len(self.delimiter) != 1 or self.delimiter in '"\r\n'):
            raise UsageError(f"a delimiter must be one character, or tab, got {self.delimiter!r}")


@dataclass
class Stream:
    """An open, decompressed file at its beginning."""

    name: str
    file: IO[bytes]
    kind: str | None  # by its name or its first bytes
    sample: bytes  # the beginning; of text files in UTF-8
    encoding: str = UTF_8
    notes: list[tuple[int, str]] = field(default_factory=list)  # what was guessed, for the log

    def lines(self, on_bytes: Callable[[bytes], Any] = lambda data: None) -> Iterator[bytes]:
        """Yield the lines; of a line longer than LONGEST_LINE, only the beginning, which is still too long."""
        with explained(self.name):
            while line := self.file.readline(LONGEST_LINE + 1):
                on_bytes(line)
                yield line
                if len(line) > LONGEST_LINE:
                    while not line.endswith(b"\n") and (line := self.file.readline(LONGEST_LINE)):
                        on_bytes(line)

    def note(self, message: str, level: int = logging.INFO) -> None:
        """Keep what was guessed, once, for the log."""
        if (level, message) not in self.notes:
            self.notes.append((level, message))

    def announce(self) -> None:
        """Log what was guessed."""
        for level, message in self.notes:
            log.log(level, "%s: %s", self.name, message)


@contextmanager
def explained(name: str) -> Iterator[None]:
    """Raise DataError with the name of the file for errors in its content."""
    try:
        yield
    except _UNREADABLE as error:
        reason = getattr(error, "strerror", None) or error
        raise DataError(
            f"{name} cannot be read: {reason}; check that it is complete and has the right extension"
        ) from error


@contextmanager
def open_path(path: Path, reading: Reading = Reading()) -> Iterator[Stream]:  # noqa: B008 - it is frozen
    """Open a file by its path."""
    check_readable(path)
    with ExitStack() as stack:
        with explained(str(path)):
            file = stack.enter_context(path.open("rb", buffering=_BUFFER_BYTES))
        yield open_stream(file, str(path), reading, stack)


def open_stream(file: IO[bytes], name: str, reading: Reading, stack: ExitStack) -> Stream:
    """Decompress a file and, if it is text, convert it to UTF-8; `stack` closes what was opened."""
    with explained(name):
        stream = _unpack(file, name, stack)
        if not stream.sample.startswith((_ZIP_MAGIC, *_KINDS)):
            stream.kind = reading.kind or stream.kind
            _decode(stream, reading.encoding)
    return stream


def _unpack(file: IO[bytes], name: str, stack: ExitStack) -> Stream:
    file, sample = _peek(file)
    if named_format(name).compression == ZIP or sample.startswith(_ZIP_MAGIC):
        return _unzip(file, name, stack)
    return _decompress(file, sample, name)


def _decompress(file: IO[bytes], sample: bytes, name: str) -> Stream:
    """Open a file that is not an archive."""
    named = named_format(name)
    packed = next((kind for magic, kind in _COMPRESSIONS.items() if sample.startswith(magic)), None)
    if compression := named.compression or packed:
        file, sample = _peek(io.BufferedReader(decompressed(file, compression), _BUFFER_BYTES))
    kind = next((kind for magic, kind in _KINDS.items() if sample.startswith(magic)), named.kind)
    return Stream(name, file, kind, sample)


def _unzip(file: IO[bytes], name: str, stack: ExitStack) -> Stream:
    """Open a spreadsheet, which is an archive itself, or the only data file in an archive."""
    if not file.seekable():
        pipe, file = file, stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - the stack is one
        shutil.copyfileobj(pipe, file)
        file.seek(0)
    archive = stack.enter_context(zipfile.ZipFile(file))
    members = [member.filename for member in archive.infolist() if not member.is_dir()]
    kind = "xlsx" if "xl/workbook.xml" in members else "ods" if "content.xml" in members else None
    if kind or named_format(name).kind in SPREADSHEETS:
        file.seek(0)
        return Stream(name, file, kind or named_format(name).kind, _ZIP_MAGIC)
    data = [member for member in members if named_format(member).kind and not member.startswith("__MACOSX/")]
    if len(data) != 1:
        raise DataError(f"an archive must contain one data file, {name} has {len(data)}: unpack it and use the folder")
    if archive.getinfo(data[0]).flag_bits & _ENCRYPTED:
        raise DataError(f"an archive must not be encrypted, {name} is: unpack it and use the file")
    inner, sample = _peek(io.BufferedReader(stack.enter_context(archive.open(data[0])), _BUFFER_BYTES))  # type: ignore[type-var]
    return _decompress(inner, sample, f"{name}/{data[0]}")


def _peek(file: IO[bytes]) -> tuple[IO[bytes], bytes]:
    """Return a stream and its beginning."""
    begin = file.tell() if file.seekable() else None
    sample = file.read(SAMPLE_BYTES)
    while len(sample) < SAMPLE_BYTES and (more := file.read(SAMPLE_BYTES - len(sample))):
        sample += more  # a pipe may return less than requested
    if begin is None:
        return io.BufferedReader(_Joined(sample, file), _BUFFER_BYTES), sample
    file.seek(begin)
    return file, sample


class _Joined(io.RawIOBase):
    """The beginning of a pipe, which was already read, and the rest of it."""

    def __init__(self, beginning: bytes, rest: IO[bytes]) -> None:
        self._beginning = io.BytesIO(beginning)
        self._rest = rest

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Fill a buffer."""
        data = self._beginning.read(len(buffer)) or self._rest.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def _decode(stream: Stream, given: str | None) -> None:
    """Convert a text stream to UTF-8 without a byte order mark."""
    whole_lines = stream.sample
    if len(stream.sample) >= SAMPLE_BYTES:
        whole_lines = stream.sample[: stream.sample.rfind(b"\n") + 1] or stream.sample[:-3]
    if given is None and stream.sample.startswith(_MARK):
        given = UTF_8
    stream.encoding, is_guess = (given, False) if given else find_encoding(whole_lines)
    if is_guess:
        guessed = f"read as {stream.encoding}, guessed from its content; use --encoding if that is wrong"
        stream.note(guessed, logging.WARNING)
    if not is_utf8(stream.encoding):
        stream.sample = stream.sample.decode(stream.encoding, "replace").encode(UTF_8)
        stream.file = io.BufferedReader(Transcoded(stream.file, stream.encoding), _BUFFER_BYTES)
    if stream.sample.startswith(_MARK):
        stream.file.read(len(_MARK))
        stream.sample = stream.sample.removeprefix(_MARK)
