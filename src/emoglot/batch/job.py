"""A job: a file is read in windows, each is scored and kept as a piece, and the pieces become the output.

OUT.parts/            while the job runs; killed at any moment, it goes on from here
├── job.json          what is being done: a job goes on only as it began
├── 000000-8192       the first piece: the rows read up to its end
├── 000000.rejects    the rows of that window which could not be scored
└── …
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from emoglot.batch.sink import Sink
from emoglot.batch.source import Window
from emoglot.errors import UsageError
from emoglot.files import write_whole

JOB_FILE = "job.json"
INPUT = "input"  # the file that is read, in what is said of a job: without one, it comes through a pipe
REJECTS_SUFFIX = ".rejects.jsonl"


@dataclass(frozen=True)
class Tally:
    """What a job came to."""

    rows: int
    rejected: int
    rejects: Path | None


def parts_folder(out: Path) -> Path:
    """Name the folder of pieces of an output."""
    return out.with_name(f"{out.name}.parts")


class Job:
    """The pieces of one output."""

    def __init__(self, out: Path, identity: dict[str, Any]) -> None:
        self._out = out
        self._folder = parts_folder(out)
        self._identity = identity

    def begin(self, *, resume: bool, overwrite: bool) -> None:
        """Take the folder of pieces, refusing to mix two jobs or to lose anything."""
        record = self._folder / JOB_FILE
        shutil.rmtree(self._folder.with_name(f"{self._folder.name}.done"), ignore_errors=True)
        if self._folder.exists():
            found = json.loads(record.read_text(encoding="utf-8")) if record.is_file() else None
            if not resume:
                way = "go on with --resume, or delete it" if found and INPUT in found else "delete it"
                raise UsageError(f"{self._folder} holds an unfinished job: {way}")
            if found is not None and found != self._identity:
                changed = [name for name, value in self._identity.items() if found.get(name) != value]
                raise UsageError(f"{self._folder} holds another job, with another {' and '.join(changed)}: delete it")
        elif self._out.exists() and not self._out.is_file():
            raise UsageError(f"{self._out} is no file that could be replaced: give another name, or - for stdout")
        elif self._out.exists() and not overwrite:
            if resume:
                raise UsageError(f"{self._out} is complete: there is nothing to resume")
            raise UsageError(f"{self._out} exists already: give another name, or --overwrite to replace it")
        self._folder.mkdir(parents=True, exist_ok=True)
        write_whole(record, json.dumps(self._identity))

    @contextmanager
    def kept_if_it_can_go_on(self) -> Iterator[None]:
        """Leave no folder behind from which no job can go on: one of a pipe, or that failed at its first rows."""
        try:
            yield
        except BaseException as error:
            if INPUT not in self._identity or (isinstance(error, Exception) and not self.pieces()):
                shutil.rmtree(self._folder, ignore_errors=True)
            raise

    def position(self) -> tuple[int, int]:
        """Say how many pieces there are, and how many rows they are made of."""
        pieces = self.pieces()
        return len(pieces), int(pieces[-1].name.partition("-")[2]) if pieces else 0

    def keep(self, window: Window, piece: bytes) -> None:
        """Keep the piece of a window; once its file is there, it is never made again."""
        if window.rejects:
            lines = [json.dumps(asdict(reject), ensure_ascii=False, default=str) for reject in window.rejects]
            write_whole(self._folder / f"{window.number:06d}.rejects", "\n".join(lines) + "\n")
        path = self._folder / f"{window.number:06d}-{window.read}"
        draft = self._folder / "draft"
        draft.write_bytes(piece)
        draft.replace(path)

    def finish(self, sink: Sink) -> Tally:
        """Make the output of all pieces, which appears whole or not at all."""
        draft = self._folder / "whole"
        sink.join(self.pieces(), draft)
        rejects = self._out.with_name(f"{self._out.name}{REJECTS_SUFFIX}")
        rejected = self._join_rejects(rejects)
        _, rows = self.position()
        draft.replace(self._out)
        # Renamed first: killed while the pieces are deleted, nobody must take those that are left for a job.
        done = self._folder.rename(self._folder.with_name(f"{self._folder.name}.done"))
        shutil.rmtree(done)
        return Tally(rows, rejected, rejects if rejected else None)

    def _join_rejects(self, target: Path) -> int:
        found = sorted(self._folder.glob("*.rejects"))
        target.unlink(missing_ok=True)
        if not found:
            return 0
        text = "".join(path.read_text(encoding="utf-8") for path in found)
        write_whole(target, text)
        return text.count("\n")

    def pieces(self) -> list[Path]:
        """List the pieces that are safe."""
        return sorted(self._folder.glob("[0-9]*-[0-9]*"))
