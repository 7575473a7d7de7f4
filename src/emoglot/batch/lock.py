"""A lock file that one process holds at a time; the system releases it when the process ends or is killed."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

# Errors if another process holds the file. Any other error means that the file system does not support locks.
_HELD = (errno.EAGAIN, errno.EACCES, errno.EDEADLK)


class HeldError(Exception):
    """Another process holds the file."""


class Lock:
    """A lock on a file, which is created if it is missing."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = -1

    def acquire(self) -> None:
        """Acquire the lock; raise HeldError if another process holds it."""
        self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            _hold(self._descriptor)
        except OSError as error:
            if error.errno in _HELD:
                self.release()
                raise HeldError from error
        if not self.path.exists():  # the previous holder removed it after it was opened here
            self.release()
            raise HeldError

    def release(self) -> None:
        """Release the lock."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def remove(self) -> None:
        """Remove the file while the lock is held."""
        if sys.platform == "win32":  # which cannot remove an open file
            self.release()
        self.path.unlink(missing_ok=True)
        self.release()


if sys.platform == "win32":
    import msvcrt

    def _hold(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _hold(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
