"""The format of a file, as its name states it: `posts.csv.gz` is CSV, compressed."""

from __future__ import annotations

import gzip
import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from emoglot.errors import DataError, MissingExtraError, UsageError

CSV, TSV, JSONL, PARQUET = WRITTEN = ("csv", "tsv", "jsonl", "parquet")
TEXT = "txt"
SPREADSHEETS = ("xlsx", "ods", "xls")
KINDS = (*WRITTEN, TEXT, *SPREADSHEETS)
GZIP, ZSTD, ZIP = "gzip", "zstd", "zip"
STANDARD = "-"  # standard input or output
_SUFFIXES = {f".{kind}": kind for kind in KINDS} | {
    ".json": JSONL,
    ".ndjson": JSONL,
    ".text": TEXT,
    ".tab": TSV,
    ".pq": PARQUET,
}
_COMPRESSIONS = {".gz": GZIP, ".zst": ZSTD, ".zip": ZIP}
_HIDDEN = (".", "~$")  # how names begin that nobody chose: Excel puts ~$posts.xlsx beside a file that is open
_GZIP_LEVEL = 6


@dataclass(frozen=True)
class Format:
    """A kind of table and how its bytes are compressed; None where the name does not state it."""

    kind: str | None
    compression: str | None = None

    def pack(self, data: bytes) -> bytes:
        """Compress bytes so that compressed pieces can be concatenated."""
        if self.compression == GZIP:
            return gzip.compress(data, _GZIP_LEVEL, mtime=0)
        if self.compression == ZSTD:
            pa = _pyarrow()
            buffer = pa.BufferOutputStream()
            with pa.CompressedOutputStream(buffer, ZSTD) as stream:
                stream.write(data)
            return buffer.getvalue().to_pybytes()  # type: ignore[no-any-return]
        return data


def named_format(name: str) -> Format:
    """Return what the name of a file states about its format."""
    path = Path(name)
    compression = _COMPRESSIONS.get(path.suffix.lower())
    return Format(_SUFFIXES.get((path.with_suffix("") if compression else path).suffix.lower()), compression)


def format_of(name: str, given: str | None) -> Format:
    """Return the format of a file that is written: the given kind, or the one that its name states."""
    named = named_format(name)
    kind = check_kind(given, WRITTEN) or named.kind
    if kind is not None and kind not in WRITTEN:
        raise UsageError(f"a file is written as {', '.join(WRITTEN)}, got {name}: choose a name such as scored.csv")
    if kind is None:
        raise UsageError(f"the format of {name} is not stated by its name: give one of {', '.join(WRITTEN)}")
    if kind == PARQUET and (named.compression or name == STANDARD):
        raise UsageError(f"Parquet is compressed inside and cannot be a stream, got {name}: give the name of a file")
    if named.compression == ZIP:
        raise UsageError(f"a file is written plain, as .gz or as .zst, got {name}: choose another name")
    return Format(kind, named.compression)


def check_kind(given: str | None, kinds: tuple[str, ...] = KINDS) -> str | None:
    """Refuse a format that does not exist."""
    if given is not None and given not in kinds:
        raise UsageError(f"a format is one of {', '.join(kinds)}, got {given!r}")
    return given


def delimiter_of(kind: str | None) -> str:
    """Return what separates the cells of a line."""
    return "," if kind == CSV else "\t"


def decompressed(stream: IO[bytes], compression: str) -> Any:
    """Return a stream of what a gzip or zstd stream contains."""
    if compression == GZIP:
        return gzip.GzipFile(fileobj=stream)
    return _pyarrow().CompressedInputStream(stream, ZSTD)


def check_readable(path: Path) -> None:
    """Refuse a path that is not a file, a pipe or a device that can be read."""
    if path.is_dir():
        raise DataError(f"{path} is a directory: give the path of a file")
    if not path.exists():
        raise DataError(f"there is no file {path}: check the path")
    if not os.access(path, os.R_OK):
        raise DataError(f"{path} cannot be read: check its permissions")


def find_files(names: Iterable[str]) -> list[str]:
    """Return files, with those of a folder in its place, in the order of their names."""
    found: list[str] = []
    for name in names:
        if name == STANDARD or not Path(name).is_dir():
            found.append(name)
            continue
        inside = sorted(path for path in Path(name).iterdir() if path.is_file() and not path.name.startswith(_HIDDEN))
        known = [str(path) for path in inside if named_format(path.name).kind or path.suffix.lower() == ".zip"]
        if not known:
            raise DataError(f"a folder needs at least one data file, {name} has none: give the files by name")
        found.extend(known)
    if repeated := [name for name, count in Counter(found).items() if count > 1]:
        raise UsageError(f"a file can be read only once, got {repeated[0]} more than once")
    return found


def _pyarrow() -> Any:
    try:
        import pyarrow
    except ImportError as error:
        raise MissingExtraError("pyarrow", "parquet", "zstd compression") from error
    return pyarrow
