"""The file that a job reads, watched: whether it is still what it was when it was opened."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import IO, Any

from emoglot.errors import DataError

_CHUNK_BYTES = 1 << 20


def new_hash() -> hashlib.blake2b:
    """Return the hash of what is read, which ends up in the names of pieces."""
    return hashlib.blake2b(digest_size=16)


class Watch:
    """An open file, checked beside the one who reads it."""

    def __init__(self, name: str, file: IO[bytes]) -> None:
        self.name = name
        self._file = file
        self._opened = os.fstat(file.fileno())
        self.size = self._opened.st_size

    @property
    def identity(self) -> list[Any]:
        """What must be the same when a job is resumed: place, size and time of change."""
        return [str(Path(self.name).resolve()), self.size, self._opened.st_mtime_ns]

    def is_untouched(self) -> bool:
        """Return whether nobody has touched the file; raise DataError if it was visibly changed."""
        now = os.fstat(self._file.fileno())
        if (now.st_size, now.st_mtime_ns) != (self.size, self._opened.st_mtime_ns):
            raise self.changed()
        return now.st_ctime_ns == self._opened.st_ctime_ns

    def rewound(self) -> IO[bytes]:
        """Return the file from its beginning."""
        self._file.seek(0)
        return self._file

    def changed(self) -> DataError:
        """Return what to raise if the file is not what was read before."""
        return DataError(
            f"the input must not change while it is scored, {self.name} has changed: no output was made; "
            "delete OUT.parts, and score it again"
        )

    def hash_range(self, digest: hashlib.blake2b, first: int, count: int) -> None:
        """Hash so many bytes of the file."""
        self._file.seek(max(0, first))
        while count > 0 and (chunk := self._file.read(min(count, _CHUNK_BYTES))):
            digest.update(chunk)
            count -= len(chunk)
