"""Scores a file: source, model and sink joined to a job that can be killed and go on."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from emoglot.batch.formats import STANDARD, Format
from emoglot.batch.job import INPUT, Job, Tally
from emoglot.batch.scoring import Model, score_windows
from emoglot.batch.sink import Sink
from emoglot.batch.source import Columns, Source, Window, open_source
from emoglot.errors import UsageError
from emoglot.persist import DESCRIPTION_FILE

OnWindow = Callable[[Window, Source], None]


def score_file(
    name: str,
    target: str,
    source_format: Format,
    target_format: Format,
    columns: Columns,
    model: Model,
    labels: tuple[str, ...],
    *,
    prefix: str = "",
    jobs: int = 1,
    resume: bool = False,
    overwrite: bool = False,
    on_window: OnWindow = lambda window, source: None,
) -> Tally:
    """Score the texts of a file into another file; `-` is standard input or output."""
    sink = Sink(target_format, labels, prefix)
    if resume and STANDARD in (name, target):
        raise UsageError("what goes through a pipe is gone: --resume needs files")
    with open_source(name, source_format, columns) as source:
        if source.schema is not None:
            sink.settle(source.schema)
        if target == STANDARD:
            return _stream(source, sink, model, jobs, on_window)
        job = Job(Path(target), _identity(name, source_format, target_format, columns, model, prefix))
        job.begin(resume=resume, overwrite=overwrite)
        with job.kept_if_it_can_go_on():
            number, read = job.position()
            for first in job.pieces()[:1]:
                sink.settle_as(first)
            for window, piece in _pieces(source.windows(read, number), sink, model, jobs, is_new=number == 0):
                job.keep(window, piece)
                on_window(window, source)
            return job.finish(sink)


def _stream(source: Source, sink: Sink, model: Model, jobs: int, on_window: OnWindow) -> Tally:
    """Write to standard output as we go; there, nothing can be taken back."""
    rows = rejected = 0
    for window, piece in _pieces(source.windows(), sink, model, jobs, is_new=True):
        sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
        on_window(window, source)
        rows, rejected = window.read, rejected + len(window.rejects)
    return Tally(rows, rejected, None)


def _pieces(
    windows: Iterator[Window], sink: Sink, model: Model, jobs: int, *, is_new: bool
) -> Iterator[tuple[Window, bytes]]:
    """Give each window with its piece; a file without rows still gets its header."""
    for window, scores, chosen in score_windows(windows, model, jobs):
        is_new = False
        yield window, sink.encode(window, scores, chosen)
    if is_new:
        (empty,) = score_windows(iter([Window(0)]), model, 1)
        yield empty[0], sink.encode(*empty)


def _identity(
    name: str, source_format: Format, target_format: Format, columns: Columns, model: Model, prefix: str
) -> dict[str, Any]:
    """Say what must not change while a job is unfinished, under the names by which a user knows it."""
    from emoglot.encoders import EMBEDDED_MODEL

    description = (model.folder or EMBEDDED_MODEL) / DESCRIPTION_FILE
    facts: dict[str, Any] = {
        "model": hashlib.sha256(description.read_bytes()).hexdigest() if description.is_file() else None,
        "language": [model.language, model.language_column],
        "columns": [columns.text, columns.id, prefix],
        "format": [source_format.kind, target_format.kind, target_format.compression],
    }
    if name != STANDARD:
        found = Path(name).stat()
        facts[INPUT] = [str(Path(name).resolve()), found.st_size, found.st_mtime_ns]
    return facts
