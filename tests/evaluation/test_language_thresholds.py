"""Thresholds by language: chosen where there is enough to choose on, kept where not, saved and used."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emoglot import load
from emoglot.data.dataset import Dataset, concatenate
from emoglot.errors import DataError, ModelError
from emoglot.evaluation.evaluate import evaluate_model
from emoglot.evaluation.language_thresholds import (
    ANY_WEIGHS,
    ENOUGH_POSITIVES,
    OTHERS_WEIGH,
    VALLEY,
    calibrate,
    steady_thresholds,
    towards,
)
from emoglot.inference.folder import RECOGNISED_SHARE
from emoglot.inference.strictness import STEPS, Strictness
from emoglot.inference.thresholds import NEVER, choose_thresholds
from emoglot.labels import UNKNOWN
from emoglot.model import Model
from emoglot.text.language_names import NO_LANGUAGE
from tests.conftest import LABELS, make_dataset

# With 12 copies Spanish has 24 texts of love and of sadness, all languages together 36 of every label.
COPIES = 12
EVERYTHING, NOTHING = np.zeros(len(LABELS)), np.full(len(LABELS), NEVER)


@pytest.fixture(scope="module")
def data() -> Dataset:
    return make_dataset(COPIES)


@pytest.fixture(scope="module")
def calibrated(trained: Model, data: Dataset) -> Model:
    return calibrate(trained, data)


def rows_in(data: Dataset, language: str) -> Dataset:
    return data.select([row for row, code in enumerate(data.languages) if code == language])


def with_thresholds(model: Model, **languages: np.ndarray) -> Model:
    return model.with_state(replace(model.state, language_thresholds=languages))


def weighted_f1(scores: np.ndarray, targets: np.ndarray, threshold: float, weights: np.ndarray) -> float:
    chosen = scores >= threshold
    true = weights[chosen & (targets == 1)].sum()
    return 2 * true / (weights[chosen].sum() + weights[targets == 1].sum())


def test_a_language_chooses_by_its_own_rows_and_a_little_by_those_of_others(trained, calibrated, data):
    """They are chosen on weighted rows, then averaged with those for any text, which weigh as much as ANY_WEIGHS rows.

    Before the average no score of any row is a much better threshold, when others' rows weigh as OTHERS_WEIGH own ones.
    """
    assert set(calibrated.state.language_thresholds) == {"ar", "en", "es"}
    scores = trained.predict_proba(data.texts)
    for language, found in calibrated.state.language_thresholds.items():
        own = np.array([code == language for code in data.languages])
        weights = np.where(own, max(1, round((~own).sum() / OTHERS_WEIGH)), 1)
        chosen = found + ANY_WEIGHS / own.sum() * (found - trained.state.thresholds)
        for label in range(len(LABELS)):
            column, target = scores[:, label], data.targets[:, label]
            best = max(weighted_f1(column, target, value, weights) for value in np.unique(column))
            assert VALLEY * best <= weighted_f1(column, target, chosen[label] - 1e-9, weights) <= best


def test_others_weigh_less_than_own_rows(trained, data):
    """Of a language with many rows, others that are said to carry no label hardly move the thresholds."""
    spanish, others = rows_in(data, "es"), concatenate([rows_in(data, code) for code in ("ar", "en")])
    silent = replace(others, targets=np.zeros_like(others.targets))
    alone = calibrate(trained, spanish).state.language_thresholds["es"]
    beside = calibrate(trained, concatenate([spanish, silent])).state.language_thresholds["es"]
    pooled = calibrate(trained, concatenate([spanish, silent]), pooled=True).state.thresholds
    assert np.abs(beside - alone).max() < np.abs(pooled - alone).max()
    is_rare = (spanish.targets == 1).sum(axis=0) < ENOUGH_POSITIVES
    assert np.array_equal(alone[is_rare], trained.state.thresholds[is_rare])


def test_thresholds_of_many_rows_are_their_own_and_those_of_few_those_for_any_text():
    own, anyhow = np.array([0.2, 0.9, 0.4, NEVER]), np.array([0.4, 0.3, NEVER, 0.5])
    np.testing.assert_allclose(towards(own, anyhow, ANY_WEIGHS), [0.3, 0.6, 0.4, NEVER])
    np.testing.assert_allclose(towards(own, anyhow, 10**9), own, atol=1e-6)
    np.testing.assert_allclose(towards(own, anyhow, 1), [0.4, 0.3, 0.4, NEVER], atol=0.6 / ANY_WEIGHS)


def beta_rows(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw scores of one label that mean what they say."""
    rng = np.random.default_rng(seed)
    scores = rng.beta(0.5, 2.0, size=(rows, 1)).astype(np.float32)
    return scores, (rng.random((rows, 1)) < scores).astype(np.int8)


