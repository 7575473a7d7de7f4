"""Scoring of files: a job that combines source, model and sink, and can be killed and resumed."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from emoglot.batch.columns import added_columns
from emoglot.batch.job import INPUT, Job, Tally, rejects_of
from emoglot.batch.scoring import ModelSource, score_texts, score_windows
from emoglot.batch.sink import Sink, make_sink
from emoglot.batch.source import Source, open_source
from emoglot.batch.window import InputColumns, Position, Window
from emoglot.data.formats import CSV, STANDARD, TSV, Format
from emoglot.data.streams import Reading
from emoglot.encoders.registry import BUNDLED_MODEL
from emoglot.errors import UsageError
from emoglot.inference.description import DESCRIPTION_FILE
from emoglot.inference.hub import find_model
from emoglot.model import Model

OnWindow = Callable[[Window, Source], None]


def score_file(
    names: str | Sequence[str],
    target: str,
    target_format: Format,
    columns: InputColumns,
    model: ModelSource,
    *,
    reading: Reading = Reading(),  # noqa: B008 - it is frozen
    prefix: str = "",
    jobs: int = 1,
    resume: bool = False,
    overwrite: bool = False,
    make_folders: bool = False,
    on_window: OnWindow = lambda window, source: None,
) -> Tally:
    """Score the texts of files, or of the files in folders, into one file; `-` is standard input or output."""
    names = [names] if isinstance(names, str) else list(names)
    if target != STANDARD:
        _check_folder(Path(target), make=make_folders)
    with open_source(names, reading, columns) as source:
        if resume and (source.is_pipe or target == STANDARD):
            raise UsageError("--resume needs files, got a pipe, which cannot be read again: use files")
        loaded = model.load()
        sink = make_sink(target_format, added_columns(loaded, prefix))
        # Only CSV and TSV need all columns beforehand: JSONL has none, and Parquet needs their types too.
        columns_known = source.find_columns() if target_format.kind in (CSV, TSV) else source.columns
        sink.settle(columns_known, source.schema)
        scoring = _Scoring(source, sink, model, loaded, jobs)
        if target == STANDARD:
            return _stream(scoring, on_window)
        _check_other_file(source.files, target)
        job = Job(Path(target), _identity(scoring, reading, columns, prefix))
        with job.begun(resume=resume, overwrite=overwrite):
            for first in job.pieces()[:1]:
                sink.settle_as(first)
            for window, piece in scoring.pieces(job.position()):
                job.keep(window, piece)
                on_window(window, source)
            return job.finish(sink)


def _check_folder(target: Path, *, make: bool) -> None:
    """Raise UsageError if the folder of the output is missing and may not be created."""
    if make:
        target.parent.mkdir(parents=True, exist_ok=True)
    elif not target.parent.is_dir():
        raise UsageError(
            f"the folder of OUT must exist, {target.parent} does not: create it, check the name, or use --make-folders"
        )


@dataclass(frozen=True)
class _Scoring:
    """A source whose windows are scored into pieces for a sink."""

    source: Source
    sink: Sink
    model: ModelSource
    loaded: Model
    jobs: int

    def pieces(self, begin: Position) -> Iterator[tuple[Window, bytes]]:
        """Yield each window after a position with its piece; a file without rows still has a header."""
        is_empty = begin.windows == 0
        windows = self.source.windows(begin)
        for window, scored in score_windows(windows, self.model, self.loaded, self.jobs):
            is_empty = False
            yield window, self.sink.encode(window, scored)
        if is_empty:
            yield Window(0), self.sink.encode(Window(0), score_texts(self.loaded, []))


def _check_other_file(names: Sequence[str], target: str) -> None:
    """Raise UsageError if the output is an input: rejected rows would be lost, and no killed job could be resumed."""
    for taken in (Path(target), rejects_of(Path(target))):
        for name in names:
            if name != STANDARD and taken.exists() and taken.samefile(name):
                raise UsageError(f"the output must differ from the input, got {name} for both: choose another name")


def _stream(scoring: _Scoring, on_window: OnWindow) -> Tally:
    """Write windows to standard output as they are scored."""
    rejected, end = 0, Position()
    for window, piece in scoring.pieces(end):
        sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
        on_window(window, scoring.source)
        rejected, end = rejected + len(window.rejects), window.end
    return Tally(end.rows, rejected, None)


def _identity(scoring: _Scoring, reading: Reading, columns: InputColumns, prefix: str) -> dict[str, Any]:
    """Return what must not change while a job is unfinished, under names that users know."""
    model, written = scoring.model, scoring.sink.format
    description = find_model(model.folder or BUNDLED_MODEL) / DESCRIPTION_FILE
    facts: dict[str, Any] = {
        "model": hashlib.sha256(description.read_bytes()).hexdigest(),
        "encoder": scoring.loaded.encoder.fingerprint,
        "language": [model.language, model.language_column],
        "strictness": [model.precision, model.recall],
        "columns": [columns.text, columns.id, prefix],
        "format": [reading.kind, reading.encoding, reading.delimiter, written.kind, written.compression],
    }
    if not scoring.source.is_pipe:
        facts[INPUT] = scoring.source.identity
    return facts
