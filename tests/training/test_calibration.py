"""Calibration: a known distortion is undone, order stays, and the error is that of a hand-made example."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.calibration import expected_calibration_error, reliability
from emoglot.encoders.features import FeatureCache
from emoglot.encoders.registry import load_encoder
from emoglot.inference.head import sigmoid
from emoglot.training import calibration
from emoglot.training.calibration import ENOUGH_ROWS, LEAST_SLOPE, fit_scaling
from emoglot.training.fit import fit_parts
from emoglot.training.parts import prepare
from tests.conftest import QUICK, make_dataset

SLOPES, SHIFTS = np.array([2.5, 0.4, 1.0]), np.array([-1.0, 0.7, 0.0])


def drawn(rows: int = 20_000) -> tuple[np.ndarray, np.ndarray]:
    """Return true logits, and targets drawn with just those chances."""
    rng = np.random.default_rng(0)
    logits = rng.normal(-0.5, 1.5, (rows, 3)).astype(np.float32)
    return logits, (rng.random((rows, 3)) < sigmoid(logits)).astype(np.int8)


def distort(logits: np.ndarray) -> np.ndarray:
    return (logits * SLOPES + SHIFTS).astype(np.float32)


def test_a_known_distortion_is_undone():
    logits, targets = drawn()
    line = fit_scaling(distort(logits), targets)
    assert line.slope == pytest.approx(1 / SLOPES, rel=0.06)
    assert line.shift == pytest.approx(-SHIFTS / SLOPES, abs=0.06)
    assert sigmoid(distort(logits) * line.slope + line.shift) == pytest.approx(sigmoid(logits), abs=0.03)


def test_scaling_keeps_the_order_even_of_logits_that_know_nothing_or_lie():
    logits, targets = drawn(500)
    for given in (logits, distort(logits), -logits, logits[::-1].copy()):
        assert (fit_scaling(given, targets).slope >= LEAST_SLOPE).all()


def test_labels_with_few_rows_are_left_alone():
    logits, targets = drawn(200)
    targets[:, 0] = 0
    targets[: ENOUGH_ROWS - 1, 0] = 1
    targets[:, 1] = 1
    targets[: ENOUGH_ROWS - 1, 1] = 0
    line = fit_scaling(distort(logits), targets)
    assert (line.slope[:2].tolist(), line.shift[:2].tolist()) == ([1, 1], [0, 0])
    assert line.slope[2] != 1


def test_labels_that_compete_are_all_scaled_or_none():
    logits, targets = drawn(200)
    assert (fit_scaling(distort(logits), targets, compete=True).slope != 1).all()
    targets[:, 0] = 0
    targets[: ENOUGH_ROWS - 1, 0] = 1
    line = fit_scaling(distort(logits), targets, compete=True)
    assert (line.slope.tolist(), line.shift.tolist()) == ([1, 1, 1], [0, 0, 0])


def test_unknown_rows_count_for_nothing():
    logits, targets = drawn(600)
    targets[300:] = -1
    partly, alone = fit_scaling(logits, targets), fit_scaling(logits[:300], targets[:300])
    assert np.array_equal(partly.slope, alone.slope)
    assert np.array_equal(partly.shift, alone.shift)
    scores = sigmoid(logits)
    assert expected_calibration_error(scores[:, 0], targets[:, 0]) == expected_calibration_error(
        scores[:300, 0], targets[:300, 0]
    )


def test_a_label_told_apart_without_error_stays_finite():
    logits = np.repeat([[-1.0], [1.0]], 20, axis=0).astype(np.float32)
    line = fit_scaling(logits, (logits > 0).astype(np.int8))
    assert np.isfinite([*line.slope, *line.shift]).all()


def test_the_error_of_a_hand_made_example():
    scores = np.array([0.11, 0.19, 0.95, 1.0, 0.3])
    targets = np.array([0, 1, 1, 1, -1], dtype=np.int8)
    assert reliability(scores, targets) == [(pytest.approx(0.15), 0.5, 2), (pytest.approx(0.975), 1.0, 2)]
    assert expected_calibration_error(scores, targets) == pytest.approx((2 * 0.35 + 2 * 0.025) / 4)


def test_the_error_is_small_for_the_truth_and_large_for_its_opposite():
    logits, targets = drawn()
    scores = sigmoid(logits)
    for label in range(3):
        assert expected_calibration_error(scores[:, label], targets[:, label]) < 0.02
        assert expected_calibration_error(1 - scores[:, label], targets[:, label]) > 0.3
    assert expected_calibration_error(np.ones(4), np.zeros(4, np.int8)) == 1
    assert expected_calibration_error(np.empty(0), np.empty(0, np.int8)) == 0


@pytest.mark.parametrize("wide", [False, True])
def test_a_fitted_model_decides_as_it_would_without_scaling(tmp_path, monkeypatch, wide):
    encoder = load_encoder("tiny")
    config = QUICK.override({"wide.enabled": wide, "training.thresholding_fraction": 0.5})
    parts = prepare(encoder, make_dataset(12), None, config, FeatureCache(tmp_path, encoder))
    monkeypatch.setattr(calibration, "ENOUGH_ROWS", 2)
    scaled = fit_parts(parts, encoder, config).state
    monkeypatch.setattr(calibration, "ENOUGH_ROWS", 10**9)
    plain = fit_parts(parts, encoder, config).state
    assert not np.allclose(scaled.thresholds, plain.thresholds)
    assert scaled.metrics == plain.metrics
