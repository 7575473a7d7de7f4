"""Smaller encoders: what is kept reads as before, and everything can still be read."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from emoglot.cli import app
from emoglot.encoders.export import export_encoder
from emoglot.encoders.hub import HubEncoder
from emoglot.encoders.onnx import OnnxEncoder
from emoglot.encoders.registry import alphabet_of, load_encoder, load_trainable
from emoglot.encoders.shrink import shrink
from emoglot.errors import EncoderError, UsageError
from emoglot.training.project import write_csv
from tests.conftest import make_dataset

TEXTS = make_dataset(1).texts


@pytest.fixture(scope="module")
def large(xlmr_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export_encoder(HubEncoder("tiny", source=xlmr_folder), tmp_path_factory.mktemp("large") / "large", "large")


def vocabulary(folder: Path) -> list[str]:
    return [piece for piece, _ in json.loads((folder / "tokenizer.json").read_text("utf-8"))["model"]["vocab"]]


def layers_of(folder: Path) -> range:
    return range(json.loads((folder / "config.json").read_text("utf-8"))["num_hidden_layers"])


def pieces_of(folder: Path, text: str) -> list[str]:
    encoder = load_encoder(folder)
    assert isinstance(encoder, OnnxEncoder)
    return [str(token) for token in encoder.tokenizer.encode(text).tokens]


def test_with_all_layers_and_pieces_it_is_the_same_encoder(large, tmp_path):
    whole = shrink(large, tmp_path / "whole", layers_of(large), len(vocabulary(large)), TEXTS)
    np.testing.assert_array_equal(load_encoder(whole).encode(TEXTS).vectors, load_encoder(large).encode(TEXTS).vectors)


def test_texts_whose_pieces_are_kept_read_as_before(large, tmp_path):
    kept = TEXTS[:8]
    characters = sum(len(piece.removeprefix("▁")) <= 1 for piece in vocabulary(large))
    small = shrink(large, tmp_path / "small", layers_of(large), len(vocabulary(large)) - 1, kept)
    assert characters < len(vocabulary(small)) < len(vocabulary(large))
    before, after = (load_encoder(folder).encode(kept) for folder in (large, small))
    np.testing.assert_array_equal(before.splits, after.splits)
    np.testing.assert_allclose(before.vectors, after.vectors, atol=1e-6)
    assert [pieces_of(small, text) for text in kept] == [pieces_of(large, text) for text in kept]


def test_a_word_whose_piece_is_gone_is_spelt_and_never_unknown(large, tmp_path):
    characters = sum(len(piece.removeprefix("▁")) <= 1 for piece in vocabulary(large))
    small = shrink(large, tmp_path / "small", [1], characters + 5, TEXTS[:1])
    for text in TEXTS:
        assert pieces_of(small, text).count("<unk>") == pieces_of(large, text).count("<unk>")
    assert sum(len(pieces_of(small, text)) for text in TEXTS) > sum(len(pieces_of(large, text)) for text in TEXTS)


def test_it_can_be_trained_further(large, tmp_path):
    small = shrink(large, tmp_path / "small", [1], len(vocabulary(large)) - 1, TEXTS)
    encoder = load_trainable(small)
    assert len(encoder.model.encoder.layer) == 1
    assert encoder.tokenizer.pad_token_id == encoder.model.config.pad_token_id
    np.testing.assert_allclose(encoder.encode(TEXTS).vectors, load_encoder(small).encode(TEXTS).vectors, atol=1e-5)


@pytest.mark.parametrize(
    ("layers", "pieces", "message"),
    [
        ([], 119, r"must be some of 0 to 1, in order, got \[\]"),
        ([1, 0], 119, r"in order, got \[1, 0\]"),
        ([0, 2], 119, r"in order, got \[0, 2\]"),
        ([0], 5, "at least the .* got 5"),
    ],
)
def test_what_can_not_be_kept_is_told(large, tmp_path, layers, pieces, message):
    with pytest.raises(UsageError, match=message):
        shrink(large, tmp_path / "small", layers, pieces, TEXTS)
    assert not (tmp_path / "small").exists()


def test_a_folder_without_an_encoder_is_told(tmp_path):
    with pytest.raises(EncoderError, match=r"is not a float32 encoder folder: config.json cannot be read"):
        shrink(tmp_path, tmp_path / "small", [1], 600, TEXTS)


def test_a_text_in_letters_that_the_vocabulary_lacks_is_foreign(large):
    alphabet = alphabet_of(load_encoder(large))
    assert alphabet is not None
    foreign = ["ᏣᎳᎩ", "ᏣᎳᎩ!!!", "is ᏣᎳᎩ", "<user> ᏣᎳ", "⍨"]
    familiar = ["", "I am so happy", "happy Ꮳ", "أنا سعيد", "!"]
    assert [alphabet.is_foreign(text) for text in [*foreign, *familiar]] == [True] * 5 + [False] * 5
    # The transformers library wraps the same tokenizer.
    assert alphabet_of(load_trainable(large)).is_foreign("ᏣᎳᎩ")
    assert alphabet_of(load_encoder("tiny")) is None


def test_mentions_are_not_read(large, tmp_path):
    small = shrink(large, tmp_path / "small", layers_of(large), len(vocabulary(large)), TEXTS)
    for text in TEXTS[:4]:
        alone, mentioning = (load_encoder(small).encode([given]) for given in (text, f"<user> {text} <user>"))
        np.testing.assert_array_equal(alone.vectors, mentioning.vectors)
        # The first token may begin at the space before it.
        np.testing.assert_array_equal(alone.spans[1:] + len("<user> "), mentioning.spans[1:])


def test_the_command_keeps_the_pieces_of_a_recipe(large, tmp_path):
    write_csv(make_dataset(1), tmp_path / "mine.csv")
    (tmp_path / "recipe.toml").write_text('[[data.train]]\npath = "mine.csv"\n', encoding="utf-8")
    options = ["--layers", "0", "--pieces", str(len(vocabulary(large)) - 1), "--root", str(tmp_path)]
    arguments = [str(large), *options, "--config", str(tmp_path / "recipe.toml"), "--out", str(tmp_path / "small")]
    result = CliRunner().invoke(app, ["encoders", "shrink", *arguments])
    assert result.exit_code == 0, result.output
    assert list(layers_of(tmp_path / "small")) == [0]
    wrong = CliRunner().invoke(
        app, ["encoders", "shrink", *arguments[:1], "--layers", "all", *arguments[3:-1], str(tmp_path / "other")]
    )
    assert "--layers must be numbers such as 0,2,4, got 'all'" in str(wrong.exception or wrong.output)


def test_an_encoder_with_an_added_language_is_told_to_be_made_smaller_first(large, tmp_path):
    tokenizer = json.loads((large / "tokenizer.json").read_text("utf-8"))
    tokenizer["added_tokens"].append({**tokenizer["added_tokens"][0], "id": 9999, "content": "kazukuta"})
    wider = shutil.copytree(large, tmp_path / "wider")
    (wider / "tokenizer.json").write_text(json.dumps(tokenizer), "utf-8")
    with pytest.raises(EncoderError, match="shrink it first, then add the language"):
        shrink(wider, tmp_path / "small", [0], len(vocabulary(large)), TEXTS)
