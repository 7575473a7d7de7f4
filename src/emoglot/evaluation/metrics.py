"""Macro-F1, micro-F1 and Jaccard over the labels that a row annotates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emoglot.errors import DataError
from emoglot.inference.metrics import ClassMetrics, Evaluation, Metrics
from emoglot.labels import UNKNOWN, Targets


def evaluate_languages(
    targets: Targets, predicted: NDArray[np.bool_], labels: Sequence[str], languages: Sequence[str]
) -> Evaluation:
    """Return the metrics of decisions, overall and per language."""
    codes = np.array(languages)
    by_language = {str(code): codes == code for code in np.unique(codes)}
    return Evaluation(
        overall=evaluate(targets, predicted, labels),
        languages={code: evaluate(targets[rows], predicted[rows], labels) for code, rows in by_language.items()},
    )


def evaluate(targets: Targets, predicted: NDArray[np.bool_], labels: Sequence[str]) -> Metrics:
    """Return the metrics of decisions; unknown targets are ignored."""
    if targets.shape != predicted.shape or targets.shape[1:] != (len(labels),):
        raise DataError(
            f"targets and predictions must share the shape (rows, {len(labels)}), "
            f"got {targets.shape} and {predicted.shape}"
        )
    known = targets != UNKNOWN
    annotated = known.any(axis=1)
    if not annotated.any():
        raise DataError("metrics need at least one row with a known label, got none: does the file have gold labels?")
    gold = targets == 1
    hit = (gold & predicted).sum(axis=0)
    gold_count = gold.sum(axis=0)
    predicted_count = (predicted & known).sum(axis=0)
    f1 = _ratio(2 * hit, gold_count + predicted_count)
    precision, recall = _ratio(hit, predicted_count), _ratio(hit, gold_count)
    scored = known.any(axis=0)  # a label without annotations has no F1
    return Metrics(
        macro_f1=float(f1[scored].mean()),
        micro_f1=float(_ratio(2 * hit.sum(), gold_count.sum() + predicted_count.sum())),
        jaccard=float(_jaccard(gold, predicted & known)[annotated].mean()),
        rows=int(annotated.sum()),
        per_class={
            name: ClassMetrics(float(precision[a]), float(recall[a]), float(f1[a]), int(gold_count[a]))
            for a, name in enumerate(labels)
            if scored[a]
        },
    )


def macro_f1(targets: Targets, predicted: NDArray[np.bool_]) -> float:
    """Return macro-F1 alone."""
    return evaluate(targets, predicted, [str(a) for a in range(targets.shape[1])]).macro_f1


def _jaccard(gold: NDArray[np.bool_], predicted: NDArray[np.bool_]) -> NDArray[np.float64]:
    union = (gold | predicted).sum(axis=1)
    # No gold label and no predicted label is a perfect match.
    return np.where(union == 0, 1.0, _ratio((gold & predicted).sum(axis=1), union))


def _ratio(numerator: Any, denominator: Any) -> NDArray[np.float64]:
    """Return a quotient, 0 where the denominator is 0."""
    return np.asarray(numerator / np.maximum(denominator, 1), dtype=np.float64)


def cohen_kappa(first: NDArray[np.bool_], second: NDArray[np.bool_]) -> float:
    """Return the share of equal decisions (rows, labels) corrected for chance; 0 if there is nothing to correct."""
    same = (first == second).mean(axis=0)
    shares = first.mean(axis=0), second.mean(axis=0)
    by_chance = shares[0] * shares[1] + (1 - shares[0]) * (1 - shares[1])
    possible = (1 - by_chance).sum()
    return float((same - by_chance).sum() / possible) if possible else 0.0
