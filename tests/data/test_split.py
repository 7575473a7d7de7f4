"""The stratified split: disjoint, covering, proportional, deterministic and fast."""

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from emoglot.data.split import stratified_split
from emoglot.errors import DataError, UsageError
from emoglot.labels import UNKNOWN

targets_of_any_kind = hnp.arrays(
    np.int8,
    st.tuples(st.integers(0, 60), st.integers(1, 6)),
    elements=st.sampled_from([0, 0, 1, UNKNOWN]),
)
fractions = st.floats(0.05, 0.95)
seeds = st.integers(0, 2**32 - 1)


@given(targets_of_any_kind, fractions, seeds, st.booleans())
def test_parts_are_disjoint_covering_sorted_and_of_the_asked_size(targets, fraction, seed, grouped):
    groups = [("en", "so", "fi")[row % 3] for row in range(len(targets))] if grouped else None
    first, second = stratified_split(targets, fraction, seed, groups)
    assert sorted([*first, *second]) == list(range(len(targets)))
    assert (np.diff(first) > 0).all()
    assert (np.diff(second) > 0).all()
    assert abs(len(second) - round(fraction * len(targets))) <= 1
    if len(targets) > 1:
        assert len(first)
        assert len(second)


@given(targets_of_any_kind, fractions, seeds)
def test_a_seed_gives_one_split(targets, fraction, seed):
    once, again = (stratified_split(targets, fraction, seed) for _ in range(2))
    assert np.array_equal(once[0], again[0])
    assert np.array_equal(once[1], again[1])


@given(st.integers(60, 300), st.integers(1, 8), st.floats(0.1, 0.5), seeds)
def test_labels_and_groups_are_shared_out_in_proportion(rows, labels, fraction, seed):
    rng = np.random.default_rng(seed)
    targets = (rng.random((rows, labels)) < rng.uniform(0.05, 0.5, labels)).astype(np.int8)
    groups = np.array(["am", "br", "cy"])[rng.integers(0, 3, rows)]
    _, second = stratified_split(targets, fraction, seed, groups.tolist())
    classes = np.concatenate([targets == 1, groups[:, None] == np.unique(groups)], axis=1)
    whole, part = classes.sum(axis=0), classes[second].sum(axis=0)
    assert (abs(part - fraction * whole) <= 2.5).all()
    assert (part[whole > 1] >= 1).all()
    assert (part[whole > 1] < whole[whole > 1]).all()


@given(st.lists(st.integers(2, 6), min_size=1, max_size=8), seeds)
def test_a_rare_label_is_in_both_parts(counts, seed):
    labels = np.repeat(np.arange(len(counts)), counts)
    targets = np.zeros((200, len(counts)), dtype=np.int8)
    targets[np.arange(len(labels)), labels] = 1
    first, second = stratified_split(targets, 0.1, seed)
    assert (targets[first].sum(axis=0) > 0).all()
    assert (targets[second].sum(axis=0) > 0).all()


def test_rare_languages_are_in_both_parts():
    groups = ["en"] * 90 + ["vmw"] * 2 + ["so"] * 8
    first, second = stratified_split(np.zeros((100, 1), dtype=np.int8), 0.2, 1, groups)
    assert {groups[row] for row in first} == {groups[row] for row in second} == {"en", "vmw", "so"}


def test_unknown_is_not_positive():
    unknown = np.full((40, 2), UNKNOWN, dtype=np.int8)
    absent = np.zeros((40, 2), dtype=np.int8)
    for left, right in zip(stratified_split(unknown, 0.3, 5), stratified_split(absent, 0.3, 5), strict=True):
        assert np.array_equal(left, right)


def test_seeds_differ():
    targets = np.zeros((100, 1), dtype=np.int8)
    assert not np.array_equal(stratified_split(targets, 0.5, 1)[1], stratified_split(targets, 0.5, 2)[1])


def test_size_wins_over_one_row_per_label_when_both_can_not_be():
    targets = np.repeat(np.eye(10, dtype=np.int8), 2, axis=0)
    assert len(stratified_split(targets, 0.1, 0)[1]) == 2


def test_a_hundred_thousand_rows_take_seconds():
    rng = np.random.default_rng(0)
    targets = (rng.random((100_000, 11)) < rng.uniform(0.02, 0.4, 11)).astype(np.int8)
    groups = [f"language {code}" for code in rng.integers(0, 30, len(targets))]
    start = time.process_time()
    _, second = stratified_split(targets, 0.1, 0, groups)
    assert time.process_time() - start < 10
    assert len(second) == 10_000
    assert (abs((targets[second] == 1).sum(axis=0) - 0.1 * (targets == 1).sum(axis=0)) <= 1).all()


@pytest.mark.parametrize("fraction", [0, 1, -0.1, 1.5, float("nan")])
def test_a_fraction_outside_is_refused(fraction):
    with pytest.raises(UsageError, match="between 0 and 1"):
        stratified_split(np.zeros((4, 1), dtype=np.int8), fraction, 0)


def test_groups_of_another_length_are_refused():
    with pytest.raises(DataError, match="got 1 for 4 rows"):
        stratified_split(np.zeros((4, 1), dtype=np.int8), 0.5, 0, ["en"])
