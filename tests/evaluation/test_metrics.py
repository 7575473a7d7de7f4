"""Metrics: scikit-learn as the oracle where everything is known, hand-made cases where it is not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from sklearn.metrics import cohen_kappa_score, f1_score, precision_score, recall_score

from emoglot.errors import DataError
from emoglot.evaluation.metrics import cohen_kappa, evaluate, macro_f1

LABELS = ("anger", "joy", "trust")


@given(st.data(), st.integers(1, 25))
def test_equals_scikit_learn_when_everything_is_known(data, rows):
    targets = data.draw(arrays.arrays(np.int8, (rows, 3), elements=st.integers(0, 1)))
    predicted = data.draw(arrays.arrays(np.bool_, (rows, 3)))
    metrics = evaluate(targets, predicted, LABELS)
    assert metrics.macro_f1 == pytest.approx(f1_score(targets, predicted, average="macro", zero_division=0))
    assert metrics.micro_f1 == pytest.approx(f1_score(targets, predicted, average="micro", zero_division=0))
    precision = precision_score(targets, predicted, average=None, zero_division=0)
    recall = recall_score(targets, predicted, average=None, zero_division=0)
    assert [entry.precision for entry in metrics.per_class.values()] == pytest.approx(precision)
    assert [entry.recall for entry in metrics.per_class.values()] == pytest.approx(recall)
    sets = [
        (set(np.flatnonzero(gold)), set(np.flatnonzero(guess))) for gold, guess in zip(targets, predicted, strict=True)
    ]
    jaccard = [len(gold & guess) / len(gold | guess) if gold | guess else 1 for gold, guess in sets]
    assert metrics.jaccard == pytest.approx(np.mean(jaccard))


@given(st.data(), st.integers(1, 15))
def test_what_is_predicted_where_nothing_is_known_changes_nothing(data, rows):
    targets = data.draw(arrays.arrays(np.int8, (rows, 3), elements=st.sampled_from([-1, 0, 1])))
    predicted = data.draw(arrays.arrays(np.bool_, (rows, 3)))
    if not (targets != -1).any():
        return
    other = np.where(targets == -1, ~predicted, predicted)
    assert evaluate(targets, predicted, LABELS) == evaluate(targets, other, LABELS)


def test_a_right_empty_prediction_scores_one():
    metrics = evaluate(np.zeros((1, 3), dtype=np.int8), np.zeros((1, 3), dtype=bool), LABELS)
    assert metrics.jaccard == 1
    assert metrics.macro_f1 == 0  # nothing to find and nothing found is an F1 of 0 by definition


def test_a_label_nobody_annotated_has_no_figure():
    targets = np.array([[1, -1, 0], [0, -1, 1]], dtype=np.int8)
    metrics = evaluate(targets, np.array([[1, 1, 0], [0, 1, 1]], dtype=bool), LABELS)
    assert list(metrics.per_class) == ["anger", "trust"]
    assert metrics.macro_f1 == metrics.micro_f1 == metrics.jaccard == 1


def test_rows_without_any_known_label_do_not_count():
    targets = np.array([[1, 0, 0], [-1, -1, -1]], dtype=np.int8)
    metrics = evaluate(targets, np.array([[1, 0, 0], [1, 1, 1]], dtype=bool), LABELS)
    assert metrics.rows == 1
    assert metrics.jaccard == 1


def test_nothing_known_is_refused():
    with pytest.raises(DataError, match="gold labels"):
        evaluate(np.full((2, 3), -1, dtype=np.int8), np.zeros((2, 3), dtype=bool), LABELS)


def test_macro_f1_is_that_of_evaluate():
    random = np.random.default_rng(1)
    targets, predicted = random.integers(0, 2, (40, 3)).astype(np.int8), random.random((40, 3)) > 0.5
    assert macro_f1(targets, predicted) == evaluate(targets, predicted, LABELS).macro_f1


def test_the_agreement_on_one_label_equals_scikit_learn():
    first, second = np.random.default_rng(0).random((2, 50, 1)) < 0.4
    assert cohen_kappa(first, second) == pytest.approx(cohen_kappa_score(first[:, 0], second[:, 0]))


def test_a_label_on_which_chance_agrees_does_not_change_the_agreement():
    first, second = np.random.default_rng(0).random((2, 50, 1)) < 0.4
    never = np.zeros((50, 1), np.bool_)
    expected = cohen_kappa(first, second)
    assert cohen_kappa(np.hstack([first, never]), np.hstack([second, never])) == pytest.approx(expected)
    assert cohen_kappa(never, never) == 0.0