def test_thresholds_of_few_rows_vary_less_than_the_best_of_each_and_do_better_on_others():
    many = beta_rows(20_000, 99)
    best = choose_thresholds(*many)[0]
    exact, steady = [], []
    for seed in range(40):
        scores, targets = beta_rows(60, seed)
        exact.append(choose_thresholds(scores, targets)[0])
        steady.append(steady_thresholds(scores, targets, np.ones(60, np.int64))[0])
    assert np.std(steady) < 0.9 * np.std(exact)
    assert np.mean(np.abs(np.array(steady) - best)) < np.mean(np.abs(np.array(exact) - best))
    steady_f1, exact_f1 = (
        np.mean([weighted_f1(many[0][:, 0], many[1][:, 0], value, np.ones(20_000)) for value in found])
        for found in (steady, exact)
    )
    assert steady_f1 > exact_f1


def test_thresholds_of_many_rows_are_the_best_ones():
    scores, targets = beta_rows(20_000, 1)
    found = steady_thresholds(scores, targets, np.ones(20_000, np.int64))
    assert found == pytest.approx(choose_thresholds(scores, targets), abs=0.05)


def test_a_row_counts_as_often_as_its_weight_says():
    scores, targets = beta_rows(50, 2)
    heavy = np.where(np.arange(50) < 10, 200, 1)
    found = steady_thresholds(scores, targets, heavy)
    assert abs(found - steady_thresholds(scores[:10], targets[:10], heavy[:10])) < abs(
        found - steady_thresholds(scores[10:], targets[10:], heavy[10:])
    )


def test_a_label_too_rare_in_all_languages_keeps_the_models_threshold(trained, data):
    few = data.select(range(16))
    for thresholds in calibrate(trained, few).state.language_thresholds.values():
        assert np.array_equal(thresholds, trained.state.thresholds)
    assert np.array_equal(calibrate(trained, few, pooled=True).state.thresholds, trained.state.thresholds)


def test_pooled_thresholds_are_those_of_all_rows_together(trained, data):
    pooled = calibrate(trained, data, pooled=True)
    expected = steady_thresholds(trained.predict_proba(data.texts), data.targets, np.ones(len(data), np.int64))
    assert np.array_equal(pooled.state.thresholds, expected)
    assert pooled.state.language_thresholds == {}
    assert np.array_equal(pooled.predict_proba(data.texts[:5]), trained.predict_proba(data.texts[:5]))


def test_other_languages_and_the_model_itself_stay_as_they_were(trained, calibrated, data):
    before = with_thresholds(trained, de=EVERYTHING, es=NOTHING)
    after = calibrate(before, rows_in(data, "es"))
    assert np.array_equal(after.state.language_thresholds["de"], EVERYTHING)
    assert not np.array_equal(after.state.language_thresholds["es"], NOTHING)
    assert np.array_equal(before.state.language_thresholds["es"], NOTHING)
    assert np.array_equal(calibrated.state.thresholds, trained.state.thresholds)


def test_rows_without_a_language_choose_for_texts_without_one(trained, calibrated, data):
    nameless = replace(data, languages=(NO_LANGUAGE,) * len(data))
    found = calibrate(trained, nameless)
    assert found.state.language_thresholds == trained.state.language_thresholds
    assert np.array_equal(found.state.thresholds, calibrate(trained, data, pooled=True).state.thresholds)
    half = calibrate(
        trained, replace(data, languages=tuple(code if code == "es" else NO_LANGUAGE for code in data.languages))
    )
    assert set(half.state.language_thresholds) == {"es"}


def test_unknown_labels_and_texts_that_can_not_be_read_choose_nothing(trained, calibrated, data):
    unread = Dataset(("\u200b",) * 99, np.ones((99, len(LABELS)), np.int8), LABELS, ("es",) * 99, ("ours",) * 99)
    unknown = replace(data, targets=np.full_like(data.targets, UNKNOWN))
    again = calibrate(trained, concatenate([data, unread, unknown]))
    for language, thresholds in calibrated.state.language_thresholds.items():
        assert np.array_equal(again.state.language_thresholds[language], thresholds)
    with pytest.raises(DataError, match="that the model can read, got none"):
        calibrate(trained, unread)
    with pytest.raises(DataError, match="at least one row must be annotated"):
        calibrate(trained, unknown)


