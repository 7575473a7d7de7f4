"""The mean of models (recipes/average.py) is a model of the mean weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import emoglot
from emoglot.encoders.hub import HubEncoder
from emoglot.model import Model
from recipes import average
from tests.conftest import make_dataset
from tests.training.tuning import QUICK_TUNING, tune

TEXTS = ["I am so happy", "Se fue y no paro de llorar"]


@pytest.fixture(scope="module")
def folders(encoder: HubEncoder, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A model in int8 with n-grams, and one that was trained on from it."""
    out = tmp_path_factory.mktemp("models")
    first = tune(encoder, make_dataset(), quantize="int8", wide=True).save(out / "first")
    config = QUICK_TUNING.override({"training.max_epochs": 2, "training.seed": 1})
    second = tune(first / "encoder", make_dataset(), config, quantize="int8", start=emoglot.load(first))
    return [first, second.save(out / "second")]


def test_the_mean_of_a_model_and_itself_is_the_same_network(folders: list[Path], tmp_path: Path) -> None:
    first, _ = folders
    same = mean_of(tmp_path / "same", {first: 0.25, first.parent / "second" / ".." / "first": 0.75})
    assert same.state.wide is None
    for name, array in emoglot.load(first).state.weights.items():
        np.testing.assert_allclose(same.state.weights[name], array, rtol=1e-6, err_msg=name)
    before, after = (average.restored(folder, tmp_path / "scratch") for folder in (first, tmp_path / "same"))
    for name, array in before.items():
        np.testing.assert_allclose(after[name], array, atol=1e-6, err_msg=name)


def test_shares_weigh_the_networks(folders: list[Path], tmp_path: Path) -> None:
    first, second = folders
    mixed = mean_of(tmp_path / "mixed", {first: 0.25, second: 0.75})
    one, other = (emoglot.load(folder).state.weights for folder in folders)
    assert any(not np.array_equal(one[name], other[name]) for name in one)
    for name, array in mixed.state.weights.items():
        np.testing.assert_allclose(array, 0.25 * one[name] + 0.75 * other[name], atol=1e-6, err_msg=name)
    assert np.isfinite(mixed.predict_proba(TEXTS)).all()


def test_shares_sum_to_one(folders: list[Path], tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"must sum to 1, got 0\.75"):
        mean_of(tmp_path / "less", dict.fromkeys(folders, 0.375))
    assert not (tmp_path / "less").exists()


def mean_of(out: Path, shares: dict[Path, float]) -> Model:
    average.main(out, shares)
    return emoglot.load(out)
