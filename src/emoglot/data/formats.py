"""The format of a file by its name: `posts.csv.gz` is compressed CSV."""

from __future__ import annotations

import gzip
import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from emoglot.errors import DataError, UsageError, needs_extra

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
_HIDDEN = (".", "~$")  # prefixes of hidden files; Excel creates ~$posts.xlsx beside an open file
_GZIP_LEVEL = 6


@dataclass(frozen=True)
class Format:
    """The kind of a table and its compression; None if the name does not state it."""

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
    """Return the format of a file by its name."""
    path = Path(name)
    compression = _COMPRESSIONS.get(path.suffix.lower())
    return Format(_SUFFIXES.get((path.with_suffix("") if compression else path).suffix.lower()), compression)


def format_of(name: str, given: str | None) -> Format:
    """Return the format of an output file: the given kind, or that of its name."""
    named = named_format(name)
    kind = check_kind(given, WRITTEN) or named.kind
    if kind is not None and kind not in WRITTEN:
        raise UsageError(f"output must be one of {', '.join(WRITTEN)}, got {name}: choose a name such as scored.csv")
    if kind is None and name == STANDARD:
        raise UsageError("the format of standard output must be stated, got none: add --out-format csv, tsv or jsonl")
    if kind is None and Path(name).is_dir():
        raise UsageError(
            f"OUT must be a file, {name} is a folder: add a name such as {Path(name) / 'scored.csv'}, or, for a folder "
            "that a cluster writes, --out-format"
        )
    if kind is None:
        raise UsageError(f"the format of {name} cannot be recognised by its name: add .csv, or set --out-format")
    if kind == PARQUET and (named.compression or name == STANDARD):
        raise UsageError(f"Parquet is compressed internally and cannot be a stream, got {name}: use a file")
    if named.compression == ZIP:
        raise UsageError(f"output must be uncompressed, .gz or .zst, got {name}: choose another name")
    return Format(kind, named.compression)


def check_kind(given: str | None, kinds: tuple[str, ...] = KINDS) -> str | None:
    """Raise UsageError for an unknown format."""
    if given is not None and given not in kinds:
        raise UsageError(f"a format must be one of {', '.join(kinds)}, got {given!r}")
    return given


def delimiter_of(kind: str | None) -> str:
    """Return the delimiter of a kind of table."""
    return "," if kind == CSV else "\t"


def decompressed(stream: IO[bytes], compression: str) -> Any:
    """Return the decompressed content of a gzip or zstd stream."""
    if compression == GZIP:
        return gzip.GzipFile(fileobj=stream)
    return _pyarrow().CompressedInputStream(stream, ZSTD)


def check_readable(path: Path) -> None:
    """Raise DataError for a path that is not a readable file, pipe or device."""
    if path.is_dir():
        raise DataError(f"{path} is a directory: use the path of a file")
    if not path.exists():
        raise DataError(f"there is no file {path}: check the path")
    if not os.access(path, os.R_OK):
        raise DataError(f"{path} cannot be read: check its permissions")


def find_files(names: Iterable[str]) -> list[str]:
    """Return files; a folder is replaced by its files, sorted by name."""
    found: list[str] = []
    for name in names:
        if name == STANDARD or not Path(name).is_dir():
            found.append(name)
            continue
        inside = sorted(path for path in Path(name).iterdir() if path.is_file() and not path.name.startswith(_HIDDEN))
        known = [str(path) for path in inside if named_format(path.name).kind or path.suffix.lower() == ".zip"]
        if not known:
            raise DataError(f"a folder needs at least one data file, {name} has none: list the files by name")
        found.extend(known)
    if repeated := [name for name, count in Counter(found).items() if count > 1]:
        raise UsageError(f"a file can be listed only once, got {repeated[0]} more than once")
    return found


def _pyarrow() -> Any:
    with needs_extra("parquet", "zstd compression"):
        import pyarrow
    return pyarrow
