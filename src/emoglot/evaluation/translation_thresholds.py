"""Matches the thresholds for any text to languages without labelled data, by translations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from emoglot.data.parallel import Parallel
from emoglot.errors import DataError
from emoglot.inference.head import logit, sigmoid
from emoglot.inference.thresholds import NEVER
from emoglot.model import Model
from emoglot.text.language_names import ANY, known_language

LEAST_PAIRS = 50  # of a language: the spread of fewer logits is too uncertain
MOST_PAIRS = 400  # of a language: more change little
# The thresholds for any text weigh as much as this many pairs.
ANY_WEIGHS = 50
# Words, lists and strings of interfaces hardly carry emotions, so they do not show how a language expresses them.
LEAST_WORDS = 4
# More extreme scores are noise, and would dominate the spread.
SCORES_BETWEEN = (1e-3, 1 - 1e-3)


def match_thresholds(model: Model, parallel: Parallel) -> Model:
    """Return a model with thresholds for the languages of translations, which must not be trained on.

    The scores of a sentence in a language that a model knows less vary less, so that fewer reach a threshold. The
    thresholds of a language are therefore those for any text, moved from the mean and spread of the logits of English
    sentences to those of their translations.
    """
    pairs = _long_held_out(parallel).draw(MOST_PAIRS)
    languages = np.array(pairs.languages)
    english, translated = (model.analyse(texts, ANY) for texts in (pairs.english, pairs.texts))
    is_read = english.is_read[pairs.english_of] & translated.is_read
    found = {}
    for language in np.unique(languages).tolist():
        own = np.flatnonzero((languages == language) & is_read)
        if len(own) >= LEAST_PAIRS:
            scores = english.scores[pairs.english_of[own]], translated.scores[own]
            # By the code that predictions look up: "de" for a file "deu.tsv".
            found[known_language(language) or language] = move_thresholds(model.state.thresholds, *scores)
    if not found:
        raise DataError(
            f"a language needs {LEAST_PAIRS} pairs with at least {LEAST_WORDS} English words, of the one English "
            "sentence in 32 that is held out from training, got fewer: use more translations"
        )
    return model.with_state(replace(model.state, matched_thresholds={**model.state.matched_thresholds, **found}))


def move_thresholds(
    thresholds: NDArray[np.float64], english: NDArray[np.float32], translated: NDArray[np.float32]
) -> NDArray[np.float64]:
    """Return thresholds for translations, given the scores of sentences and of their translations (pairs, labels)."""
    before, after = logit(english, *SCORES_BETWEEN), logit(translated, *SCORES_BETWEEN)
    spread = before.std(axis=0)
    scale = np.where(spread > 0, after.std(axis=0) / np.where(spread > 0, spread, 1), 1)
    cut = logit(np.where(thresholds == NEVER, 0.5, thresholds), *SCORES_BETWEEN)
    moved = after.mean(axis=0) + scale * (cut - before.mean(axis=0))
    share = len(english) / (len(english) + ANY_WEIGHS)
    return np.where(thresholds == NEVER, NEVER, sigmoid(share * moved + (1 - share) * cut))


def _long_held_out(parallel: Parallel) -> Parallel:
    """Return the held-out sentences that have enough words."""
    _, held_out = parallel.split()
    is_long = np.array([len(text.split()) >= LEAST_WORDS for text in held_out.english], dtype=bool)
    return held_out.select(np.flatnonzero(is_long[held_out.english_of]))
