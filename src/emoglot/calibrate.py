"""Chooses thresholds anew for a trained model: for each language of some labelled data, or for all together."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from emoglot.data.dataset import Dataset
from emoglot.errors import DataError
from emoglot.model import EmotionClassifier
from emoglot.thresholds import choose_thresholds

# A language chooses a label's threshold itself when it has so many texts with that label. On BRIGHTER, asking for ten
# cost half a point of macro-F1: even few texts of a language tell more than many of others.
ENOUGH_POSITIVES = 5


def calibrate(model: EmotionClassifier, data: Dataset, *, pooled: bool = False) -> EmotionClassifier:
    """Give a model whose thresholds fit the data: those of each language in it, or with `pooled` those for any text."""
    rows = data.with_labels(model.labels_).annotated()
    if not len(rows):
        raise DataError(f"no row is annotated with any of the model's labels ({', '.join(model.labels_)})")
    state, scores = model.state, model.predict_proba(rows.texts)
    # A text that the model can't read scores 0, which says nothing about where a threshold should be.
    readable = np.flatnonzero(scores.any(axis=1))
    rows, scores = rows.select(readable), scores[readable]
    if not len(rows):
        raise DataError("the model's encoder reads none of the annotated texts: no threshold can be chosen on them")
    together = _where_enough(scores, rows, state.thresholds)
    if pooled:
        return model.with_state(replace(state, thresholds=together))
    chosen = dict(state.language_thresholds)
    for language in sorted(set(rows.languages)):
        own = np.flatnonzero([code == language for code in rows.languages])
        chosen[language] = _where_enough(scores[own], rows.select(own), together)
    return model.with_state(replace(state, language_thresholds=chosen))


def _where_enough(scores: NDArray[np.float32], rows: Dataset, otherwise: NDArray[np.float64]) -> NDArray[np.float64]:
    """Choose the thresholds of the labels that occur often enough."""
    positives = (rows.targets == 1).sum(axis=0)
    return np.where(positives >= ENOUGH_POSITIVES, choose_thresholds(scores, rows.targets), otherwise)
