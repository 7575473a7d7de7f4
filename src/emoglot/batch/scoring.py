"""Scoring of windows: repeated texts once, texts of one length together, results in the order of the rows."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from emoglot.batch.columns import Scored
from emoglot.concurrency import available_cores, in_order, worker_errors, worker_number, worker_pool
from emoglot.inference.prediction import Analysis
from emoglot.model import Model, load
from emoglot.text.arguments import Languages, check_languages
from emoglot.text.language_names import known_language

if TYPE_CHECKING:
    from emoglot.batch.window import Window

THREADS = 2  # of a process: a third has little left to do, as much of the work on a text is Python's


@dataclass(frozen=True)
class ModelSource:
    """Where a model is, and how its labels are to be chosen: enough for another process."""

    folder: Path | None
    encoder: str | None
    language: str | None
    language_column: str | None
    precision: float | None = None
    recall: float | None = None

    def load(self) -> Model:
        """Load it."""
        return load(self.folder, encoder=self.encoder)

    def languages(self, window: Window) -> str | list[str | None] | None:
        """Return the language of all texts, or of each; None where it is to be recognised.

        A cell of the column that names no language leaves it to `language`.
        """
        if self.language_column is None:
            return self.language
        return [known_language(cell) or self.language for cell in window.column(self.language_column)]


def analyse_once(model: Model, texts: Sequence[str], language: Languages) -> Analysis:
    """Analyse texts, each different one once, together with those of its length."""
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
) -> Scored:
    """Score texts into the columns that are added to them."""
    analysis = analyse_once(model, texts, language)
    return Scored.of(analysis, model.choose(analysis, precision=precision, recall=recall), model.labels)


def score_windows(
    windows: Iterator[Window], model: ModelSource, loaded: Model, jobs: int
) -> Iterator[tuple[Window, Scored]]:
    """Score windows in their order, in this process with the loaded model, or in several that load their own."""
    arguments = model.precision, model.recall
    if jobs == 1:
        for window in windows:
            yield window, score_texts(loaded, window.texts, model.languages(window), *arguments)
        return
    way_out = "give --resume, if the output is a file, and fewer --jobs"
    with worker_errors(way_out), worker_pool(jobs, lambda news: None, _prepare, model) as submit:
        # One more than can be worked on, so that nobody waits for reading.
        yield from in_order(
            lambda window: submit(score_texts, window.texts, model.languages(window), *arguments), windows, ahead=jobs
        )


def default_jobs() -> int:
    """Return how many processes keep all cores busy."""
    return max(1, len(available_cores()) // THREADS)


def _prepare(model: ModelSource) -> Model:
    """Load the model in a worker that keeps to cores of its own."""
    first = worker_number() * THREADS
    own = available_cores()[first : first + THREADS]
    if own and hasattr(os, "sched_setaffinity"):  # only Linux has it
        os.sched_setaffinity(0, own)
    return model.load()
