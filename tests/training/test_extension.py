"""Adding a language to a transformer: its words are learnt, everything else is read as before."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

import emoglot
from emoglot.cli.distill import distill as command
from emoglot.config import ExtensionConfig
from emoglot.data.parallel import Parallel
from emoglot.encoders.export import export_encoder
from emoglot.encoders.hub import HubEncoder
from emoglot.encoders.registry import load_encoder, load_trainable
from emoglot.errors import TrainingError, UsageError
from emoglot.training import extension
from emoglot.training.extension import WORD, choose_words, extend, mean_states
from tests.conftest import QUICK, make_dataset, train

ENGLISH = (
    ("I am so happy", "What a wonderful day", "I love you", "The train leaves", "She left", "I am furious"),
    ("about this", "more than yesterday", "at noon", "of the dark", "please help", "today"),
)
CHEROKEE = 0x13A0
FEW = ExtensionConfig(epochs=6, batch_size=16)
OTHERS = [*make_dataset(1).texts, "Où est la gare ?", "42 😂", ""]


def translate(sentence: str, first: str = "") -> str:
    """Put an invented word, always the same, in the place of every English one: in our letters, or in Cherokee's."""

    def invented(word: str) -> str:
        rng = random.Random(word)
        if first:
            return first + "".join(rng.choice("aeioumnkts") for _ in range(rng.randint(4, 7)))
        return "".join(chr(CHEROKEE + rng.randrange(30)) for _ in range(rng.randint(3, 6)))

    return " ".join(map(invented, sentence.split()))


def pairs(first: str = "") -> Parallel:
    sentences = [
        f"{one} {two} {three}" for one in ENGLISH[0] for two in ENGLISH[1] for three in ENGLISH[1] if two != three
    ]
    texts = tuple(translate(sentence, first) for sentence in sentences)
    count = len(sentences)
    return Parallel(tuple(sentences), texts, np.arange(count), ("chr",) * count, ("ours",) * count)


@pytest.fixture(scope="module", params=["none", "int8"])
def base(request: pytest.FixtureRequest, xlmr_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    encoder = HubEncoder("tiny", source=xlmr_folder)
    return export_encoder(encoder, tmp_path_factory.mktemp("base") / "base", "base", request.param)


@pytest.fixture(scope="module")
def extended(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return extend(pairs(), load_encoder(base), FEW, tmp_path_factory.mktemp("extended") / "extended")


def test_translations_come_to_lie_near_their_english(base, extended):
    _, held_out = pairs().split()
    assert len(held_out) > 3
    old, new = load_trainable(base), load_trainable(extended)
    english = mean_states(old, held_out.english)[held_out.english_of]
    before, after = (np.square(mean_states(each, held_out.texts) - english).sum(axis=1) for each in (old, new))
    assert after.mean() < 0.5 * before.mean()


def test_other_texts_are_read_as_before(base, extended):
    before, after = (load_encoder(folder).encode(OTHERS) for folder in (base, extended))
    np.testing.assert_array_equal(before.splits, after.splits)
    np.testing.assert_array_equal(before.spans, after.spans)
    np.testing.assert_allclose(before.vectors, after.vectors, atol=1e-4)


def test_a_model_takes_the_wider_encoder_and_can_read_the_language(base, extended, tmp_path):
    model = train(base, make_dataset(), config=QUICK)
    folder = model.save(tmp_path / "model")
    wider = emoglot.load(folder, encoder=extended)
    np.testing.assert_allclose(wider.predict_proba(OTHERS), model.predict_proba(OTHERS), atol=0.01)
    text = pairs().texts[0]
    assert model.predict([text])[0].unreadable
    assert not wider.predict([text])[0].unreadable
    assert not wider.predict([translate("yesterday zebra")])[0].unreadable  # a word never seen, in letters that were


def test_words_of_our_letters_are_tokens_only_as_whole_words(base, tmp_path):
    wider = load_trainable(extend(pairs("q"), load_encoder(base), ExtensionConfig(epochs=1), tmp_path / "wider"))
    word = translate("yesterday", "q")
    tokens = [wider.tokenizer.tokenize(text) for text in (f"a {word}!", f"a{word}", f"{word}o")]
    assert [word in found for found in tokens] == [True, False, False]


def test_words_are_chosen_by_use_and_names_are_left_out(base):
    encoder = load_trainable(base)
    texts = ["Tom kazukuta kazukuta", "kazukuta Tom", "Tom limbuwili", "limbuwili once", "Tom kazukuta"]
    english = ["Tom is happy"] * 5
    assert choose_words(encoder, texts, english, 10) == ["kazukuta", "limbuwili"]
    assert choose_words(encoder, texts, english, 1) == ["kazukuta"]


def test_marks_are_parts_of_words_and_pieces_of_the_vocabulary_are_none(base):
    assert WORD.findall("ދިވެހި kɔ̀fí, n'ko") == ["ދިވެހި", "kɔ̀fí", "n'ko"]
    encoder = load_trainable(base)
    piece = next(piece for piece in encoder.tokenizer.get_vocab() if piece.isalpha() and len(piece) > 1)
    assert choose_words(encoder, [f"{piece} kazukuta"] * 3, ["so it is"] * 3, 10) == ["kazukuta"]


def test_an_interrupted_extension_goes_on_to_the_same_vectors(base, extended, tmp_path, monkeypatch):
    steps = 0
    usual = extension._Course._loss

    def interrupted(course, rows):
        nonlocal steps
        steps += 1
        if steps > 20:
            raise KeyboardInterrupt
        return usual(course, rows)

    monkeypatch.setattr(extension._Course, "_loss", interrupted)
    monkeypatch.setattr(extension.Checkpoint, "is_due", lambda checkpoint: True)
    with pytest.raises(KeyboardInterrupt):
        extend(pairs(), load_encoder(base), FEW, tmp_path / "again")
    monkeypatch.setattr(extension._Course, "_loss", usual)
    said: list[str] = []
    again = extend(pairs(), load_encoder(base), FEW, tmp_path / "again", said.append)
    assert "resuming from step 20" in said
    assert load_encoder(again).fingerprint == load_encoder(extended).fingerprint


def test_what_can_not_be_extended_is_told(base, tmp_path):
    with pytest.raises(
        UsageError, match="runs without torch can be extended, got 'tiny': export one from the hub with `emoglot"
    ):
        extend(pairs(), load_encoder("tiny"), FEW, tmp_path / "wider")
    same = Parallel(("a b",) * 3, ("a b",) * 3, np.arange(3), ("xx",) * 3, ("ours",) * 3)
    with pytest.raises(
        TrainingError, match="must contain words that the encoder does not know, got none: there is nothing to add"
    ):
        extend(same, load_encoder(base), FEW, tmp_path / "wider")


def test_the_command_extends_with_settings(base, tmp_path, capsys):
    path = tmp_path / "chr.tsv"
    rows = pairs()
    path.write_text("".join(f"{one}\t{two}\n" for one, two in zip(rows.english, rows.texts, strict=True)), "utf-8")
    command(out=tmp_path / "wider", parallel=[path], extend=str(base), set_=["epochs=1", "words=30"])
    captured = capsys.readouterr()
    assert "30 new words" in captured.err
    assert "held-out pairs: distance from their English" in captured.err
    assert str(tmp_path / "wider") in captured.out