def test_thresholds_are_saved_and_loaded_unchanged(trained, tmp_path):
    odd = np.array([NEVER, 0.0, 1.0, 0.1 + 0.2, np.nextafter(0.5, 1)])
    loaded = load(with_thresholds(trained, es=odd, **{"pt-BR": NOTHING}).save(tmp_path / "model"))
    assert {name: values.tolist() for name, values in loaded.state.language_thresholds.items()} == {
        "es": odd.tolist(),
        "pt-BR": NOTHING.tolist(),
    }
    again = loaded.save(tmp_path / "again")
    first, second = (json.loads((folder / "model.json").read_text("utf-8")) for folder in (tmp_path / "model", again))
    assert first == second


def test_a_language_falls_back_to_its_wider_code_and_then_to_all(trained):
    model = with_thresholds(trained, pt=NOTHING, **{"pt-BR": EVERYTHING})
    (plain,) = trained.predict(["so happy"])
    expected = {"pt-BR": LABELS, "pt": (), "pt-PT": (), "de": plain.labels, None: plain.labels}
    for language, labels in expected.items():
        assert model.predict(["so happy"], language or "any")[0].labels == labels
        scores = model.predict_proba(["so happy"])
        assert model.decide(scores, language)[0].tolist() == [name in labels for name in LABELS]


def test_each_text_is_cut_by_the_thresholds_of_its_own_language(trained, monkeypatch):
    monkeypatch.setattr("emoglot.inference.pipeline.CHUNK", 2)
    model = with_thresholds(trained, sw=EVERYTHING, ha=NOTHING)
    found = model.predict(["so happy"] * 5, ["sw", "ha", "Hausa", "swa", "Kiswahili"])
    assert [prediction.labels for prediction in found] == [LABELS, (), (), LABELS, LABELS]
    assert model.predict([], []) == []
    with pytest.raises(DataError, match="one for each text, got 1 for 2 texts"):
        model.predict(["so happy"] * 2, ["sw"])


def test_languages_are_stored_by_the_codes_that_predict_looks_up(trained, data):
    names = {"en": "English", "es": "spa", "ar": "qme"}
    renamed = replace(data, languages=tuple(names[code] for code in data.languages))
    found = calibrate(trained, renamed).state
    assert set(found.language_thresholds) == {"en", "es"}  # the third names no language, and chooses for any text
    regional = replace(data, languages=("pt-BR",) * len(data))
    assert set(calibrate(trained, regional).state.language_thresholds) == {"pt-BR", "pt"}


@pytest.mark.parametrize("language", [5, {"en"}, {"en": 1}])
def test_what_is_no_language_is_refused(trained, language):
    with pytest.raises(DataError, match="language must be a code or name"):
        trained.predict(["a"], language)


def test_thresholds_of_a_recognised_language_are_averaged_with_those_for_any_text(trained):
    model = with_thresholds(trained, en=EVERYTHING, es=NOTHING)
    model = model.with_state(replace(model.state, strictness=None))  # or precision would raise thresholds
    english, spanish = "I am so happy that you could come to see us today", "Estoy muy contento de que hayas venido hoy"
    found = model.predict([english, spanish, english], [None, None, "any"])
    assert [prediction.language for prediction in found] == ["en", "es", None]
    for prediction, own in zip(found, (EVERYTHING, NOTHING, trained.state.thresholds), strict=True):
        thresholds = RECOGNISED_SHARE * np.array(own) + (1 - RECOGNISED_SHARE) * trained.state.thresholds
        given = [label for label, least in zip(LABELS, thresholds, strict=True) if prediction.scores[label] >= least]
        assert prediction.labels == tuple(given)
    assert [model.predict(english, "en").labels, model.predict(spanish, "es").labels] == [LABELS, ()]


def test_a_label_that_is_mostly_wrong_needs_a_named_language(trained):
    is_joy = np.array(LABELS) == "joy"
    table = np.repeat(np.where(is_joy, NEVER, 0.0)[:, None], STEPS, axis=1)  # joy reaches no precision at all
    model = with_thresholds(trained, en=EVERYTHING)
    model = model.with_state(replace(model.state, strictness=Strictness(table, table)))
    usual = trained.state.thresholds
    expected = np.where(is_joy, usual, (1 - RECOGNISED_SHARE) * usual)
    np.testing.assert_array_equal(model.state.thresholds_for("en", named=False), expected)
    never = model.with_state(replace(model.state, thresholds=np.where(is_joy, NEVER, usual)))
    english = "I am so happy that you could come to see us today"
    assert "joy" not in never.predict(english).labels
    assert "joy" in never.predict(english, "en").labels


