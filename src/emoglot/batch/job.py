"""A job: the input is read in windows, each is scored and stored as a piece, and the pieces are joined to the output.

OUT.parts/                 exists while the job runs; a killed job is resumed from it
├── job.json               the mark of emoglot and the identity of the job, which must not change on resume
├── lock                   held by the process that runs the job
├── 000000-8192-5d41…      the first piece; its name has the number of rows read so far and the hash of the input
├── 000000.rejects         the rows of this window that could not be scored
└── …

A folder without the mark of emoglot is never used or removed.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from emoglot.batch.lock import HeldError, Lock
from emoglot.batch.sink import Sink, TakenColumnError, UnfitRowsError
from emoglot.batch.window import Position, Reject, Window
from emoglot.errors import DataError, UsageError
from emoglot.files import draft, write_whole
from emoglot.schema import build, choice

JOB_FILE, LOCK_FILE = "job.json", "lock"
WHOLE, REJECTS = "whole", "rejects"
MARK = "emoglot score"
INPUT = "input"  # the key of the input file in the identity of a job; missing if the input is a pipe
REJECTS_SUFFIX = ".rejects.jsonl"
# The states of a job: in WRITING, OUT may already exist; in DONE, pieces may already be removed.
READING, WRITING, DONE = "reading", "writing", "done"
FINAL = (UnfitRowsError, TakenColumnError)  # the same job would raise them again

_LONGEST_REJECT = 2**20  # characters

_PIECE = re.compile(r"(\d{6,})-(\d+)-([0-9a-f]*)")
_OURS = re.compile(rf"({_PIECE.pattern}|\d{{6,}}\.rejects)(\.draft)?|{WHOLE}|{REJECTS}|{JOB_FILE}\.draft")


@dataclass(frozen=True)
class Tally:
    """The result of a job."""

    rows: int
    rejected: int
    rejects: Path | None


@dataclass(frozen=True)
class JobRecord:
    """The content of job.json."""

    identity: dict[str, Any]
    overwrite: bool
    state: str = choice((READING, WRITING, DONE))

    def write(self, folder: Path) -> None:
        """Write the record with the mark of emoglot."""
        write_whole(folder / JOB_FILE, json.dumps({"made_by": MARK, **asdict(self)}))

    @classmethod
    def read(cls, folder: Path) -> JobRecord | None:
        """Read the record, or return None if there is none of emoglot; raise UsageError if it is damaged."""
        path = folder / JOB_FILE
        if path.exists() and not path.is_file():  # reading a named pipe would never end
            raise _damaged(path, "it is not a regular file")
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError, RecursionError) as error:
            raise _damaged(path, str(error)) from error
        if not isinstance(found, dict) or found.pop("made_by", None) != MARK:
            return None
        try:
            return build(cls, found)
        except UsageError as error:
            raise _damaged(path, str(error)) from error


def _damaged(path: Path, reason: str) -> UsageError:
    return UsageError(
        f"{path} is damaged ({reason}), so the job cannot be resumed: delete {path.parent} and start again"
    )


def rejects_of(out: Path) -> Path:
    """Return the path of the list of rejected rows of an output."""
    return out.with_name(f"{out.name}{REJECTS_SUFFIX}")


class Job:
    """The pieces of one output."""

    def __init__(self, out: Path, identity: dict[str, Any]) -> None:
        self._out = out
        self._rejects = rejects_of(out)
        self._folder = out.with_name(f"{out.name}.parts")
        self._lock = Lock(self._folder / LOCK_FILE)
        self._record = JobRecord(identity, overwrite=False)

    @contextmanager
    def begun(self, *, resume: bool, overwrite: bool) -> Iterator[None]:
        """Lock the folder of pieces while the block runs; raise UsageError if jobs would be mixed or files lost.

        A folder from which no job can be resumed is removed: that of a pipe, or of a job that failed at its first rows
        or would fail again. Any other is kept, also after an error in the data: a missing or changed file may be
        restored.
        """
        self._record = replace(self._record, overwrite=overwrite)
        if os.path.lexists(self._folder):
            self._check_ours()
        else:
            self._check_free(resume=resume)
            self._folder.mkdir()
        with self._held():
            self._take_up(resume=resume)
            try:
                yield
            except BaseException as error:
                is_new = isinstance(error, Exception) and not self.pieces()
                if INPUT not in self._record.identity or is_new or isinstance(error, FINAL):
                    self._remove()
                elif isinstance(error, DataError):
                    raise DataError(
                        f"{error}; what was scored before is kept in {self._folder}: restore the input as it was and "
                        "continue with --resume, or delete the folder"
                    ) from error
                raise

    @contextmanager
    def _held(self) -> Iterator[None]:
        try:
            self._lock.acquire()
        except HeldError as error:
            raise UsageError(
                f"only one job at a time can write {self._out}, and one is running: wait for it, or choose another name"
            ) from error
        except OSError:
            with suppress(OSError):
                self._folder.rmdir()  # without the lock, it could not be recognised as a folder of emoglot
            raise
        try:
            yield
        finally:
            self._lock.release()

    def _take_up(self, *, resume: bool) -> None:
        """Resume the job in the folder, or start one if there is none."""
        found = JobRecord.read(self._folder)
        if found is None or found.state == DONE:  # killed before its first record, or while its pieces were removed
            try:
                self._check_free(resume=resume)
            except UsageError:
                self._remove()
                raise
            self._remove_pieces()
        else:
            self._check_same(found, resume=resume)
            self._record = replace(found, overwrite=found.overwrite or self._record.overwrite)
            if found.state == READING:
                self._check_free(resume=False)
        self._record.write(self._folder)

    def _check_ours(self) -> None:
        """Raise UsageError for a folder without the mark of emoglot, unless it is new and contains only the lock."""
        if JobRecord.read(self._folder) is not None:
            return
        names = {path.name for path in self._folder.iterdir()} if self._folder.is_dir() else set()
        if LOCK_FILE not in names or not names <= {LOCK_FILE, f"{JOB_FILE}.draft"}:
            raise UsageError(
                f"the pieces of a job are kept in {self._folder}, which exists and was not created by {MARK}: "
                "rename or delete it, or choose another name for OUT"
            )

    def _check_same(self, found: JobRecord, *, resume: bool) -> None:
        if not resume:
            way = "continue it with --resume, or delete it" if INPUT in found.identity else "delete it"
            raise UsageError(f"{self._folder} contains an unfinished job: {way}")
        own = self._record.identity
        changed = [name for name in own.keys() | found.identity.keys() if found.identity.get(name) != own.get(name)]
        if changed:
            raise UsageError(f"{self._folder} contains a job with another {' and '.join(sorted(changed))}: delete it")

    def _check_free(self, *, resume: bool) -> None:
        """Raise UsageError if a file of the user would be replaced, except an output that may be overwritten."""
        if os.path.lexists(self._out):
            if not self._out.is_file():
                raise UsageError(f"{self._out} must be a regular file: choose another name, or - for stdout")
            if not self._record.overwrite:
                if resume:
                    raise UsageError(f"{self._out} is already complete: there is nothing to resume")
                raise UsageError(f"{self._out} already exists: choose another name, or replace it with --overwrite")
        if os.path.lexists(self._rejects):
            if not _is_list_of_rejects(self._rejects):
                raise UsageError(
                    f"rejected rows are listed in {self._rejects}, which exists and was not created by {MARK}: "
                    "rename or delete it, or choose another name for OUT"
                )
            if not self._record.overwrite:
                raise UsageError(f"{self._rejects} already exists: choose another name, or replace it with --overwrite")

    def position(self) -> Position:
        """Return the position after the last piece."""
        pieces = self.pieces()
        if not pieces:
            return Position()
        _, rows, digest = pieces[-1].name.split("-")
        return Position(len(pieces), int(rows), digest)

    def keep(self, window: Window, piece: bytes) -> None:
        """Store the piece of a window; a window whose piece exists is not scored again."""
        if window.rejects:
            lines = [json.dumps(reject.to_dict(), ensure_ascii=False, default=str) for reject in window.rejects]
            write_whole(self._folder / f"{window.number:06d}.rejects", "\n".join(lines) + "\n")
        with draft(self._folder / f"{window.number:06d}-{window.read}-{window.digest}") as path:
            path.write_bytes(piece)

    def finish(self, sink: Sink) -> Tally:
        """Join all pieces to the output, atomically."""
        rows = self.position().rows
        sink.join(self.pieces(), self._folder / WHOLE)
        rejected = self._join_rejects(self._folder / REJECTS)
        if self._record.state == READING:
            self._check_free(resume=False)  # the output may have been created while the job ran
            self._enter(WRITING)
        if rejected:
            (self._folder / REJECTS).replace(self._rejects)
        else:
            self._rejects.unlink(missing_ok=True)  # that of the replaced output
        (self._folder / WHOLE).replace(self._out)
        self._enter(DONE)  # before pieces are removed: if killed then, the rest must not be resumed
        self._remove()
        return Tally(rows, rejected, self._rejects if rejected else None)

    def _enter(self, state: str) -> None:
        self._record = replace(self._record, state=state)
        self._record.write(self._folder)

    def _join_rejects(self, target: Path) -> int:
        """Join the lists of rejected rows in constant memory, and return their number."""
        count = 0
        with target.open("wb") as joined:
            for path in sorted(self._folder.glob("*.rejects"), key=lambda path: int(path.stem)):
                with path.open("rb") as part:
                    count += sum(1 for _ in part)
                    part.seek(0)
                    shutil.copyfileobj(part, joined)
        return count

    def pieces(self) -> list[Path]:
        """Return the complete pieces, in order."""
        found = [path for path in self._folder.iterdir() if _PIECE.fullmatch(path.name)]
        return sorted(found, key=lambda path: int(path.name.partition("-")[0]))

    def _remove_pieces(self) -> None:
        for path in self._folder.iterdir():
            if _OURS.fullmatch(path.name):
                path.unlink()

    def _remove(self) -> None:
        """Remove the files of the job, the mark last; other files are kept."""
        self._remove_pieces()
        (self._folder / JOB_FILE).unlink(missing_ok=True)
        self._lock.remove()
        with suppress(OSError):
            self._folder.rmdir()


def _is_list_of_rejects(path: Path) -> bool:
    """Return whether a file is a list of rejected rows, by its first line."""
    if not path.is_file():  # reading a named pipe would never end
        return False
    try:
        with path.open(encoding="utf-8") as file:
            first = json.loads(file.readline(_LONGEST_REJECT))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(first, dict) and set(Reject(0, "").to_dict()) <= set(first) <= set(Reject.__dataclass_fields__)
