"""Detects changes of a file while a job reads it."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import IO, Any

from emoglot.errors import DataError

_CHUNK_BYTES = 1 << 20


def new_hash() -> hashlib.blake2b:
    """Return a new hash for the input; its value is part of the names of pieces."""
    return hashlib.blake2b(digest_size=16)


class Watch:
    """An open file that is checked while it is read through another handle."""

    def __init__(self, name: str, file: IO[bytes]) -> None:
        self.name = name
        self._file = file
        self._opened = os.fstat(file.fileno())
        self.size = self._opened.st_size

    @property
    def identity(self) -> list[Any]:
        """What must be the same when a job is resumed: path, size and modification time."""
        return [str(Path(self.name).resolve()), self.size, self._opened.st_mtime_ns]

    def is_untouched(self) -> bool:
        """Return whether the file is certainly unchanged; raise DataError if it has certainly changed."""
        now = os.fstat(self._file.fileno())
        if (now.st_size, now.st_mtime_ns) != (self.size, self._opened.st_mtime_ns):
            raise self.changed()
        return now.st_ctime_ns == self._opened.st_ctime_ns

    def rewound(self) -> IO[bytes]:
        """Return the file, positioned at its beginning."""
        self._file.seek(0)
        return self._file

    def changed(self) -> DataError:
        """Return the error for a file that has changed."""
        return DataError(
            f"the input must not change while it is scored, {self.name} has changed: no output was written, score it "
            "again"
        )

    def hash_range(self, digest: hashlib.blake2b, first: int, count: int) -> None:
        """Hash this many bytes of the file."""
        self._file.seek(max(0, first))
        while count > 0 and (chunk := self._file.read(min(count, _CHUNK_BYTES))):
            digest.update(chunk)
            count -= len(chunk)
