"""Chooses thresholds anew for a trained model: for each language of some labelled data, or for all together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from emoglot.arguments import ANY
from emoglot.data.dataset import NO_LANGUAGE, Dataset
from emoglot.errors import DataError
from emoglot.labels import UNKNOWN, Targets
from emoglot.language.names import known_language
from emoglot.model import EmotionClassifier
from emoglot.persist import DOMAIN_MARK, ModelState
from emoglot.strictness import Strictness, measure_strictness
from emoglot.thresholds import NEVER, apply_thresholds, choose_thresholds

# A label's threshold is only chosen anew where so many texts carry it.
ENOUGH_POSITIVES = 5
# For the thresholds of a language, the rows of all others weigh as much as this many of its own: a label that is rare
# in it is decided by the others, a common one by itself.
OTHERS_WEIGH = 30
# The best threshold of a few rows depends on each of them. The mean over samples drawn from them with replacement does
# less so: on rows that chose nothing it has 1.5 points of macro-F1 more on BRIGHTER, half a point more on E-c.
SAMPLES = 20
# The mean of two peaks may be a valley: below this share of the best F1, the best threshold is taken itself.
VALLEY = 0.75
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
    state, analysis = model.state, model.analyse(rows.texts, ANY)
    # The scores of a text that the model can't read say nothing about where a threshold should be.
    readable = np.flatnonzero(analysis.is_read)
    chooser = _Chooser(rows.select(readable), analysis.scores[readable], state, least_precision)
    if not len(readable):
        raise DataError("the model's encoder reads none of the annotated texts: no threshold can be chosen on them")
    if pooled and domain is None:
        return model.with_state(replace(state, thresholds=chooser.pooled(), strictness=chooser.strictness()))
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
        return self._choose(weights_alike(self.rows.sources))

    def strictness(self) -> Strictness:
        """Measure the thresholds for a wanted precision or recall, on all rows."""
        return measure_strictness(self.scores, self.rows.targets, weights_alike(self.rows.sources))

    def by_language(self, suffix: str) -> dict[str, NDArray[np.float64]]:
        """Choose thresholds for every language of the rows."""
        chosen = {}
        codes = [known_language(code) or NO_LANGUAGE for code in self.rows.languages]
        broader = [code.partition("-")[0] for code in codes]  # "pt" of "pt-BR", as texts are recognised
        for language in sorted({*codes, *broader}):
            is_own = np.array([language in pair for pair in zip(codes, broader, strict=True)])
            others = np.count_nonzero(~is_own)
            weights = np.where(is_own, max(1, round(others / OTHERS_WEIGH)), 1)
            chosen[f"{language}{suffix}"] = self._choose(weights)
        return chosen

    def _choose(self, weights: NDArray[np.int64]) -> NDArray[np.float64]:
        """Choose thresholds on the rows, each as if it were there so many times; rare labels keep the model's."""
        is_common = (self.rows.targets == 1).sum(axis=0) >= ENOUGH_POSITIVES
        found = steady_thresholds(self.scores, self.rows.targets, weights, self.least_precision)
        return np.where(is_common, found, self.state.thresholds)


def weights_alike(sources: Sequence[str]) -> NDArray[np.int64]:
    """Return how often each row counts, so that all datasets weigh about the same."""
    sizes = Counter(sources)
    largest = max(sizes.values())
    return np.array([min(MOST_REPEATS, max(1, round(largest / sizes[source]))) for source in sources])


def steady_thresholds(
    scores: NDArray[np.float32], targets: Targets, weights: NDArray[np.int64], least_precision: float = 0.0
) -> NDArray[np.float64]:
    """Return the mean, in logits, of the thresholds with the highest F1 on samples of weighted rows, label by label.

    A label that is right there less often than `least_precision` gets the threshold with the highest F1 of those that
    are precise enough, or is never given.
    """
    rng = np.random.default_rng(0)
    samples = [rng.integers(len(scores), size=len(scores)) for _ in range(SAMPLES)]
    by_sample = [choose_thresholds(scores[rows], targets[rows]) for rows in (_repeated(s, weights) for s in samples)]
    rows = _repeated(np.arange(len(scores)), weights)
    scores, targets = scores[rows], targets[rows]
    exact = choose_thresholds(scores, targets)
    # A sample may lack a label.
    logits = [_logit(np.where(found == NEVER, exact, found)) for found in by_sample]
    mean = np.where(exact == NEVER, NEVER, 1 / (1 + np.exp(-np.mean(logits, axis=0))))
    is_valley = _f1(scores, targets, mean) < VALLEY * _f1(scores, targets, exact)
    return _precise(np.where(is_valley, exact, mean), scores, targets, least_precision)


def _repeated(rows: NDArray[np.int64], weights: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.asarray(np.repeat(rows, weights[rows]))


def _f1(scores: NDArray[np.float32], targets: Targets, thresholds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the F1 of every label over the rows that annotate it."""
    given = apply_thresholds(scores, thresholds) & (targets != UNKNOWN)
    hits = (given & (targets == 1)).sum(axis=0)
    return np.asarray(2 * hits / np.maximum(1, given.sum(axis=0) + (targets == 1).sum(axis=0)))


def _logit(thresholds: NDArray[np.float64]) -> NDArray[np.float64]:
    # Beyond these, thresholds decide alike, and their logits would decide the mean.
    inside = np.clip(thresholds, 1e-4, 1 - 1e-4)
    return np.asarray(np.log(inside / (1 - inside)))


def _precise(
    found: NDArray[np.float64], scores: NDArray[np.float32], targets: Targets, least_precision: float
) -> NDArray[np.float64]:
    """Raise the thresholds at which a label is right less often than asked for."""
    given = apply_thresholds(scores, found) & (targets != UNKNOWN)
    precision = (given & (targets == 1)).sum(axis=0) / np.maximum(1, given.sum(axis=0))
    raised: NDArray[np.float64] = np.array(found)
    for label in np.flatnonzero(precision < least_precision):
        known = targets[:, label] != UNKNOWN
        raised[label] = _raised(scores[known, label], targets[known, label] == 1, least_precision)
    return raised


def _raised(scores: NDArray[np.float32], positive: NDArray[np.bool_], least_precision: float) -> float:
    """Return the threshold of one label with the highest F1 of those that are precise enough."""
    order = np.argsort(-scores, kind="stable")
    highest_first, hits = scores[order], np.cumsum(positive[order])
    given = np.arange(1, len(order) + 1)
    # Equal scores are given together, so only the last of them is a place to cut.
    is_cut = np.append(highest_first[:-1] != highest_first[1:], True)
    f1 = np.where(is_cut & (hits >= least_precision * given), 2 * hits / (given + positive.sum()), 0)
    return float(highest_first[np.argmax(f1)]) if f1.any() else NEVER
