"""Chooses new thresholds for a trained model on labelled data, per language or for all together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from emoglot.data.dataset import Dataset
from emoglot.errors import DataError
from emoglot.inference.folder import DOMAIN_MARK, ModelState
from emoglot.inference.head import logit
from emoglot.inference.strictness import Strictness, measure_strictness
from emoglot.inference.thresholds import NEVER, apply_thresholds, choose_thresholds
from emoglot.labels import UNKNOWN, Targets
from emoglot.model import Model
from emoglot.text.language_names import ANY, NO_LANGUAGE, known_language

# Positive rows that a label needs for a new threshold.
ENOUGH_POSITIVES = 5
# In the thresholds of a language, the rows of all other languages together weigh as much as this many of its own: they
# decide the labels that are rare in it.
OTHERS_WEIGH = 30
# The thresholds of a language are averaged with those for any text, which have the weight of this many rows: thresholds
# of a few hundred rows vary. On other rows of E-c macro-F1 is the same, micro-F1 and Jaccard are a point higher.
ANY_WEIGHS = 40
# The mean threshold of bootstrap samples varies less than that of a few rows: on other rows macro-F1 is 1.5 points
# higher on BRIGHTER and half a point higher on E-c.
SAMPLES = 20
# More extreme thresholds hardly differ, and would dominate the mean of the logits.
THRESHOLDS_BETWEEN = (1e-4, 1 - 1e-4)
# The mean of two peaks may be a valley: below this share of the best F1, the best threshold is used.
VALLEY = 0.75
# All datasets have the same weight in the thresholds for any text, up to this many repeats of a row.
MOST_REPEATS = 50


def calibrate(
    model: Model,
    data: Dataset,
    *,
    pooled: bool = False,
    domain: str | None = None,
    least_precision: float = 0.0,
) -> Model:
    """Return a model with new thresholds: one set per language of the data, or with `pooled` one for any text.

    Rows without a language also choose the thresholds for any text. With `pooled` all datasets have the same weight.
    Thresholds of a `domain` apply to texts whose language is given as "en-x-DOMAIN" or "und-x-DOMAIN". A label whose
    precision is below `least_precision` gets a higher threshold, or is never predicted.
    """
    rows = data.with_labels(model.labels).annotated()
    if not len(rows):
        raise DataError(
            f"at least one row must be annotated with one of the model's labels ({', '.join(model.labels)}), got none"
        )
    state, analysis = model.state, model.analyse(rows.texts, ANY)
    # Texts that the model cannot read have no scores to choose a threshold by.
    readable = np.flatnonzero(analysis.is_read)
    chooser = _Chooser(rows.select(readable), analysis.scores[readable], state, least_precision)
    if not len(readable):
        raise DataError("thresholds need at least one annotated text that the model can read, got none: use other data")
    if pooled and domain is None:
        return model.with_state(replace(state, thresholds=chooser.pooled(), strictness=chooser.strictness()))
    suffix = f"{DOMAIN_MARK}{domain}" if domain else ""
    chosen = {f"{NO_LANGUAGE}{suffix}": chooser.pooled()} if pooled else chooser.by_language(suffix)
    # Rows without a language choose the thresholds for any text.
    thresholds = chosen.pop(NO_LANGUAGE, state.thresholds)
    return model.with_state(
        replace(state, thresholds=thresholds, language_thresholds={**state.language_thresholds, **chosen})
    )


@dataclass(frozen=True)
class _Chooser:
    """Chooses thresholds on annotated rows with their scores."""

    rows: Dataset
    scores: NDArray[np.float32]
    state: ModelState
    least_precision: float

    def pooled(self) -> NDArray[np.float64]:
        """Return thresholds for any text, chosen on all rows."""
        return self._choose(weights_alike(self.rows.sources))

    def strictness(self) -> Strictness:
        """Return the thresholds for a given precision or recall, measured on all rows."""
        return measure_strictness(self.scores, self.rows.targets, weights_alike(self.rows.sources))

    def by_language(self, suffix: str) -> dict[str, NDArray[np.float64]]:
        """Return thresholds for every language of the rows."""
        chosen = {}
        codes = [known_language(code) or NO_LANGUAGE for code in self.rows.languages]
        broader = [code.partition("-")[0] for code in codes]  # "pt" of "pt-BR", as identification returns it
        for language in sorted({*codes, *broader}):
            is_own = np.array([language in pair for pair in zip(codes, broader, strict=True)])
            found = self._choose(own_weights(is_own))
            if language != NO_LANGUAGE:
                found = towards(found, self.state.thresholds, int(is_own.sum()))
            chosen[f"{language}{suffix}"] = found
        return chosen

    def _choose(self, weights: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return thresholds chosen on weighted rows; rare labels keep those of the model."""
        is_common = (self.rows.targets == 1).sum(axis=0) >= ENOUGH_POSITIVES
        found = steady_thresholds(self.scores, self.rows.targets, weights, self.least_precision)
        return np.where(is_common, found, self.state.thresholds)


