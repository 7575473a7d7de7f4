"""Chooses thresholds anew for a trained model: for each language of some labelled data, or for all together."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from emoglot.data.dataset import NO_LANGUAGE, Dataset
from emoglot.errors import DataError
from emoglot.model import EmotionClassifier
from emoglot.persist import ModelState
from emoglot.thresholds import choose_thresholds

# A label's threshold is only chosen anew where so many texts carry it.
ENOUGH_POSITIVES = 5
# For the thresholds of a language, the rows of all others weigh as much as this many of its own: a label that is rare
# in it is decided by the others, a common one by itself. On BRIGHTER, 30 to 400 do equally well, half a point of
# macro-F1 better than the language's own rows alone.
OTHERS_WEIGH = 100


def calibrate(model: EmotionClassifier, data: Dataset, *, pooled: bool = False) -> EmotionClassifier:
    """Give a model whose thresholds fit the data: those of each language in it, or with `pooled` those for any text.

    Rows without a language choose those for any text, too.
    """
    rows = data.with_labels(model.labels_).annotated()
    if not len(rows):
        raise DataError(f"no row is annotated with any of the model's labels ({', '.join(model.labels_)})")
    state, scores = model.state, model.predict_proba(rows.texts)
    # A text that the model can't read scores 0, which says nothing about where a threshold should be.
    readable = np.flatnonzero(scores.any(axis=1))
    rows, scores = rows.select(readable), scores[readable]
    if not len(rows):
        raise DataError("the model's encoder reads none of the annotated texts: no threshold can be chosen on them")
    if pooled:
        return model.with_state(replace(state, thresholds=_choose(scores, rows, np.arange(len(rows)), state)))
    chosen = dict(state.language_thresholds)
    for language in sorted(set(rows.languages)):
        is_own = np.array([code == language for code in rows.languages])
        own, others = np.flatnonzero(is_own), np.flatnonzero(~is_own)
        repeats = max(1, round(len(others) / OTHERS_WEIGH))
        chosen[language] = _choose(scores, rows, np.concatenate([np.repeat(own, repeats), others]), state)
    # A text of which nobody says the language is cut by the thresholds for any text.
    thresholds = chosen.pop(NO_LANGUAGE, state.thresholds)
    return model.with_state(replace(state, thresholds=thresholds, language_thresholds=chosen))


def _choose(
    scores: NDArray[np.float32], rows: Dataset, chosen: NDArray[np.int64], state: ModelState
) -> NDArray[np.float64]:
    """Choose the thresholds on these rows, of which some may be there several times; rare labels keep the model's."""
    is_common = (rows.targets == 1).sum(axis=0) >= ENOUGH_POSITIVES
    return np.where(is_common, choose_thresholds(scores[chosen], rows.targets[chosen]), state.thresholds)
