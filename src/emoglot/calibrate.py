"""Chooses thresholds anew for a trained model: for each language of some labelled data, or for all together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from emoglot.data.dataset import NO_LANGUAGE, Dataset
from emoglot.errors import DataError
from emoglot.labels import UNKNOWN, Targets
from emoglot.model import EmotionClassifier
from emoglot.persist import DOMAIN_MARK, ModelState
from emoglot.thresholds import NEVER, apply_thresholds, choose_thresholds

# A label's threshold is only chosen anew where so many texts carry it.
ENOUGH_POSITIVES = 5
# For the thresholds of a language, the rows of all others weigh as much as this many of its own: a label that is rare
# in it is decided by the others, a common one by itself. On BRIGHTER, 30 to 400 do equally well, half a point of
# macro-F1 better than the language's own rows alone.
OTHERS_WEIGH = 100
# Datasets of any size weigh alike in the thresholds for any text, but none of a handful of rows decides them.
MOST_REPEATS = 50


def calibrate(
    model: EmotionClassifier,
    data: Dataset,
    *,
    pooled: bool = False,
    domain: str | None = None,
    least_precision: float = 0.0,
) -> EmotionClassifier:
    """Give a model whose thresholds fit the data: those of each language in it, or with `pooled` those for any text.

    Rows without a language choose those for any text, too. With `pooled` all datasets weigh alike. Thresholds of a
    `domain` are used for texts whose language is given as "en-x-DOMAIN", or "und-x-DOMAIN". A label that would be right
    less often than `least_precision` gets a higher threshold, or is never given, where there are enough rows to tell.
    """
    rows = data.with_labels(model.labels_).annotated()
    if not len(rows):
        raise DataError(f"no row is annotated with any of the model's labels ({', '.join(model.labels_)})")
    state, scores = model.state, model.predict_proba(rows.texts)
    # A text that the model can't read scores 0, which says nothing about where a threshold should be.
    readable = np.flatnonzero(scores.any(axis=1))
    chooser = _Chooser(rows.select(readable), scores[readable], state, least_precision)
    if not len(readable):
        raise DataError("the model's encoder reads none of the annotated texts: no threshold can be chosen on them")
    if pooled and domain is None:
        return model.with_state(replace(state, thresholds=chooser.pooled()))
    suffix = f"{DOMAIN_MARK}{domain}" if domain else ""
    chosen = {f"{NO_LANGUAGE}{suffix}": chooser.pooled()} if pooled else chooser.by_language(suffix)
    # A text of which nobody says the language is cut by the thresholds for any text.
    thresholds = chosen.pop(NO_LANGUAGE, state.thresholds)
    return model.with_state(
        replace(state, thresholds=thresholds, language_thresholds={**state.language_thresholds, **chosen})
    )


@dataclass(frozen=True)
class _Chooser:
    """Annotated rows with their scores, on which thresholds are chosen."""

    rows: Dataset
    scores: NDArray[np.float32]
    state: ModelState
    least_precision: float

    def pooled(self) -> NDArray[np.float64]:
        """Choose thresholds for any text, on all rows."""
        return self._choose(alike(self.rows.sources))

    def by_language(self, suffix: str) -> dict[str, NDArray[np.float64]]:
        """Choose thresholds for every language of the rows."""
        chosen = {}
        for language in sorted(set(self.rows.languages)):
            is_own = np.array([code == language for code in self.rows.languages])
            own, others = np.flatnonzero(is_own), np.flatnonzero(~is_own)
            repeats = max(1, round(len(others) / OTHERS_WEIGH))
            chosen[f"{language}{suffix}"] = self._choose(np.concatenate([np.repeat(own, repeats), others]))
        return chosen

    def _choose(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Choose thresholds on these rows, of which some are there several times; rare labels keep the model's."""
        is_common = (self.rows.targets == 1).sum(axis=0) >= ENOUGH_POSITIVES
        found = precise_thresholds(self.scores[rows], self.rows.targets[rows], self.least_precision)
        return np.where(is_common, found, self.state.thresholds)


def alike(sources: Sequence[str]) -> NDArray[np.int64]:
    """Return the rows of datasets, those of small ones several times, so that all datasets weigh about the same."""
    sizes = Counter(sources)
    largest = max(sizes.values())
    repeats = [min(MOST_REPEATS, max(1, round(largest / sizes[source]))) for source in sources]
    return np.repeat(np.arange(len(sources)), repeats)


def precise_thresholds(scores: NDArray[np.float32], targets: Targets, least_precision: float) -> NDArray[np.float64]:
    """Choose the thresholds with the highest F1 of those at which a label is right as often as asked for.

    A label that no threshold makes so precise is never given.
    """
    found = choose_thresholds(scores, targets)
    given = apply_thresholds(scores, found) & (targets != UNKNOWN)
    precision = (given & (targets == 1)).sum(axis=0) / np.maximum(1, given.sum(axis=0))
    for label in np.flatnonzero(precision < least_precision):
        known = targets[:, label] != UNKNOWN
        found[label] = _raised(scores[known, label], targets[known, label] == 1, least_precision)
    return found


def _raised(scores: NDArray[np.float32], positive: NDArray[np.bool_], least_precision: float) -> float:
    """Return the threshold of one label with the highest F1 of those that are precise enough."""
    order = np.argsort(-scores, kind="stable")
    highest_first, hits = scores[order], np.cumsum(positive[order])
    given = np.arange(1, len(order) + 1)
    # Equal scores are given together, so only the last of them is a place to cut.
    is_cut = np.append(highest_first[:-1] != highest_first[1:], True)
    f1 = np.where(is_cut & (hits >= least_precision * given), 2 * hits / (given + positive.sum()), 0)
    return float(highest_first[np.argmax(f1)]) if f1.any() else NEVER
