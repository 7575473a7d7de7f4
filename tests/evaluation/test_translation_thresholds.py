"""Thresholds matched by translations: as many labels as the English gets, saved, and used for recognised languages."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from emoglot import load
from emoglot.data.parallel import Parallel
from emoglot.errors import DataError
from emoglot.evaluation.translation_thresholds import (
    ANY_WEIGHS,
    LEAST_PAIRS,
    MOST_PAIRS,
    match_thresholds,
    move_thresholds,
)
from emoglot.inference.folder import RECOGNISED_SHARE
from emoglot.inference.head import sigmoid
from emoglot.inference.thresholds import NEVER
from emoglot.model import Model

FEELINGS = ("so happy about", "very sad about", "afraid of", "not sure about")


def sentences(count: int) -> list[str]:
    return [f"I am {FEELINGS[number % len(FEELINGS)]} number {number}" for number in range(count)]


def pairs_of(english: list[str], texts: list[str], language: str) -> Parallel:
    count = len(texts)
    return Parallel(tuple(english), tuple(texts), np.arange(count), (language,) * count, ("written",) * count)


@pytest.fixture(scope="module")
def scores() -> np.ndarray:
    return sigmoid(np.random.default_rng(0).normal(-2, 1.5, (20_000, 3)).astype(np.float32))


@pytest.mark.parametrize(("slope", "shift"), [(0.6, -0.5), (1.0, 0.7), (1.3, 0.0)])
def test_translations_reach_their_thresholds_where_the_english_does(scores: np.ndarray, slope: float, shift: float):
    thresholds = np.array([0.2, 0.35, 0.5])
    translated = sigmoid(slope * np.log(scores / (1 - scores)) + shift)
    moved = move_thresholds(thresholds, scores, translated)
    differs = (scores >= thresholds) != (translated >= moved)
    assert differs.mean() < 0.005  # extreme scores are limited before their spread is measured
    assert ((scores >= thresholds) != (translated >= thresholds)).mean() > 0.02


def test_equal_scores_change_nothing_and_a_label_that_is_never_given_stays_so(scores: np.ndarray):
    thresholds = np.array([0.2, NEVER, 0.5])
    assert move_thresholds(thresholds, scores, scores) == pytest.approx(thresholds)


def test_few_pairs_move_a_threshold_less(scores: np.ndarray):
    thresholds = np.full(3, 0.3)
    translated = sigmoid(np.log(scores / (1 - scores)) - 1)
    many, few = (move_thresholds(thresholds, scores[:count], translated[:count]) for count in (len(scores), ANY_WEIGHS))
    half = sigmoid((np.log(0.3 / 0.7) + np.log(many / (1 - many))) / 2)
    assert few == pytest.approx(half, abs=0.01)


def test_a_language_is_matched_by_its_held_out_sentences_alone(trained: Model):
    english = sentences(60 * 32)
    texts = [text.replace("I am", "Ich bin") for text in english]
    pairs = pairs_of(english, texts, "deu")  # stored by the code that predictions look up
    matched = match_thresholds(trained, pairs)
    _, held_out = pairs.split()
    assert LEAST_PAIRS <= len(held_out) <= MOST_PAIRS
    before, after = (trained.predict_proba(part) for part in (held_out.english, held_out.texts))
    expected = move_thresholds(trained.state.thresholds, before[held_out.english_of], after)
    assert matched.state.matched_thresholds.keys() == {"de"}
    assert matched.state.matched_thresholds["de"] == pytest.approx(expected)
    changed = [text if text in set(held_out.texts) else "Nein" for text in texts]
    again = match_thresholds(trained, pairs_of(english, changed, "de"))
    assert again.state.matched_thresholds["de"] == pytest.approx(expected)


def test_words_and_too_few_sentences_match_nothing(trained: Model):
    english = sentences(60 * 32)
    for texts in (english[:32], [f"word {number}" for number in range(60 * 32)]):
        with pytest.raises(DataError, match="use more translations"):
            match_thresholds(trained, pairs_of(texts, texts, "de"))


def test_matched_thresholds_are_those_for_any_text_in_their_language(trained: Model, tmp_path: Path):
    anyhow, matched, own = (np.full(len(trained.labels), value) for value in (0.4, 0.2, 0.1))
    state = replace(
        trained.state,
        thresholds=anyhow,
        matched_thresholds={"de": matched, "pt": matched},
        language_thresholds={"pt": own},
        strictness=None,
    )
    trained.with_state(state).save(tmp_path / "model")
    found = load(tmp_path / "model", encoder=trained.encoder).state
    for is_named in (True, False):
        assert found.thresholds_for("de-AT", named=is_named).tolist() == matched.tolist()
        assert found.thresholds_for("sv", named=is_named).tolist() == anyhow.tolist()
    assert found.thresholds_for("pt").tolist() == own.tolist()
    mean = RECOGNISED_SHARE * own + (1 - RECOGNISED_SHARE) * matched
    assert found.thresholds_for("pt", named=False).tolist() == pytest.approx(mean.tolist())
