"""Labels: names and arrays are two forms of one thing; whatever else is refused by name."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emoglot.errors import DataError
from emoglot.labels import PLUTCHIK_LABELS, SEMEVAL_LABELS, UNKNOWN, check_names, label_names, names_where, to_targets

LABELS = ("anger", "joy", "trust")


@given(st.lists(st.sets(st.sampled_from(LABELS))))
def test_names_and_arrays_say_the_same(rows):
    targets = to_targets(rows, LABELS)
    assert [set(names_where(row == 1, LABELS)) for row in targets] == rows
    assert to_targets(targets.astype(float), LABELS).tolist() == targets.tolist()
    if rows:
        assert to_targets(targets.tolist(), LABELS).tolist() == targets.tolist()


def test_nan_means_unknown():
    assert to_targets(np.array([[1.0, np.nan, 0.0]]), LABELS).tolist() == [[1, UNKNOWN, 0]]


def test_booleans_are_labels():
    assert to_targets(np.array([[True, False, True]]), LABELS).tolist() == [[1, 0, 1]]


def test_the_wheel_is_part_of_the_eleven():
    assert set(PLUTCHIK_LABELS) < set(SEMEVAL_LABELS)
    assert len(SEMEVAL_LABELS) == 11


def test_names_used_come_in_the_order_of_the_eleven_or_sorted():
    assert label_names([{"trust"}, {"anger", "joy"}]) == ("anger", "joy", "trust")
    assert label_names([{"zeal"}, {"anger", "boredom"}]) == ("anger", "boredom", "zeal")


@pytest.mark.parametrize(
    ("rows", "rule"),
    [
        ([{"hope"}], "'hope' in row 0 is not in the label set: anger, joy, trust"),
        (["joy"], "a set of names"),
        ([None], "a set of names .* got None in row 0"),
        ([{1}], "a label must be a name such as 'joy', got 1"),
        ([3], "a set of names"),
        ([{"joy": 0, "anger": 1}], "a set of names .* got {'joy': 0, 'anger': 1} in row 0"),
        (np.array([[0, 2, 1]]), "0, 1 or NaN for unknown, got 2 in row 0, column 1"),
        (np.array([[np.inf, 0, 1]]), "0, 1 or NaN"),
        (np.array([0, 1, 1]), r"shape \(rows, 3\)"),
        (np.array([[0, 1]]), r"shape \(rows, 3\).* got \(1, 2\)"),
    ],
)
def test_bad_labels_are_refused_with_their_place(rows, rule):
    with pytest.raises(DataError, match=rule):
        to_targets(rows, LABELS)


@pytest.mark.parametrize(
    ("names", "rule"), [((), "at least one"), (("joy", "joy"), "'joy' more than once"), (("joy", " "), "non-empty")]
)
def test_bad_label_sets_are_refused(names, rule):
    with pytest.raises(DataError, match=rule):
        check_names(names)
