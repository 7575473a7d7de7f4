"""Projecting: translations carry what the model finds in their English, and the file says so to any reader."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from emoglot.data.dataset import Dataset
from emoglot.data.parallel import Parallel
from emoglot.data.registry import read
from emoglot.errors import DataError
from emoglot.labels import UNKNOWN
from emoglot.model import Model
from emoglot.training.project import ABSENT_BELOW, CANDIDATES, PRESENT_FROM, project, write_csv
from tests.conftest import LABELS, QUICK, make_dataset, train

ENGLISH = tuple(
    text for text, code in zip(make_dataset(8).texts, make_dataset(8).languages, strict=True) if code == "en"
)


@pytest.fixture(scope="module")
def teacher(dataset: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Model:
    """A model trained long enough to be sure of most things."""
    config = QUICK.override({"training.max_epochs": 60, "training.patience": 60, "loss.kind": "cross-entropy"})
    return train("tiny", dataset, config=config, cache=tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def parallel() -> Parallel:
    """Every English sentence in two invented languages, with signs that a table must quote."""
    count = len(ENGLISH)
    texts = tuple(f'{code}, "{text}"; 😂' for code in ("xa", "xb") for text in ENGLISH)
    return Parallel(
        ENGLISH, texts, np.tile(np.arange(count), 2), ("xa",) * count + ("xb",) * count, ("ours",) * 2 * count
    )


def test_scores_of_the_english_become_labels_and_doubtful_ones_unknown(teacher, parallel):
    data = project(teacher, parallel, 1000)
    predictions = dict(zip(ENGLISH, teacher.predict(ENGLISH), strict=True))
    english_of = dict(zip(parallel.texts, (ENGLISH[index] for index in parallel.english_of), strict=True))
    seen = set()
    for text, row in zip(data.texts, data.targets, strict=True):
        prediction = predictions[english_of[text]]
        for name, target in zip(LABELS, row.tolist(), strict=True):
            score = prediction.scores[name]
            doubtful = ABSENT_BELOW <= score < PRESENT_FROM
            assert target == (UNKNOWN if doubtful else score >= PRESENT_FROM)
            seen.add(target)
    assert seen == {0, 1, UNKNOWN}
    assert data.labels == LABELS


def test_each_language_gets_at_most_so_many_texts_and_as_many_without_emotion_as_with(teacher, parallel):
    for limit in (2, 5, 10, 1000):
        data = project(teacher, parallel, limit)
        for language in ("xa", "xb"):
            own = data.select([row for row, code in enumerate(data.languages) if code == language])
            emotional = int((own.targets == 1).any(axis=1).sum())
            neutral = int((own.targets == 0).all(axis=1).sum())
            assert 0 < emotional <= limit // 2
            assert neutral <= emotional
            assert emotional + neutral == len(own)
    assert project(teacher, parallel, 10, seed=1).texts != project(teacher, parallel, 10).texts
    assert project(teacher, parallel, 10).texts == project(teacher, parallel, 10).texts


class FixedTeacher(Model):
    """Returns given scores, and records the texts it scored."""

    def __init__(self, scores: dict[str, tuple[float, ...]]) -> None:
        self.scores, self.asked = scores, []

    labels = LABELS

    def analyse(self, texts, language=None):
        self.asked += texts
        scores = np.array([self.scores[text] for text in texts], dtype=np.float32)
        return SimpleNamespace(scores=scores, is_read=np.ones(len(texts), np.bool_))


def same_text(texts: tuple[str, ...]) -> Parallel:
    return Parallel(texts, texts, np.arange(len(texts)), ("xa",) * len(texts), ("ours",) * len(texts))


def test_english_itself_is_labelled_on_demand(teacher, parallel):
    data = project(teacher, parallel, 2, english=6)
    own = [text for text, code in zip(data.texts, data.languages, strict=True) if code == "en"]
    assert 2 < len(own) <= 6
    assert set(own) <= set(ENGLISH)
    assert set(project(teacher, parallel, 4).languages) == {"xa", "xb"}


def test_the_bounds_of_doubt():
    scores = {
        "present from the bound on": (PRESENT_FROM, 0.49, ABSENT_BELOW, 0.14, 0.01),
        "absent all of them": (0.14, 0.01, 0.01, 0.01, 0.01),
        "doubtful and so left out": (ABSENT_BELOW, 0.01, 0.01, 0.01, 0.01),
    }
    data = project(FixedTeacher(scores), same_text(tuple(scores)), 10)
    assert data.texts == ("present from the bound on", "absent all of them")
    assert data.targets.tolist() == [[1, UNKNOWN, UNKNOWN, 0, 0], [0] * 5]


def test_sentences_come_before_words():
    words = tuple(f"word{row}" for row in range(40)) + tuple(f"two words{row}" for row in range(40))
    longer = tuple(f"now three words{row}" for row in range(40))
    scores = {text: (0.9 if row % 2 else 0.1,) * len(LABELS) for row, text in enumerate(words + longer)}
    for limit in (2, 10, 14, 1000):
        teacher = FixedTeacher(scores)
        chosen = set(project(teacher, same_text(words + longer), limit).texts)
        assert len(teacher.asked) == min(CANDIDATES * limit, len(scores))
        if CANDIDATES * limit <= len(longer):
            assert chosen <= set(teacher.asked) <= set(longer)
        else:
            assert set(longer) < set(teacher.asked)
            assert chosen & set(words)


def test_english_without_a_word_says_nothing(teacher):
    texts = ("I am so happy no1", "\u200b", "The train leaves at noon no1")
    assert "\u200b" not in project(teacher, same_text(texts), 100).texts


def test_no_translations_are_told(teacher, parallel):
    with pytest.raises(DataError, match="no pair is left"):
        project(teacher, parallel.select(np.arange(0)), 100)


def test_the_table_reads_back_to_the_same_data(teacher, parallel, tmp_path):
    data = project(teacher, parallel, 1000)
    write_csv(data, tmp_path / "deep" / "projected.csv")
    again = read(tmp_path / "deep" / "projected.csv")
    assert (again.texts, again.labels, again.languages) == (data.texts, data.labels, data.languages)
    assert np.array_equal(again.targets, data.targets)
    assert UNKNOWN in again.targets
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["projected.csv"]
