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
from emoglot.batch.job import INPUT, Job, Tally
from emoglot.batch.scoring import Model, score_texts, score_windows
from emoglot.batch.sink import Sink
from emoglot.batch.source import Columns, Source, Window, open_source
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
            return _stream(scoring, on_window)
        job = Job(Path(target), _identity(name, source_format, target_format, columns, model, prefix))
        job.begin(resume=resume, overwrite=overwrite)
        with job.kept_if_it_can_go_on():
            number, read = job.position()
            for first in job.pieces()[:1]:
                sink.settle_as(first)
            for window, piece in scoring.pieces(read, number):
                job.keep(window, piece)
                on_window(window, source)
            return job.finish(sink)


@dataclass(frozen=True)
class _Scoring:
    """A source whose windows are scored into pieces for a sink."""

    source: Source
    sink: Sink
    model: Model
    loaded: EmotionClassifier
    jobs: int

    def pieces(self, skip: int = 0, number: int = 0) -> Iterator[tuple[Window, bytes]]:
        """Yield each window after the first `skip` rows with its piece; a file without rows still gets its header."""
        is_empty = number == 0
        windows = self.source.windows(skip, number)
        for window, scored in score_windows(windows, self.model, self.loaded, self.jobs):
            is_empty = False
            yield window, self.sink.encode(window, scored)
        if is_empty:
            yield Window(0), self.sink.encode(Window(0), score_texts(self.loaded, []))


def _stream(scoring: _Scoring, on_window: OnWindow) -> Tally:
    """Write to standard output as we go; there, nothing can be taken back."""
    rows = rejected = 0
    for window, piece in scoring.pieces():
        sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
        on_window(window, scoring.source)
        rows, rejected = window.read, rejected + len(window.rejects)
    return Tally(rows, rejected, None)


def _identity(
    name: str, source_format: Format, target_format: Format, columns: Columns, model: Model, prefix: str
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
    if name != STANDARD:
        found = Path(name).stat()
        facts[INPUT] = [str(Path(name).resolve()), found.st_size, found.st_mtime_ns]
    return facts
