"""Compares exact thresholds for 1,000,000 rows and 11 labels with scikit-learn's curve for each class.

python -m benchmarks.thresholds
"""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import precision_recall_curve

from emoglot.inference.thresholds import choose_thresholds
from emoglot.labels import Targets

ROWS, LABELS = 1_000_000, 11


def with_sklearn(scores: NDArray[np.float32], targets: Targets) -> NDArray[np.float64]:
    best = []
    for column, target in zip(scores.T, targets.T, strict=True):
        precision, recall, candidates = precision_recall_curve(target, column)
        f1 = 2 * precision * recall / np.maximum(precision + recall, np.finfo(float).tiny)
        best.append(candidates[f1[:-1].argmax()])
    return np.array(best)


def main() -> None:
    random = np.random.default_rng(0)
    scores = random.random((ROWS, LABELS), dtype=np.float32)
    targets = (random.random((ROWS, LABELS)) < 0.4 * scores).astype(np.int8)
    began = time.perf_counter()
    ours = choose_thresholds(scores, targets)
    middle = time.perf_counter()
    theirs = with_sklearn(scores, targets)
    ended = time.perf_counter()
    print(f"emoglot {middle - began:.2f} s, scikit-learn {ended - middle:.2f} s")
    print(f"ratio {(ended - middle) / (middle - began):.1f}, same answer: {np.array_equal(ours, theirs)}")


if __name__ == "__main__":
    main()
