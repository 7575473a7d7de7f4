"""The quality of a model as its folder records it; `emoglot.evaluation.metrics` computes it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ClassMetrics:
    """The metrics of one label; `support` is the number of rows that have it."""

    precision: float
    recall: float
    f1: float
    support: int


@dataclass(frozen=True)
class Metrics:
    """The metrics of a set of rows; `per_class` lacks labels that no row annotates."""

    macro_f1: float
    micro_f1: float
    jaccard: float
    rows: int
    per_class: dict[str, ClassMetrics]


@dataclass(frozen=True)
class Evaluation:
    """The metrics of a dataset as a whole and of each of its languages."""

    overall: Metrics
    languages: dict[str, Metrics]
