"""Scoring of windows: repeated texts are scored once, texts of equal length together; the order of rows is kept."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from emoglot.batch.columns import Values, added_values
from emoglot.concurrency import available_cores, in_order, worker_errors, worker_number, worker_pool
from emoglot.inference.prediction import Analysis
from emoglot.model import Model, load
from emoglot.text.arguments import Languages, check_languages
from emoglot.text.language_names import known_language

if TYPE_CHECKING:
    from emoglot.batch.window import Window

THREADS = 2  # per process: a third would gain little, since much of the work is done in Python


@dataclass(frozen=True)
class ModelSource:
    """The location of a model and the options for its labels, which are passed to worker processes."""

    folder: Path | None
    encoder: str | None
    language: str | None
    language_column: str | None
    precision: float | None = None
    recall: float | None = None

    def load(self) -> Model:
        """Load the model."""
        return load(self.folder, encoder=self.encoder)

    def languages(self, window: Window) -> str | list[str | None] | None:
        """Return one language for all texts, or one for each; None where it is to be recognised.

        Rows whose cell names no language use `language`.
        """
        if self.language_column is None:
            return self.language
        return [known_language(cell) or self.language for cell in window.column(self.language_column)]


def analyse_once(model: Model, texts: Sequence[str], language: Languages) -> Analysis:
    """Analyse texts: duplicates once, and texts of equal length together."""
    codes = check_languages(language, len(texts))
    rows = list(zip(texts, codes, strict=True)) if isinstance(codes, list) else [(text, codes) for text in texts]
    # The same order in every run.
    different = sorted(set(rows), key=lambda row: (len(row[0]), row[0], row[1] or ""))
    analysis = model.analyse([text for text, _ in different], [code for _, code in different])
    place = {row: index for index, row in enumerate(different)}
    return analysis.take([place[row] for row in rows])


def score_texts(
    model: Model,
    texts: Sequence[str],
    language: Languages = None,
    precision: float | None = None,
    recall: float | None = None,
) -> Values:
    """Score texts and return the columns to add."""
    analysis = analyse_once(model, texts, language)
    return added_values(analysis, model.choose(analysis, precision=precision, recall=recall), model.labels)


def score_windows(
    windows: Iterator[Window], model: ModelSource, loaded: Model, jobs: int
) -> Iterator[tuple[Window, Values]]:
    """Score windows in order, in this process with the loaded model or in several processes that load their own."""
    arguments = model.precision, model.recall
    if jobs == 1:
        for window in windows:
            yield window, score_texts(loaded, window.texts, model.languages(window), *arguments)
        return
    way_out = "use fewer --jobs, and --resume if the output is a file"
    with worker_errors(way_out), worker_pool(jobs, lambda news: None, _prepare, model) as submit:
        # One more than there are workers, so that no worker waits for input.
        yield from in_order(
            lambda window: submit(score_texts, window.texts, model.languages(window), *arguments), windows, ahead=jobs
        )


def default_jobs() -> int:
    """Return the number of processes that uses all cores."""
    return max(1, len(available_cores()) // THREADS)


def _prepare(model: ModelSource) -> Model:
    """Load the model in a worker process, pinned to its own cores."""
    first = worker_number() * THREADS
    own = available_cores()[first : first + THREADS]
    if own and hasattr(os, "sched_setaffinity"):  # only Linux has it
        os.sched_setaffinity(0, own)
    return model.load()
