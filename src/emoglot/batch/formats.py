"""Which format a file has, told by its name: `posts.csv.gz` is CSV, compressed."""

from __future__ import annotations

import io
import os
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from emoglot.errors import DataError, MissingExtraError, UsageError

try:
    import pyarrow as pa
except ImportError as error:
    raise MissingExtraError("pyarrow", "parquet", "scoring files") from error

CSV, TSV, JSONL, PARQUET, TEXT = KINDS = ("csv", "tsv", "jsonl", "parquet", "txt")
_SUFFIXES = {f".{kind}": kind for kind in KINDS} | {".json": JSONL, ".ndjson": JSONL, ".text": TEXT, ".pq": PARQUET}
_COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}
STANDARD = "-"  # standard input or output


@dataclass(frozen=True)
class Format:
    """A kind of table, and how its bytes are packed."""

    kind: str
    compression: str | None = None

    def unpacked(self, stream: IO[bytes]) -> IO[bytes]:
        """Give the bytes of a stream as they were before they were packed."""
        if self.compression is None:
            return stream
        return io.BufferedReader(pa.CompressedInputStream(stream, self.compression))

    def pack(self, data: bytes) -> bytes:
        """Compress bytes so that packed pieces can be put one after another."""
        if self.compression is None:
            return data
        buffer = pa.BufferOutputStream()
        with pa.CompressedOutputStream(buffer, self.compression) as stream:
            stream.write(data)
        return buffer.getvalue().to_pybytes()  # type: ignore[no-any-return]


def delimiter_of(kind: str) -> str:
    """Say what stands between the cells of a line."""
    return "," if kind == CSV else "\t"


def format_of(name: str, given: str | None) -> Format:
    """Tell the format of a file from its name, or take the kind that was given."""
    path = Path(name)
    compression = _COMPRESSIONS.get(path.suffix.lower())
    kind = given or _SUFFIXES.get((path.with_suffix("") if compression else path).suffix.lower())
    if kind is None:
        raise UsageError(f"the format of {name} is not told by its name: give one of {', '.join(KINDS)}")
    if kind not in KINDS:
        raise UsageError(f"a format is one of {', '.join(KINDS)}, got {kind!r}")
    if kind == PARQUET and (compression or name == STANDARD):
        raise UsageError(f"Parquet is compressed inside and can't be a stream, got {name}")
    return Format(kind, compression)


def check_readable(path: Path) -> None:
    """Refuse a file that is not there, or not for us."""
    if not path.is_file():
        raise DataError(f"there is no file {path}: check the path")
    if not os.access(path, os.R_OK):
        raise DataError(f"{path} can't be read: check its permissions")
