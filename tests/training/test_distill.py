"""Teaching: what a student is told of labelled texts and of translations."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from emoglot.config import Config
from emoglot.data.dataset import Dataset
from emoglot.data.parallel import Parallel
from emoglot.errors import DataError, UsageError
from emoglot.labels import UNKNOWN
from emoglot.model import Model
from emoglot.training.distill import LEAST_STRENGTH, draw_pairs, make_lessons, mix, sharpen, vote
from emoglot.training.fit import _run_key
from emoglot.training.loss import element_loss
from emoglot.training.parts import prepare
from tests.conftest import QUICK, make_dataset, train

CONFIG = Config().override({"teaching.annotators": 0.75})
PATIENT = QUICK.override({"training.max_epochs": 40, "training.patience": 40, "head.dropout": 0.0})


def pairs(count: int = 200, languages: tuple[str, ...] = ("de", "fr")) -> Parallel:
    english = tuple(f"I am happy {number}" for number in range(count))
    texts = tuple(f"{language} {number}" for language in languages for number in range(count))
    names = tuple(language for language in languages for _ in range(count))
    return Parallel(english, texts, np.tile(np.arange(count), len(languages)), names, ("tatoeba",) * len(texts))


def test_annotators_and_teacher_are_mixed_and_the_teacher_fills_what_nobody_was_asked():
    data = make_dataset(1)
    data = replace(
        data,
        targets=np.where(np.arange(data.targets.size).reshape(data.targets.shape) % 5, data.targets, -1).astype(
            np.int8
        ),
    )
    scores = np.random.default_rng(0).random(data.targets.shape).astype(np.float32)
    chances = mix(data, scores, np.ones(len(data), np.bool_), CONFIG)
    unknown = data.targets == UNKNOWN
    np.testing.assert_array_equal(chances[unknown], scores[unknown])
    np.testing.assert_allclose(chances[~unknown], 0.75 * data.targets[~unknown] + 0.25 * scores[~unknown], atol=1e-6)


def test_a_label_not_chosen_where_one_had_to_be_is_for_the_teacher_to_say():
    data = Dataset(("a", "b"), np.array([[1, 0], [0, 0]], np.int8), ("joy", "love"), ("en",) * 2, ("forced",) * 2)
    config = CONFIG.override({"training.single_choice": {"forced": 0.0}})
    scores = np.full((2, 2), 0.4, np.float32)
    np.testing.assert_allclose(mix(data, scores, np.ones(2, np.bool_), config), [[0.85, 0.4], [0.1, 0.1]], atol=1e-6)


def test_translations_get_the_scores_of_their_english(trained: Model, dataset: Dataset, tmp_path: Path):
    config = CONFIG.override({"teaching.pairs": 20})
    lessons = make_lessons([trained], dataset, pairs(), config, tmp_path)
    translated = [row for row, source in enumerate(lessons.data.sources) if source == "parallel"]
    languages = Counter(lessons.data.languages[row] for row in translated)
    assert languages == {"de": 20, "fr": 20, "en": len({lessons.data.texts[row].split()[-1] for row in translated})}
    expected = trained.predict_proba([f"I am happy {lessons.data.texts[row].split()[-1]}" for row in translated])
    np.testing.assert_allclose(lessons.chances[translated], expected, atol=1e-3)
    assert (lessons.data.targets[translated] == UNKNOWN).all()


def test_as_much_english_is_learnt_as_asked_for(trained: Model, dataset: Dataset, tmp_path: Path):
    for english in (0, 1):
        config = CONFIG.override({"teaching.pairs": 20, "teaching.english": english})
        lessons = make_lessons([trained], dataset, pairs(), config, tmp_path)
        own = [
            language
            for language, source in zip(lessons.data.languages, lessons.data.sources, strict=True)
            if source == "parallel"
        ]
        assert Counter(own) == Counter({"de": 20, "fr": 20, "en": 20 * english})


def test_sentences_with_emotions_are_preferred(dataset: Dataset, tmp_path: Path):
    teacher = train("tiny", dataset, config=PATIENT)
    rng = np.random.default_rng(0)
    words = [word for text in dataset.texts for word in text.split()]
    english = tuple(dict.fromkeys(" ".join(rng.choice(words, 3)) for _ in range(400)))
    both = Parallel(english, english, np.arange(len(english)), ("de",) * len(english), ("tatoeba",) * len(english))

    def mean_strength(pool: int, seed: int) -> float:
        config = CONFIG.override({"teaching.pairs": 30, "teaching.pool": pool, "training.seed": seed})
        lessons = make_lessons([teacher], dataset, both, config, tmp_path)
        drawn = np.array(lessons.data.languages) == "de"
        assert drawn.sum() == 30
        return float(lessons.chances[drawn].max(axis=1).mean())

    preferred, alike = (np.mean([mean_strength(pool, seed) for seed in range(40)]) for pool in (10, 1))
    strengths = teacher.predict_proba(english).max(axis=1)
    # The mean of a sample that is weighted with its own values w is that of w² over that of w.
    weights = LEAST_STRENGTH + strengths
    assert alike == pytest.approx(strengths.mean(), abs=0.01)
    assert preferred == pytest.approx((weights * strengths).mean() / weights.mean(), abs=0.01)
    assert preferred > alike


def test_a_sentence_and_its_translations_learn_what_the_languages_that_vote_say(
    trained: Model, dataset: Dataset, tmp_path: Path
):
    config = CONFIG.override({"teaching.pairs": 20, "teaching.voters": ["fr"]})
    both = pairs()
    lessons = make_lessons([trained], dataset, both, config, tmp_path)
    for row in np.flatnonzero(np.array(lessons.data.sources) == "parallel"):
        number = lessons.data.texts[row].split()[-1]
        scores = trained.predict_proba([f"I am happy {number}", f"fr {number}"]).astype(np.float64)
        logits = np.log(scores / (1 - scores)).mean(axis=0)
        np.testing.assert_allclose(lessons.chances[row], 1 / (1 + np.exp(-logits)), atol=2e-3)


def test_votes_count_only_where_there_are_any():
    english = np.array([[0.5], [0.5], [0.5]], np.float32)
    translated = np.array([[0.8], [0.9], [0.1]], np.float32)
    found = vote(english, translated, np.array([True, True, False]), np.array([0, 0, 2]))
    logit = (np.log(4) + np.log(9)) / 2 / 2  # English has a logit of 0
    np.testing.assert_allclose(found, [[1 / (1 + np.exp(-logit))], [0.5], [0.5]], atol=1e-6)


def test_sharper_scores_of_translations_are_further_from_the_thresholds_on_the_same_side(
    trained: Model, dataset: Dataset, tmp_path: Path
):
    def learnt(sharpness: float) -> np.ndarray:
        config = CONFIG.override({"teaching.pairs": 20, "teaching.sharpness": sharpness})
        lessons = make_lessons([trained], dataset, pairs(), config, tmp_path)
        chances = lessons.chances[np.array(lessons.data.sources) == "parallel"].astype(np.float64)
        return np.log(chances / (1 - chances))

    thresholds = np.array([trained.thresholds[label] for label in trained.labels])
    cut = np.log(thresholds / (1 - thresholds))
    np.testing.assert_allclose(learnt(2.0) - cut, 2 * (learnt(1.0) - cut), atol=1e-3)


def test_a_score_without_a_threshold_stays_as_it_is():
    scores = np.array([[0.5, 0.5], [0.2, 0.9]], np.float32)
    found = sharpen(scores, np.array([0.2, np.nan], np.float32), 2.0)
    # A score of 0.5 has odds of 1, which is four times those of the threshold; twice that distance is sixteen times.
    np.testing.assert_allclose(found, [[0.8, 0.5], [0.2, 0.9]], atol=1e-6)


def test_labelled_texts_can_be_left_to_their_annotators(trained: Model, tmp_path: Path):
    data = make_dataset(1)
    targets = data.targets.copy()
    targets[:4] = UNKNOWN
    targets[4, 1:] = UNKNOWN
    data = replace(data, targets=targets)
    config = CONFIG.override({"teaching.labelled": False})
    lessons = make_lessons([trained], data, None, config, tmp_path)
    np.testing.assert_allclose(lessons.chances[:4], trained.predict_proba(data.texts[:4]), atol=1e-3)
    np.testing.assert_array_equal(lessons.chances[4:], targets[4:])


def test_what_teachers_said_is_kept_and_asked_once(trained: Model, dataset: Dataset, tmp_path: Path):
    first = make_lessons([trained], dataset, None, CONFIG, tmp_path)
    kept = sorted(tmp_path.rglob("*.npy"))
    assert kept
    np.save(kept[0], np.full_like(np.load(kept[0]), 0.5))  # had it been asked again, this would not be seen
    again = make_lessons([trained], dataset, None, CONFIG, tmp_path)
    known = dataset.targets != UNKNOWN
    np.testing.assert_allclose(again.chances[known], 0.75 * dataset.targets[known] + 0.125, atol=1e-6)
    kept[0].write_bytes(kept[0].read_bytes()[:50])  # a file cut short is no answer
    np.testing.assert_array_equal(make_lessons([trained], dataset, None, CONFIG, tmp_path).chances, first.chances)


def test_several_teachers_are_averaged(trained: Model, dataset: Dataset, tmp_path: Path):
    other = train("tiny", dataset, config=QUICK.override({"training.seed": 1}))
    one, two, both = (
        make_lessons(teachers, dataset, None, CONFIG, tmp_path).chances
        for teachers in ([trained], [other], [trained, other])
    )
    assert not np.allclose(one, two, atol=1e-3)
    np.testing.assert_allclose(both, (one + two) / 2, atol=1e-3)


def test_what_a_teacher_can_not_read_is_left_to_the_annotators(trained: Model, tmp_path: Path):
    targets = np.array([[1, UNKNOWN, 0, 0, 0]], np.int8)
    data = Dataset(("",), targets, trained.labels, ("en",), ("ours",))
    lessons = make_lessons([trained], data, None, CONFIG, tmp_path)
    np.testing.assert_array_equal(lessons.chances, targets)


def test_sources_without_weight_are_not_drawn():
    both = pairs()
    both = replace(both, sources=("tatoeba",) * 200 + ("memolon",) * 200)
    drawn = draw_pairs(both, CONFIG.override({"teaching.sources": {"memolon": 0.0}}))
    assert set(drawn.sources) == {"tatoeba"}


def test_other_chances_are_another_run(trained: Model, dataset: Dataset):
    held_out = replace(dataset, texts=tuple(f"well {text}" for text in dataset.texts))
    first, second = (
        prepare(
            trained.encoder, dataset, held_out, QUICK, None, chances=np.full(dataset.targets.shape, value, np.float32)
        )
        for value in (0.2, 0.3)
    )
    keys = [_run_key(parts, trained.encoder, QUICK) for parts in (first, second)]
    assert keys[0] != keys[1]
    with pytest.raises(DataError, match="must have the shape of the labels"):
        prepare(trained.encoder, dataset, held_out, QUICK, None, chances=np.zeros((3, 5), np.float32))


def test_a_teacher_must_know_the_labels(trained: Model, dataset: Dataset, tmp_path: Path):
    data = dataset.with_labels((*dataset.labels, "envy"))
    with pytest.raises(UsageError, match="must know all labels of the data, envy is missing"):
        make_lessons([trained], data, None, CONFIG, tmp_path)


@pytest.mark.parametrize("kind", ["focal", "cross-entropy", "asymmetric"])
def test_the_loss_of_a_chance_is_the_one_to_be_expected(kind):
    config = Config().override({"loss.kind": kind}).loss
    logits = torch.linspace(-3, 3, 12).reshape(4, 3)
    present, absent = (element_loss(logits, torch.full((4, 3), truth, dtype=torch.int8), config) for truth in (1, 0))
    for chance in (0.0, 0.3, 1.0):
        loss = element_loss(logits, torch.full((4, 3), chance), config)
        torch.testing.assert_close(loss, chance * present + (1 - chance) * absent)
    assert not element_loss(logits, torch.full((4, 3), float(UNKNOWN)), config).any()


def test_the_distance_to_a_taught_chance_is_that_of_the_logits():
    config = Config().override({"loss.kind": "cross-entropy"}).loss
    logits = torch.tensor([[0.5, -2.0, 1.0, 3.0, 0.0]])
    chances = torch.tensor([[0.1, 0.02, 0.0, 1.0, -1.0]])  # two taught, two certain, one unknown
    added = element_loss(logits, chances, replace(config, distance=0.5)) - element_loss(logits, chances, config)
    expected = [0.5 * (0.5 - np.log(0.1 / 0.9)) ** 2, 0.5 * (-2 - np.log(0.02 / 0.98)) ** 2, 0, 0, 0]
    np.testing.assert_allclose(added.numpy()[0], expected, rtol=1e-5)


def test_a_student_learns_what_its_teacher_says_of_texts_without_labels(dataset: Dataset, tmp_path: Path):
    teacher = train("tiny", dataset, config=PATIENT)
    blank = replace(dataset, targets=np.full_like(dataset.targets, UNKNOWN))
    lessons = make_lessons([teacher], blank, None, CONFIG, tmp_path)
    config = PATIENT.override({"loss.kind": "cross-entropy", "loss.weighting": "uniform"})
    held_out = replace(dataset, texts=tuple(f"well {text}" for text in dataset.texts))
    student = train("tiny", lessons.data, held_out, config=config, chances=lessons.chances)
    learnt = student.predict_proba(dataset.texts)
    for label in range(len(dataset.labels)):  # calibration moves the scores of a label, but keeps their order
        assert np.corrcoef(learnt[:, label], lessons.chances[:, label])[0, 1] > 0.9


def test_a_student_is_measured_on_labelled_rows(trained: Model, dataset: Dataset):
    chances = np.zeros(dataset.targets.shape, np.float32)
    with pytest.raises(UsageError, match="pass validation data"):
        prepare(trained.encoder, dataset, None, Config(), None, chances=chances)
