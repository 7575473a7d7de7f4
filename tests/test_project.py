"""Projecting: translations carry what the model finds in their English, and the file says so to any reader."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from emoglot.data import read
from emoglot.data.dataset import Dataset
from emoglot.labels import UNKNOWN
from emoglot.model import EmotionClassifier
from emoglot.parallel import Parallel
from emoglot.project import DOUBTFUL_FROM, project, write_csv
from tests.conftest import LABELS, QUICK, make_dataset

ENGLISH = tuple(
    text for text, code in zip(make_dataset(8).texts, make_dataset(8).languages, strict=True) if code == "en"
)


@pytest.fixture(scope="module")
def judge(dataset: Dataset, tmp_path_factory: pytest.TempPathFactory) -> EmotionClassifier:
    """A model trained long enough to be sure of something, with a threshold that leaves it in doubt about joy."""
    config = QUICK.override({"training.max_epochs": 60, "training.patience": 60, "loss.kind": "cross-entropy"})
    model = EmotionClassifier("tiny", config=config, cache=tmp_path_factory.mktemp("cache")).fit_datasets(dataset)
    thresholds = model.state.thresholds.copy()
    joy = LABELS.index("joy")
    thresholds[joy] = 1.5 * np.median(model.predict_proba(ENGLISH)[:, joy])
    return model.with_state(replace(model.state, thresholds=thresholds))


@pytest.fixture(scope="module")
def parallel() -> Parallel:
    """Every English sentence in two invented languages, with signs that a table must quote."""
    count = len(ENGLISH)
    texts = tuple(f'{code}, "{text}"; 😂' for code in ("xa", "xb") for text in ENGLISH)
    return Parallel(
        ENGLISH, texts, np.tile(np.arange(count), 2), ("xa",) * count + ("xb",) * count, ("ours",) * 2 * count
    )


def test_labels_are_those_of_the_english(judge, parallel):
    data = project(judge, parallel, 1000)
    predictions = dict(zip(ENGLISH, judge.predict(ENGLISH), strict=True))
    english_of = dict(zip(parallel.texts, (ENGLISH[index] for index in parallel.english_of), strict=True))
    seen = set()
    for text, row in zip(data.texts, data.targets, strict=True):
        prediction = predictions[english_of[text]]
        for name, target in zip(LABELS, row.tolist(), strict=True):
            threshold = judge.thresholds_[name]
            doubtful = DOUBTFUL_FROM * threshold <= prediction.scores[name] < threshold
            assert target == (UNKNOWN if doubtful else name in prediction.labels)
            seen.add(target)
    assert seen == {0, 1, UNKNOWN}
    assert data.labels == LABELS


def test_each_language_gets_at_most_so_many_texts_and_as_many_without_emotion_as_with(judge, parallel):
    for limit in (2, 5, 10, 1000):
        data = project(judge, parallel, limit)
        for language in ("xa", "xb"):
            own = data.select([row for row, code in enumerate(data.languages) if code == language])
            emotional = int((own.targets == 1).any(axis=1).sum())
            neutral = int((own.targets == 0).all(axis=1).sum())
            assert 0 < emotional <= limit // 2
            assert neutral <= emotional
            assert emotional + neutral == len(own)
    assert project(judge, parallel, 10, seed=1).texts != project(judge, parallel, 10).texts
    assert project(judge, parallel, 10).texts == project(judge, parallel, 10).texts


def test_english_without_a_word_says_nothing(judge):
    texts = ("I am so happy no1", "\u200b", "The train leaves at noon no1")
    unread = Parallel(texts, texts, np.arange(3), ("xa",) * 3, ("ours",) * 3)
    assert "\u200b" not in project(judge, unread, 100).texts


def test_the_table_reads_back_to_the_same_data(judge, parallel, tmp_path):
    data = project(judge, parallel, 20)
    write_csv(data, tmp_path / "deep" / "projected.csv")
    again = read(tmp_path / "deep" / "projected.csv")
    assert (again.texts, again.labels, again.languages) == (data.texts, data.labels, data.languages)
    assert np.array_equal(again.targets, data.targets)
    assert UNKNOWN in again.targets
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["projected.csv"]
