"""Scores a file: source, model and sink joined to a job that can be killed and go on."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from emoglot.batch.columns import added_columns
from emoglot.batch.formats import STANDARD, Format
from emoglot.batch.job import INPUT, Job, Tally, rejects_of
from emoglot.batch.scoring import Model, score_texts, score_windows
from emoglot.batch.sink import Sink
from emoglot.batch.source import Columns, Position, Source, Window, check_unchanged, open_source
from emoglot.errors import UsageError
from emoglot.model import EmotionClassifier
from emoglot.persist import DESCRIPTION_FILE

OnWindow = Callable[[Window, Source], None]


def score_file(
    name: str,
    target: str,
    source_format: Format,
    target_format: Format,
    columns: Columns,
    model: Model,
    *,
    prefix: str = "",
    jobs: int = 1,
    resume: bool = False,
    overwrite: bool = False,
    on_window: OnWindow = lambda window, source: None,
) -> Tally:
    """Score the texts of a file into another file; `-` is standard input or output."""
    loaded = model.load()
    sink = Sink(target_format, added_columns(loaded, prefix))
    if resume and STANDARD in (name, target):
        raise UsageError("what goes through a pipe is gone: --resume needs files")
    with open_source(name, source_format, columns) as source:
        if source.schema is not None:
            sink.settle(source.schema)
        scoring = _Scoring(source, sink, model, loaded, jobs)
        if target == STANDARD:
            tally, end = _stream(scoring, on_window)
            check_unchanged(source, source_format, columns, end)
            return tally
        _check_other_file(name, target)
        job = Job(Path(target), _identity(source, source_format, target_format, columns, model, prefix))
        with job.begun(resume=resume, overwrite=overwrite):
            for first in job.pieces()[:1]:
                sink.settle_as(first)
            for window, piece in scoring.pieces(job.position()):
                job.keep(window, piece)
                on_window(window, source)
            check_unchanged(source, source_format, columns, job.position())
            return job.finish(sink)


@dataclass(frozen=True)
class _Scoring:
    """A source whose windows are scored into pieces for a sink."""

    source: Source
    sink: Sink
    model: Model
    loaded: EmotionClassifier
    jobs: int

    def pieces(self, begin: Position) -> Iterator[tuple[Window, bytes]]:
        """Yield each window after a position with its piece; a file without rows still gets its header."""
        is_empty = begin.windows == 0
        windows = self.source.windows(begin)
        for window, scored in score_windows(windows, self.model, self.loaded, self.jobs):
            is_empty = False
            yield window, self.sink.encode(window, scored)
        if is_empty:
            yield Window(0), self.sink.encode(Window(0), score_texts(self.loaded, []))


def _check_other_file(name: str, target: str) -> None:
    """Refuse to replace the input: its rejected rows would be lost, and a killed job could not go on."""
    for taken in (Path(target), rejects_of(Path(target))):
        if name != STANDARD and taken.exists() and taken.samefile(name):
            raise UsageError(f"the output must be another file than the input, got {name} for both: give another name")


def _stream(scoring: _Scoring, on_window: OnWindow) -> tuple[Tally, Position]:
    """Write to standard output as we go; there, nothing can be taken back."""
    rejected, end = 0, Position()
    for window, piece in scoring.pieces(end):
        sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
        on_window(window, scoring.source)
        rejected, end = rejected + len(window.rejects), window.end
    return Tally(end.rows, rejected, None), end


def _identity(
    source: Source, source_format: Format, target_format: Format, columns: Columns, model: Model, prefix: str
) -> dict[str, Any]:
    """Say what must not change while a job is unfinished, under the names by which a user knows it."""
    from emoglot.encoders import EMBEDDED_MODEL

    description = (model.folder or EMBEDDED_MODEL) / DESCRIPTION_FILE
    facts: dict[str, Any] = {
        "model": hashlib.sha256(description.read_bytes()).hexdigest() if description.is_file() else None,
        "language": [model.language, model.language_column],
        "strictness": [model.precision, model.recall],
        "columns": [columns.text, columns.id, prefix],
        "format": [source_format.kind, target_format.kind, target_format.compression],
    }
    if source.watch is not None:
        facts[INPUT] = source.watch.identity
    return facts
