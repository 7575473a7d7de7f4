"""Strictness: the threshold for a wanted precision or recall, against a search through all scores."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import emoglot
from emoglot.errors import ModelError, UsageError
from emoglot.evaluation.language_thresholds import calibrate
from emoglot.inference.strictness import LEAST_GIVEN, measure_strictness
from emoglot.inference.thresholds import NEVER
from emoglot.model import Model
from tests.conftest import LABELS, make_dataset


def rows(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    scores = np.round(rng.random((count, 2)), 2).astype(np.float32)  # many are equal
    targets = (rng.random((count, 2)) < scores).astype(np.int8)
    targets[rng.random((count, 2)) < 0.1] = -1
    return scores, targets


def counts_at(scores: np.ndarray, targets: np.ndarray, cut: float) -> tuple[int, int, int]:
    """Count what is given, what is rightly given, and what should be."""
    known = targets != -1
    given = (scores >= cut) & known
    return int(given.sum()), int((given & (targets == 1)).sum()), int((targets == 1).sum())


@pytest.mark.parametrize("wanted", [0.3, 0.5, 0.75, 0.9, 0.97, 1.0])
@pytest.mark.parametrize("seed", range(4))
def test_no_lower_threshold_is_so_precise_and_no_higher_one_finds_so_many(wanted, seed):
    scores, targets = rows(300, seed)
    table = measure_strictness(scores, targets)
    precise, finding = table.thresholds(wanted, None), table.thresholds(None, wanted)
    for label in range(2):
        reached, found = [], []
        for cut in np.unique(scores[targets[:, label] != -1, label]):
            given, hits, positives = counts_at(scores[:, label], targets[:, label], cut)
            if given >= LEAST_GIVEN and hits / given >= wanted:
                reached.append(float(cut))
            if hits / positives >= wanted:
                found.append(float(cut))
        assert precise[label] == (min(reached) if reached else NEVER)
        assert finding[label] == max(found)


def test_stricter_is_never_lower():
    table = measure_strictness(*rows(500, 9))
    assert (np.diff(table.precision[:, :90], axis=1) >= 0).all()
    assert (np.diff(table.recall, axis=1) <= 0).all()


def test_a_row_counts_as_often_as_its_weight_says():
    scores, targets = rows(60, 3)
    weights = np.random.default_rng(0).integers(1, 5, size=60)
    heavy, repeated = (
        measure_strictness(scores, targets, weights),
        measure_strictness(np.repeat(scores, weights, axis=0), np.repeat(targets, weights, axis=0)),
    )
    np.testing.assert_array_equal(heavy.recall, repeated.recall)
    # Above the tenth score, which repetition makes look like many, the two agree.
    tenth = np.sort(np.where(targets != -1, scores, 0), axis=0)[-LEAST_GIVEN]
    is_told = repeated.precision <= tenth[:, None]
    assert is_told.any()
    np.testing.assert_array_equal(heavy.precision[is_told], repeated.precision[is_told])


def test_a_wanted_share_is_rounded_up_to_hundredths():
    table = measure_strictness(*rows(500, 5))
    assert np.array_equal(table.thresholds(0.801, None), table.thresholds(0.81, None))
    assert np.array_equal(table.thresholds(0.29, None), table.precision[:, 28])  # 0.29 × 100 is 28.999…


def test_the_least_share_asks_for_least_and_numbers_of_numpy_are_numbers():
    table = measure_strictness(*rows(500, 5))
    assert np.array_equal(table.thresholds(1e-320, None), table.precision[:, 0])
    assert np.array_equal(table.thresholds(np.float32(0.5), None), table.precision[:, 49])


@pytest.mark.parametrize("wanted", [0, -1, 1.01, True, "0.8", float("nan")])
def test_what_is_no_share_is_refused(wanted):
    with pytest.raises(UsageError, match="must be above 0"):
        measure_strictness(*rows(50, 1)).thresholds(wanted, None)


def test_one_of_the_two_is_asked_for():
    with pytest.raises(UsageError, match="exactly one of precision and recall"):
        measure_strictness(*rows(50, 1)).thresholds(0.8, 0.8)


def test_a_label_without_positives_is_never_given():
    scores, targets = rows(50, 1)
    targets[:, 1] = np.minimum(targets[:, 1], 0)
    table = measure_strictness(scores, targets)
    assert table.thresholds(None, 0.1)[1] == NEVER
    assert table.never_given(("a", "b"), 0.01, None) == ["b"]


@pytest.fixture(scope="module")
def measured(trained: Model) -> Model:
    return calibrate(trained, make_dataset(12), pooled=True)


def test_a_model_is_as_precise_as_it_is_asked_to_be(measured: Model):
    data = make_dataset(12)
    for wanted in (0.3, 0.9):
        predictions = measured.predict(data.texts, precision=wanted)
        given = np.array([[name in prediction.labels for name in LABELS] for prediction in predictions])
        for label in range(len(LABELS)):
            if given[:, label].any():
                assert data.targets[given[:, label], label].mean() >= wanted
    found = np.array([[name in one.labels for name in LABELS] for one in measured.predict(data.texts, recall=1.0)])
    assert found[data.targets == 1].all()


def test_the_table_is_kept_in_the_folder(measured: Model, tmp_path: Path):
    measured.save(tmp_path / "model")
    loaded = emoglot.load(tmp_path / "model", encoder=measured.encoder)
    np.testing.assert_array_equal(loaded.strictness.precision, measured.strictness.precision)
    np.testing.assert_array_equal(loaded.strictness.recall, measured.strictness.recall)


def test_a_model_without_the_table_says_how_to_get_one(measured: Model):
    bare = measured.with_state(replace(measured.state, strictness=None))
    with pytest.raises(ModelError, match="thresholds --pooled"):
        bare.predict(["a"], precision=0.8)
