"""Thresholds: exact against brute force and scikit-learn, ties, unknown rows, classes without positives."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from sklearn.metrics import precision_recall_curve

from emoglot.errors import DataError
from emoglot.inference.thresholds import NEVER, apply_thresholds, choose_thresholds, decide


def brute_force(scores: np.ndarray, targets: np.ndarray) -> float:
    """Try every score as a threshold with exact fractions; the smallest of the best."""
    known = targets != -1
    scores, targets = scores[known], targets[known]
    if not (targets == 1).any():
        return NEVER

    def f1(threshold: float) -> Fraction:
        predicted = scores >= threshold
        hits = int((predicted & (targets == 1)).sum())
        return Fraction(2 * hits, int(predicted.sum()) + int((targets == 1).sum()))

    candidates = sorted(set(scores.tolist()))
    best = max(f1(candidate) for candidate in candidates)
    return next(candidate for candidate in candidates if f1(candidate) == best)


# Few distinct values make ties common; the ends of the interval are among them.
tied_scores = st.sampled_from([0.0, 0.125, 0.25, 0.5, 0.75, 1.0])
free_scores = st.floats(0, 1, width=32)


@given(st.data(), st.integers(1, 30), st.integers(1, 4), st.sampled_from([np.float32, np.float64]))
def test_equals_brute_force(data, rows, labels, dtype):
    elements = data.draw(st.sampled_from([tied_scores, free_scores]))
    scores = data.draw(arrays.arrays(dtype, (rows, labels), elements=elements))
    targets = data.draw(arrays.arrays(np.int8, (rows, labels), elements=st.sampled_from([-1, 0, 1])))
    expected = [brute_force(column, target) for column, target in zip(scores.T, targets.T, strict=True)]
    assert choose_thresholds(scores, targets).tolist() == expected


@given(st.data(), st.integers(1, 20), st.integers(1, 3))
def test_a_weight_is_a_number_of_copies(data, rows, labels):
    scores = data.draw(arrays.arrays(np.float32, (rows, labels), elements=tied_scores))
    targets = data.draw(arrays.arrays(np.int8, (rows, labels), elements=st.sampled_from([-1, 0, 1])))
    weights = data.draw(arrays.arrays(np.int64, rows, elements=st.integers(1, 5)))
    copies = np.repeat(np.arange(rows), weights)
    expected = choose_thresholds(scores[copies], targets[copies])
    assert choose_thresholds(scores, targets, weights).tolist() == expected.tolist()


def test_equals_scikit_learn_on_many_rows():
    random = np.random.default_rng(0)
    scores = random.random((20_000, 3), dtype=np.float32).round(3)
    targets = (random.random((20_000, 3)) < scores * 0.4).astype(np.int8)
    for column, chosen in enumerate(choose_thresholds(scores, targets)):
        precision, recall, candidates = precision_recall_curve(targets[:, column], scores[:, column])
        f1 = 2 * precision * recall / np.maximum(precision + recall, 1e-30)
        assert chosen == candidates[f1[:-1].argmax()]


def test_a_class_without_positives_is_never_predicted():
    scores = np.array([[0.9], [1.0]], dtype=np.float32)
    thresholds = choose_thresholds(scores, np.array([[0], [0]], dtype=np.int8))
    assert thresholds.tolist() == [NEVER]
    assert not apply_thresholds(np.ones((1, 1), dtype=np.float32), thresholds).any()


def test_a_text_without_tokens_gets_no_label_even_at_a_threshold_of_zero():
    scores, is_read = np.array([[0.0], [0.1]], dtype=np.float32), np.array([False, True])
    assert decide(scores, np.array([0.0]), is_read, single_label=False).tolist() == [[False], [True]]


def test_identical_scores_share_one_decision():
    scores = np.full((4, 1), 0.3, dtype=np.float32)
    thresholds = choose_thresholds(scores, np.array([[1], [0], [0], [0]], dtype=np.int8))
    assert apply_thresholds(scores, thresholds).all()


def test_single_label_takes_the_highest_and_none_for_a_text_without_tokens():
    scores = np.array([[0.2, 0.1], [0.3, 0.9], [0, 0]], dtype=np.float32)
    chosen = decide(scores, np.array([0.5, 0.5]), np.array([True, True, False]), single_label=True)
    assert chosen.tolist() == [[True, False], [False, True], [False, False]]


@pytest.mark.parametrize(
    ("scores", "targets", "rule"),
    [
        (np.array([[1.7]]), np.array([[1]], dtype=np.int8), r"in \[0, 1\], got 1.7"),
        (np.array([[np.nan]]), np.array([[1]], dtype=np.int8), r"in \[0, 1\]"),
        (np.zeros((0, 2)), np.zeros((0, 2), dtype=np.int8), "at least one row"),
        (np.zeros((2, 2)), np.zeros((2, 3), dtype=np.int8), "share a shape"),
        (np.zeros((2, 2), dtype=np.int64), np.zeros((2, 2), dtype=np.int8), "float32 or float64"),
    ],
)
def test_bad_input_is_refused(scores, targets, rule):
    with pytest.raises(DataError, match=rule):
        choose_thresholds(scores, targets)