@pytest.mark.parametrize(
    "damage",
    [
        lambda values: [values],
        lambda values: {"es": values["es"][:-1]},
        lambda values: {"es": [*values["es"][:-1], 1.5]},
        lambda values: {"es": [*values["es"][:-1], -0.1]},
        lambda values: {"es": [*values["es"][:-1], "0.5"]},
        lambda values: {"es": [*values["es"][:-1], True]},
        lambda values: {"es": 0.5},
        lambda values: None,
    ],
)
def test_damaged_thresholds_are_refused(trained, tmp_path, damage: Callable[[Any], Any]):
    path = Path(with_thresholds(trained, es=EVERYTHING).save(tmp_path / "model")) / "model.json"
    description = json.loads(path.read_text(encoding="utf-8"))
    description["language_thresholds"] = damage(description["language_thresholds"])
    path.write_text(json.dumps(description), encoding="utf-8")
    with pytest.raises(ModelError):
        load(path.parent)


def test_a_folder_of_before_has_no_thresholds_by_language(trained, tmp_path):
    path = trained.save(tmp_path / "model") / "model.json"
    description = json.loads(path.read_text(encoding="utf-8"))
    del description["language_thresholds"]
    path.write_text(json.dumps(description), encoding="utf-8")
    assert load(path.parent).state.language_thresholds == {}


def test_texts_like_those_of_a_dataset_have_thresholds_of_their_own(trained, data, tmp_path):
    state = calibrate(trained, rows_in(data, "es"), domain="posts").save(tmp_path / "model")
    state = load(state).state
    own = state.language_thresholds["es-x-posts"]
    for code, expected in (("es-x-posts", own), ("es-MX-x-posts", own), ("es", None), ("en-x-posts", None)):
        assert np.array_equal(state.thresholds_for(code), state.thresholds if expected is None else expected)
    both = calibrate(trained.with_state(state), data, domain="posts", pooled=True).state
    assert np.array_equal(both.thresholds_for("en-x-posts"), both.language_thresholds["und-x-posts"])
    assert np.array_equal(both.thresholds_for("es-x-posts"), own)
    assert np.array_equal(both.thresholds, trained.state.thresholds)


def test_a_dataset_is_measured_with_its_own_thresholds(trained, data):
    named = replace(data, sources=tuple(f"posts-{language}" for language in data.languages))
    silent = trained.with_state(replace(trained.state, language_thresholds={"und-x-posts": NOTHING}))
    assert evaluate_model(silent, named).overall.macro_f1 == 0
    assert evaluate_model(silent, data) == evaluate_model(trained, data)
    assert evaluate_model(silent, data, "posts").overall.macro_f1 == 0
    tagged = replace(data, languages=tuple(f"{language}-x-posts" for language in data.languages))
    assert evaluate_model(silent, tagged).overall.macro_f1 == 0


def test_a_label_that_is_mostly_wrong_is_cut_higher(trained, data):
    scores = trained.predict_proba(data.texts)
    usual = calibrate(trained, data, pooled=True).state.thresholds
    given = scores >= usual
    precision = (given & (data.targets == 1)).sum(axis=0) / given.sum(axis=0)
    assert precision.min() < precision.max()
    between = float(np.mean([precision.min(), precision.max()]))
    found = calibrate(trained, data, pooled=True, least_precision=between).state.thresholds
    assert np.array_equal(found[precision >= between], usual[precision >= between])
    for label in np.flatnonzero(precision < between):  # the best F1 of all cuts that are precise enough
        best = (0.0, NEVER)
        for cut in np.unique(scores[:, label]):
            chosen, is_true = scores[:, label] >= cut, data.targets[:, label] == 1
            hits = (chosen & is_true).sum()
            if hits >= between * chosen.sum():
                best = max(best, (2 * hits / (chosen.sum() + is_true.sum()), float(cut)))
        assert found[label] == pytest.approx(best[1])
    assert (calibrate(trained, data, pooled=True, least_precision=1.0).state.thresholds > usual).any()


def test_datasets_of_any_size_weigh_alike_in_the_thresholds_for_any_text(trained, data):
    large = replace(data.select(np.tile(np.arange(96), 3)), sources=("large",) * 288)
    small = replace(data.select(range(96, 192)), sources=("small",) * 96)
    found = calibrate(trained, concatenate([large, small]), pooled=True)
    alike = calibrate(trained, concatenate([large, small, small, small]), pooled=True)
    assert found.state.thresholds == pytest.approx(alike.state.thresholds, abs=0.01)
