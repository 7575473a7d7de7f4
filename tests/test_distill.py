"""Distilling: translations come to lie beside their English, runs repeat and go on, and a language can be added."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from emoglot import student
from emoglot.cli.distill import distill as command
from emoglot.config import DistillConfig
from emoglot.data.dataset import Dataset
from emoglot.distill import distil, extend
from emoglot.encoders import load_encoder
from emoglot.encoders.onnx import OnnxEncoder
from emoglot.errors import DataError, ModelError, TrainingError
from emoglot.labels import to_targets
from emoglot.model import EmotionClassifier, load
from emoglot.parallel import Parallel, read_parallel
from emoglot.text import normalise_text
from tests.conftest import QUICK

SLOTS = (
    ("my sister", "our teacher", "the driver", "his friend", "that neighbour", "every child", "nobody here"),
    ("is", "was", "seems", "became"),
    ("happy", "furious", "afraid", "weeping", "busy", "tall"),
    ("about", "despite", "after", "without"),
    ("the rain", "this news", "our garden", "long journeys", "a broken window", "some music", "dinner"),
)
LABEL_OF = {"happy": "joy", "furious": "anger", "afraid": "fear", "weeping": "sadness"}
LABELS = ("anger", "fear", "joy", "sadness")
GEORGIAN, CHEROKEE = 0x10D0, 0x13A0
FEW = DistillConfig(vocabulary=3100, dim=16, epochs=0.15, batch_size=32, learning_rate=0.02)
TINY = load_encoder("tiny")


def sentences(count: int, seed: int = 0) -> list[str]:
    """Fill the slots, leaving some out: with a word of each in all sentences, none could tell which word means what."""
    rng = random.Random(seed)
    shapes = [[slot for slot in SLOTS if slot is SLOTS[2] or rng.random() < 0.7] for _ in range(count)]
    return sorted({" ".join(map(rng.choice, shape)) for shape in shapes})


def translate(sentence: str, script: int) -> str:
    """Put an invented word, always the same, in the place of every English one."""

    def invented(word: str) -> str:
        rng = random.Random(f"{word} {script}")
        return "".join(chr(script + rng.randrange(30)) for _ in range(rng.randint(3, 6)))

    return " ".join(map(invented, sentence.split()))


def pairs(script: int, language: str, count: int = 700) -> Parallel:
    english = sentences(count)
    texts = tuple(translate(sentence, script) for sentence in english)
    row_count = len(english)
    return Parallel(tuple(english), texts, np.arange(row_count), (language,) * row_count, ("ours",) * row_count)


def labelled(texts: list[str]) -> Dataset:
    names = [{LABEL_OF[word] for word in text.split() if word in LABEL_OF} for text in texts]
    return Dataset(tuple(texts), to_targets(names, LABELS), LABELS, ("en",) * len(texts), ("ours",) * len(texts))


def raw_means(encoder: OnnxEncoder, texts: tuple[str, ...]) -> np.ndarray:
    ragged = encoder.encode([normalise_text(text) for text in texts])
    return np.add.reduceat(ragged.vectors, ragged.splits[:-1]) / np.diff(ragged.splits)[:, None]


def means(encoder: OnnxEncoder, texts: tuple[str, ...]) -> np.ndarray:
    rows = raw_means(encoder, texts)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def found_share(encoder: OnnxEncoder, held_out: Parallel) -> float:
    """Give the share of translations whose nearest English sentence is their own."""
    nearest = (means(encoder, held_out.texts) @ means(encoder, held_out.english).T).argmax(axis=1)
    return float((nearest == held_out.english_of).mean())


def content_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> OnnxEncoder:
    out = tmp_path_factory.mktemp("base") / "georgian"
    config = DistillConfig(vocabulary=3100, dim=24, epochs=1.5, batch_size=32, learning_rate=0.02)
    return load_encoder(distil(pairs(GEORGIAN, "xg"), TINY, config, out))


@pytest.fixture(scope="module")
def model(base: OnnxEncoder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    config = QUICK.override({"training.max_epochs": 6})
    folder = tmp_path_factory.mktemp("model")
    classifier = EmotionClassifier(base, config=config, cache=folder / "cache").fit_datasets(
        labelled(sentences(400, 1))
    )
    return classifier.save(folder / "model")


@pytest.fixture(scope="module")
def extended(base: OnnxEncoder, tmp_path_factory: pytest.TempPathFactory) -> OnnxEncoder:
    out = tmp_path_factory.mktemp("extended") / "cherokee"
    return load_encoder(extend(pairs(CHEROKEE, "xc"), base, DistillConfig.for_extension(), out))


def test_held_out_translations_lie_nearest_to_their_own_english(base):
    _, held_out = pairs(GEORGIAN, "xg").split()
    assert len(held_out) > 12
    assert found_share(base, held_out) > 0.6  # chance is below 0.08


def test_a_judges_scores_and_labelled_texts_are_learnt_from_too(model, tmp_path):
    english = labelled(sentences(60, 2))
    plain, judged = (
        distil(pairs(GEORGIAN, "xg", 60), TINY, FEW, tmp_path / name / "out", **more)
        for name, more in (("plain", {}), ("judged", {"judge": load(model), "labelled": english}))
    )
    assert content_of(plain)["tokenizer.json"] != content_of(judged)["tokenizer.json"]
    assert content_of(plain)["model.onnx"] != content_of(judged)["model.onnx"]


def test_written_texts_give_words_and_are_put_to_a_teacher_that_reads_them(tmp_path):
    written = labelled([f"zork blimey {text}" for text in sentences(60, 3)])
    plain, unread, read = (
        distil(pairs(GEORGIAN, "xg", 60), TINY, FEW.override(settings), tmp_path / name / "out", written=data)
        for name, data, settings in (
            ("plain", None, {}),
            ("unread", written, {"teacher_languages": ["de"]}),
            ("read", written, {"teacher_languages": ["de", "en"]}),
        )
    )
    contents = [content_of(folder) for folder in (plain, unread, read)]
    assert contents[0]["tokenizer.json"] != contents[1]["tokenizer.json"] == contents[2]["tokenizer.json"]
    assert contents[1]["model.onnx"] != contents[2]["model.onnx"]


def test_the_same_seed_gives_the_same_files(tmp_path):
    first, second, other = (
        distil(pairs(GEORGIAN, "xg", 60), TINY, config, tmp_path / name / "out")
        for name, config in (("first", FEW), ("second", FEW), ("other", FEW.override({"seed": 1})))
    )
    assert content_of(first) == content_of(second)
    assert content_of(first)["model.onnx"] != content_of(other)["model.onnx"]


class KilledError(Exception):
    """Stands for whatever ends a process between two steps."""


def kill_at(step: int):
    def say(message: str) -> None:
        if message.startswith(f"step {step} "):
            raise KilledError

    return say


def test_an_interrupted_run_goes_on_to_the_same_encoder(tmp_path, monkeypatch):
    monkeypatch.setattr(student, "STEPS_PER_REPORT", 10)
    monkeypatch.setattr(student, "STEPS_PER_CHECKPOINT", 20)
    parallel, said = pairs(GEORGIAN, "xg", 60), []
    expected = distil(parallel, TINY, FEW, tmp_path / "whole" / "out")
    out = tmp_path / "broken" / "out"
    for step in (10, 30):
        with pytest.raises(KilledError):
            distil(parallel, TINY, FEW, out, say=kill_at(step))
    distil(parallel, TINY, FEW, out, say=said.append)
    assert "going on from step 20" in said
    assert content_of(out) == content_of(expected)


def test_an_interrupted_extension_goes_on_to_the_same_encoder(base, tmp_path, monkeypatch):
    monkeypatch.setattr(student, "STEPS_PER_REPORT", 10)
    monkeypatch.setattr(student, "STEPS_PER_CHECKPOINT", 20)
    config = DistillConfig(vocabulary=120, epochs=6, batch_size=32)
    parallel = pairs(CHEROKEE, "xc", 100)
    expected = extend(parallel, base, config, tmp_path / "whole" / "out")
    with pytest.raises(KilledError):
        extend(parallel, base, config, tmp_path / "broken" / "out", say=kill_at(30))
    assert content_of(extend(parallel, base, config, tmp_path / "broken" / "out")) == content_of(expected)


class OtherTeacher(type(TINY)):
    fingerprint = "other"

    def encode(self, texts):
        return super().encode([text[::-1] for text in texts])


def test_another_teacher_is_not_answered_with_what_the_last_one_taught(tmp_path):
    parallel, out = pairs(GEORGIAN, "xg", 60), tmp_path / "out"
    before = content_of(distil(parallel, TINY, FEW, out))
    with pytest.warns(UserWarning, match="belongs to another run"):
        distil(parallel, OtherTeacher(), FEW, out)
    assert content_of(out)["model.onnx"] != before["model.onnx"]


def test_a_vocabulary_too_small_for_the_emoji_is_refused(tmp_path):
    with pytest.raises(DataError, match="no vocabulary of 300 pieces"):
        distil(pairs(GEORGIAN, "xg", 60), TINY, FEW.override({"vocabulary": 300}), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_extending_keeps_the_old_vectors_bit_for_bit(base, extended):
    old, new = base.table(), extended.table()
    assert len(new) > len(old)
    assert np.array_equal(new[: len(old)], old)
    assert [extended.tokenizer.id_to_token(piece) for piece in range(len(old))] == [
        base.tokenizer.id_to_token(piece) for piece in range(len(old))
    ]
    assert extended.description.extends == (base.fingerprint,)


def test_an_extended_encoder_finds_the_english_of_held_out_translations(extended):
    _, held_out = pairs(CHEROKEE, "xc").split()
    assert found_share(extended, held_out) > 0.6


def test_new_pieces_mean_what_the_english_means_in_length_as_in_direction(extended):
    _, held_out = pairs(CHEROKEE, "xc").split()
    wanted, found = raw_means(extended, held_out.english), raw_means(extended, held_out.texts)
    assert np.square(found - wanted).sum() < 0.1 * np.square(wanted).sum()


def test_an_extended_encoder_changes_no_score_of_the_old_languages(base, extended, model):
    texts = [*sentences(40, 3), *(translate(text, GEORGIAN) for text in sentences(40, 3)), "", "😂"]
    assert load(model, encoder=extended.folder).predict(texts) == load(model, encoder=base.folder).predict(texts)


def test_a_language_becomes_readable_and_is_labelled_as_its_english(base, extended, model):
    english = sentences(80, 4)
    texts = [translate(text, CHEROKEE) for text in english]
    for prediction in load(model).predict(texts):
        assert prediction.unreadable
        assert set(prediction.scores.values()) == {0}
        assert prediction.labels == ()
    reader = load(model, encoder=extended)
    expected, found = reader.predict(english), reader.predict(texts)
    assert not any(prediction.unreadable for prediction in [*expected, *found])
    assert any(prediction.labels for prediction in expected)
    assert np.mean([one.labels == other.labels for one, other in zip(expected, found, strict=True)]) > 0.8


def test_a_text_of_unknown_letters_is_unreadable_however_short(model, extended):
    reader = load(model, encoder=extended)
    unreadable = ["你", "你好", "你!", "@anna 你", "你 @anna", "is 你好吗", "你 😂", "!"]
    readable = ["is 你", "happy 你好", "@anna happy", "happy", "happy!", "😂", ""]
    found = [prediction.unreadable for prediction in reader.predict([*unreadable, *readable])]
    assert found == [True] * len(unreadable) + [False] * len(readable)


def test_the_command_extends_with_settings_for_little_text(base, tmp_path):
    table = tmp_path / "xc.tsv"
    few = pairs(CHEROKEE, "xc", 100)
    table.write_text("".join(map("{}\t{}\n".format, few.english, few.texts)), encoding="utf-8")
    command(out=tmp_path / "told" / "out", parallel=[table], extend=str(base.folder), set_=["epochs=2"])
    config = DistillConfig.for_extension().override({"epochs": 2})
    expected = extend(read_parallel([table]), base, config, tmp_path / "called" / "out")
    assert content_of(tmp_path / "told" / "out") == content_of(expected)


@pytest.mark.parametrize("steps", [1, 9, 36, 700, 2000, 50_000])
def test_the_rate_rises_in_a_tenth_of_the_steps_at_most_and_falls_to_the_end(steps):
    rates = [student.schedule(step, steps) for step in range(steps)]
    highest = int(np.argmax(rates))
    assert highest <= min(steps / 10, student.WARM_UP_STEPS)
    assert rates == sorted(rates[: highest + 1]) + sorted(rates[highest + 1 :], reverse=True)
    assert rates[highest] > 0.85
    assert min(rates) > 0


def test_an_unrelated_encoder_is_still_refused(model, tmp_path):
    stranger = distil(pairs(GEORGIAN, "xg", 60), TINY, FEW.override({"dim": 24}), tmp_path / "stranger")
    with pytest.raises(ModelError, match="its scores would mean nothing"):
        load(model, encoder=stranger)


def test_there_must_be_something_to_add(base, tmp_path):
    english = pairs(GEORGIAN, "xg", 60).english
    same = Parallel(english, english, np.arange(len(english)), ("en",) * len(english), ("ours",) * len(english))
    with pytest.raises(TrainingError, match="nothing to add"):
        extend(same, base, DistillConfig(vocabulary=60), tmp_path / "out")


def test_pairs_that_are_never_shown_teach_nothing(base, tmp_path):
    config = DistillConfig(vocabulary=120, sources={"ours": 0.0})
    with pytest.raises(TrainingError, match="nothing to learn"):
        extend(pairs(CHEROKEE, "xc", 60), base, config, tmp_path / "out")