def own_weights(is_own: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return weights of the rows with which all others together weigh as much as `OTHERS_WEIGH` own ones."""
    others = np.count_nonzero(~is_own)
    return np.where(is_own, max(1, round(others / OTHERS_WEIGH)), 1)


def towards(own: NDArray[np.float64], anyhow: NDArray[np.float64], rows: int) -> NDArray[np.float64]:
    """Return the mean of thresholds chosen on some rows and those for any text, which weigh as much as `ANY_WEIGHS`.

    A label that is never given in any text has its own threshold.
    """
    return np.where(anyhow == NEVER, own, (rows * own + ANY_WEIGHS * anyhow) / (rows + ANY_WEIGHS))


def weights_alike(sources: Sequence[str]) -> NDArray[np.int64]:
    """Return weights of the rows that give all datasets about the same weight."""
    sizes = Counter(sources)
    largest = max(sizes.values())
    return np.array([min(MOST_REPEATS, max(1, round(largest / sizes[source]))) for source in sources])


def steady_thresholds(
    scores: NDArray[np.float32], targets: Targets, weights: NDArray[np.int64], least_precision: float = 0.0
) -> NDArray[np.float64]:
    """Return the mean, in logits, of the thresholds with the highest F1 on bootstrap samples of weighted rows.

    A label whose precision is below `least_precision` gets the threshold with the highest F1 among those that reach
    it, or is never predicted.
    """
    rng = np.random.default_rng(0)
    by_sample = []
    for _ in range(SAMPLES):
        rows, counts = np.unique(rng.integers(len(scores), size=len(scores)), return_counts=True)
        by_sample.append(choose_thresholds(scores[rows], targets[rows], counts * weights[rows]))
    exact = choose_thresholds(scores, targets, weights)
    # A sample may lack a label.
    logits = [logit(np.where(found == NEVER, exact, found), *THRESHOLDS_BETWEEN) for found in by_sample]
    mean = np.where(exact == NEVER, NEVER, 1 / (1 + np.exp(-np.mean(logits, axis=0))))
    is_valley = _f1(scores, targets, mean, weights) < VALLEY * _f1(scores, targets, exact, weights)
    return _precise(np.where(is_valley, exact, mean), scores, targets, weights, least_precision)


def _f1(
    scores: NDArray[np.float32], targets: Targets, thresholds: NDArray[np.float64], weights: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the F1 of every label over the rows that annotate it."""
    given = apply_thresholds(scores, thresholds) & (targets != UNKNOWN)
    hits, positives = weights @ (given & (targets == 1)), weights @ (targets == 1)
    return np.asarray(2 * hits / np.maximum(1, weights @ given + positives))


def _precise(
    found: NDArray[np.float64],
    scores: NDArray[np.float32],
    targets: Targets,
    weights: NDArray[np.int64],
    least_precision: float,
) -> NDArray[np.float64]:
    """Return thresholds raised where the precision of a label is too low."""
    given = apply_thresholds(scores, found) & (targets != UNKNOWN)
    precision = weights @ (given & (targets == 1)) / np.maximum(1, weights @ given)
    raised: NDArray[np.float64] = np.array(found)
    for label in np.flatnonzero(precision < least_precision):
        known = targets[:, label] != UNKNOWN
        raised[label] = _raised(scores[known, label], targets[known, label] == 1, weights[known], least_precision)
    return raised


def _raised(
    scores: NDArray[np.float32], positive: NDArray[np.bool_], weights: NDArray[np.int64], least_precision: float
) -> float:
    """Return the threshold of one label with the highest F1 among those with the least precision."""
    order = np.argsort(-scores, kind="stable")
    highest_first, hits, given = scores[order], np.cumsum((weights * positive)[order]), np.cumsum(weights[order])
    # Equal scores are predicted together: cut only after the last of them.
    is_cut = np.append(highest_first[:-1] != highest_first[1:], True)
    f1 = np.where(is_cut & (hits >= least_precision * given), 2 * hits / (given + weights @ positive), 0)
    return float(highest_first[np.argmax(f1)]) if f1.any() else NEVER
