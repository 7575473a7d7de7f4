"""Scores windows: repeated texts once, texts of one length together, results in the order of the rows."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from emoglot.lanes import available_cores, in_order
from emoglot.model import EmotionClassifier, load
from emoglot.workers import worker_number, worker_pool

if TYPE_CHECKING:
    from emoglot.batch.source import Window

THREADS = 2  # of a process: a third has little left to do, as much of the work on a text is Python's

Scored = tuple["Window", NDArray[np.float32], NDArray[np.bool_]]


@dataclass(frozen=True)
class Model:
    """Where a model is, and how its labels are to be chosen: enough for another process."""

    folder: Path | None
    encoder: str | None
    language: str | None
    language_column: str | None

    def load(self) -> EmotionClassifier:
        """Load it."""
        return load(self.folder, encoder=self.encoder)

    def languages(self, window: Window) -> str | list[str] | None:
        """Give the language of all texts, or of each."""
        if self.language_column is None:
            return self.language
        return [code if isinstance(code, str) else "" for code in window.column(self.language_column)]


def score_texts(model: EmotionClassifier, texts: Sequence[str]) -> NDArray[np.float32]:
    """Give the scores of texts (texts, labels): each different text is scored once, in the company of its length."""
    different = sorted(set(texts), key=lambda text: (len(text), text))  # the same order in every run
    scores = model.predict_proba(different)
    row_of = {text: row for row, text in enumerate(different)}
    return scores[[row_of[text] for text in texts]] if texts else scores


def score_windows(windows: Iterator[Window], model: Model, jobs: int) -> Iterator[Scored]:
    """Score windows in their order, in this process or in several."""
    if jobs == 1:
        classifier = model.load()
        for window in windows:
            yield window, *_score(classifier, window.texts, model.languages(window))
        return
    with worker_pool(jobs, lambda news: None, _prepare, model) as submit:
        # One more than can be worked on, so that nobody waits for reading.
        for window, scored in in_order(
            lambda window: submit(_score, window.texts, model.languages(window)), windows, ahead=jobs
        ):
            yield window, *scored


def default_jobs() -> int:
    """Give as many processes as keep all cores busy."""
    return max(1, len(available_cores()) // THREADS)


def _prepare(model: Model) -> EmotionClassifier:
    """Load the model in a worker that keeps to cores of its own."""
    first = worker_number() * THREADS
    if own := available_cores()[first : first + THREADS]:
        os.sched_setaffinity(0, own)
    return model.load()


def _score(
    model: EmotionClassifier, texts: Sequence[str], language: str | list[str] | None
) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    scores = score_texts(model, texts)
    return scores, model.decide(scores, language)
