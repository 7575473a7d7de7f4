"""Encoders made of pieces: the table comes back, spans point into the text, and what is not known says nothing."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from emoglot.encoders.onnx import Description, OnnxEncoder
from emoglot.encoders.pieces import UNKNOWN_ID, extend_tokenizer, train_tokenizer, write_pieces
from emoglot.errors import DataError, EncoderError
from emoglot.text import normalise_text
from tests.conftest import make_dataset

TEXTS = [normalise_text(text) for text in make_dataset(3).texts]
DIM = 12


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(TEXTS, 200, "😂😱")


@pytest.fixture(scope="module")
def table(tokenizer) -> np.ndarray:
    spread = np.random.default_rng(0).uniform(0.01, 9, (tokenizer.get_vocab_size(), 1))
    return (np.random.default_rng(1).normal(size=(len(spread), DIM)) * spread).astype(np.float32)


@pytest.fixture(scope="module")
def folder(tokenizer, table, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("encoders") / "pieces"
    write_pieces(path, "pieces", tokenizer, table)
    return path


@pytest.fixture(scope="module")
def encoder(folder) -> OnnxEncoder:
    return OnnxEncoder(folder)


def test_the_table_comes_back_within_half_a_level_of_int8(encoder, table):
    found = encoder.table()
    steps = np.abs(table).max(axis=1, keepdims=True) / 127
    assert (np.abs(found - table)[UNKNOWN_ID + 1 :] <= (0.51 * steps)[UNKNOWN_ID + 1 :]).all()
    assert (found[UNKNOWN_ID] == 0).all()


def test_a_table_that_was_written_once_is_written_again_unchanged(encoder, tokenizer, tmp_path):
    write_pieces(tmp_path / "again", "again", tokenizer, encoder.table())
    assert np.array_equal(OnnxEncoder(tmp_path / "again").table(), encoder.table())


def test_a_text_gets_the_vectors_of_its_pieces_in_any_company(encoder):
    together = encoder.encode(TEXTS[:9])
    table = encoder.table()
    for row, text in enumerate(TEXTS[:9]):
        vectors = together.vectors[together.splits[row] : together.splits[row + 1]]
        assert np.array_equal(vectors, encoder.encode([text]).vectors)
        assert np.array_equal(vectors, table[encoder.tokenizer.encode(text).ids])
    assert encoder.count_tokens(TEXTS[:9]).tolist() == np.diff(together.splits).tolist()


def test_spans_point_at_the_pieces_of_the_text(encoder):
    for text in TEXTS[:16]:
        ragged = encoder.encode([text])
        pieces = encoder.tokenizer.encode(text).tokens
        for (start, end), piece in zip(ragged.spans.tolist(), pieces, strict=True):
            if piece != "▁":  # the space before a text, which is not in it
                assert text[start:end].strip().casefold() == piece.strip("▁")


def test_what_the_vocabulary_lacks_keeps_its_place_and_says_nothing(encoder):
    ragged = encoder.encode(["happy 你好 day"])
    spans = [(start, end) for start, end in ragged.spans.tolist()]
    is_unknown = (ragged.vectors == 0).all(axis=1)
    assert {
        "happy 你好 day"[start:end].strip() for (start, end), lost in zip(spans, is_unknown, strict=True) if lost
    } == {"你好"}
    assert encoder.encode([""]).splits.tolist() == [0, 0]


def test_case_is_folded_and_required_signs_are_known(encoder):
    assert np.array_equal(encoder.encode(["HAPPY Day"]).vectors, encoder.encode(["happy day"]).vectors)
    for sign in "😂😱":
        assert encoder.tokenizer.token_to_id(sign) not in (None, UNKNOWN_ID)


def test_a_long_text_is_cut_and_a_short_one_is_not_filled(encoder):
    assert encoder.count_tokens(["happy " * 5000]).tolist() == [encoder.description.max_tokens]
    assert len(encoder.encode(["happy", "happy " * 90]).spans) < encoder.description.max_tokens


def test_new_pieces_come_after_the_old_and_leave_old_texts_alone(tokenizer):
    georgian = [" ".join(chr(0x10D0 + (row * step) % 30) * 2 for step in range(1, 6)) for row in range(40)]
    larger = extend_tokenizer(tokenizer, georgian, 60)
    old = tokenizer.get_vocab_size()
    assert larger.get_vocab_size() > old
    assert [larger.id_to_token(piece) for piece in range(old)] == [tokenizer.id_to_token(piece) for piece in range(old)]
    for text in TEXTS:
        assert larger.encode(text).ids == tokenizer.encode(text).ids
    assert UNKNOWN_ID in tokenizer.encode(georgian[1]).ids
    assert UNKNOWN_ID not in larger.encode(georgian[1]).ids


def test_the_description_tells_what_was_extended(folder, tokenizer, table, tmp_path):
    write_pieces(tmp_path / "later", "later", tokenizer, table, extends=("one", "two"))
    assert Description.read(tmp_path / "later").extends == ("one", "two")
    described = Description.read(folder)
    assert (described.name, described.dim, described.extends, described.one_by_one) == ("pieces", DIM, (), False)
    described.write(folder)
    assert Description.read(folder) == described


def test_the_fingerprint_follows_the_vectors(folder, tokenizer, table, tmp_path):
    for name, vectors in (("same", table), ("other", 2 * table)):
        write_pieces(tmp_path / name, "pieces", tokenizer, vectors)
    same, other = (Description.read(tmp_path / name).fingerprint for name in ("same", "other"))
    assert same == Description.read(folder).fingerprint
    assert other != same


def describe(folder: Path, target: Path, **changes: object) -> Path:
    """Copy an encoder with another description."""
    target.mkdir()
    for path in folder.iterdir():
        (target / path.name).write_bytes(path.read_bytes())
    values = json.loads((folder / "encoder.json").read_text(encoding="utf-8")) | changes
    kept = {name: value for name, value in values.items() if value is not ...}
    (target / "encoder.json").write_text(json.dumps(kept), encoding="utf-8")
    return target


def test_an_older_description_says_nothing_of_extending(folder, tmp_path):
    for name, extends in (("older", ...), ("old", None)):
        assert OnnxEncoder(describe(folder, tmp_path / name, extends=extends)).description == Description.read(folder)
    for extends in (3, [3], "one", {"one": 1}, False):
        with pytest.raises(EncoderError, match="extends can't be"):
            Description.read(describe(folder, tmp_path / f"damaged {extends}", extends=extends))


def test_a_vocabulary_too_small_for_its_letters_is_refused():
    with pytest.raises(DataError, match="no vocabulary of 5 pieces"):
        train_tokenizer(TEXTS, 5)
