"""What every encoder keeps: shapes, spans, independence of neighbours."""

from __future__ import annotations

import json
import shutil
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from emoglot.encoders.base import Encoder
from emoglot.encoders.hub import HubEncoder
from emoglot.encoders.tiny import TinyEncoder
from tests.encoded import check_spans, rows, spans
from tests.encoders.tools import NETWORKS, TEXTS


def test_shapes_agree(encoder: Encoder) -> None:
    encoded = encoder.encode(TEXTS)
    assert len(encoded) == len(TEXTS)
    assert encoded.splits[0] == 0
    assert (np.diff(encoded.splits) >= 0).all()
    assert encoded.vectors.shape == (encoded.splits[-1], encoder.dim)
    assert encoded.spans.shape == (encoded.splits[-1], 2)
    assert encoded.vectors.dtype == np.float32
    assert np.isfinite(encoded.vectors).all()
    frame = 0 if encoder.name == "tiny" else 2
    assert encoder.count_tokens(TEXTS).tolist() == (np.diff(encoded.splits) + frame).tolist()


def test_a_text_without_words_has_no_tokens(encoder: Encoder) -> None:
    assert np.diff(encoder.encode(["", "word", ""]).splits)[[0, 2]].tolist() == [0, 0]
    assert encoder.encode([""]).vectors.shape == (0, encoder.dim)


def test_no_texts_are_a_batch_too(encoder: Encoder) -> None:
    assert encoder.count_tokens([]).tolist() == []
    assert len(encoder.encode([])) == 0


def test_spans_lead_back_to_the_text(encoder: Encoder) -> None:
    check_spans(TEXTS, encoder.encode(TEXTS))


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(st.text(st.characters(exclude_categories=["C", "Z"]), max_size=12), min_size=1, max_size=3))
def test_spans_of_any_text(texts: list[str], encoders: dict[str, Encoder]) -> None:
    spaced = [" ".join(text) if index % 2 else text for index, text in enumerate(texts)]
    for name in ("tiny", "hub"):
        check_spans(spaced, encoders[name].encode(spaced))
    assert spans(encoders["hub"].encode(spaced)) == spans(encoders["onnx"].encode(spaced))


def test_the_tiny_encoder_reads_words() -> None:
    text = " So  happy,\ttoday "
    assert [text[start:end] for start, end in TinyEncoder().encode([text]).spans] == ["So", "happy,", "today"]


def test_a_span_covers_the_characters_of_its_token(hub: HubEncoder) -> None:
    text = "¡Qué alegría! I am so happy أنا"
    encoded = hub.encode([text])
    tokens = hub.tokenizer.convert_ids_to_tokens(hub.tokenizer(text)["input_ids"])[1:-1]
    pieces = [unicodedata.normalize("NFKC", text[start:end]).strip() for start, end in encoded.spans]
    # The mark of a word's beginning may stand alone, and belongs to the character after it.
    known = [(token.strip("▁"), piece) for token, piece in zip(tokens, pieces, strict=True) if token not in "▁<unk>"]
    assert len(known) > 10
    assert [token for token, _ in known] == [piece for _, piece in known]


def test_neighbours_and_padding_change_nothing(encoder: Encoder, encoders: dict[str, Encoder]) -> None:
    tolerance = 1e-5 if encoder in (encoders["hub"], encoders["onnx"]) else 0
    alone = [encoder.encode([text]).vectors for text in TEXTS]
    order = [5, 0, 7, 1, 4, 2, 6, 3, 0]
    for row, vectors in zip(order, rows(encoder.encode([TEXTS[row] for row in order])), strict=True):
        np.testing.assert_allclose(vectors, alone[row], rtol=0, atol=tolerance)


def test_where_a_folder_pads_and_cuts_changes_nothing(hub: HubEncoder, xlmr_folder: Path, tmp_path: Path) -> None:
    other = Path(shutil.copytree(xlmr_folder, tmp_path / "left"))
    path = other / "tokenizer_config.json"
    settings = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(settings | {"padding_side": "left", "truncation_side": "left"}), encoding="utf-8")
    left = HubEncoder("left", source=other)
    texts = ["short", "a text that is longer", " ".join(["happy", "day"] * 300)]
    np.testing.assert_allclose(left.encode(texts).vectors, hub.encode(texts).vectors, rtol=0, atol=1e-5)
    assert left.fingerprint == hub.fingerprint


def test_a_fingerprint_does_not_depend_on_what_transformers_adds(
    hub: HubEncoder, xlmr_folder: Path, tmp_path: Path
) -> None:
    """Versions differ in the defaults that they know, and in those that they write."""
    terse = Path(shutil.copytree(xlmr_folder, tmp_path / "terse"))
    path = terse / "config.json"
    stored = json.loads(path.read_text(encoding="utf-8"))
    defaults = type(hub.model.config)().to_dict()
    told = {name: value for name, value in stored.items() if name == "model_type" or value != defaults.get(name)}
    assert len(told) < len(stored)
    path.write_text(json.dumps(told | {"a_setting_of_a_later_version": 7}), encoding="utf-8")
    assert HubEncoder("terse", source=terse).fingerprint == hub.fingerprint
    path.write_text(json.dumps(told | {"num_attention_heads": 1}), encoding="utf-8")
    assert HubEncoder("other", source=terse).fingerprint != hub.fingerprint


def test_different_texts_get_different_vectors(encoder: Encoder) -> None:
    happy, furious = rows(encoder.encode(["I am so happy", "I am so furious"]))
    assert not np.allclose(happy[-1], furious[-1], atol=1e-2)


@pytest.mark.parametrize("name", NETWORKS)
def test_a_long_text_is_cut(name: str, encoders: dict[str, Encoder]) -> None:
    encoder = encoders[name]
    long = " ".join(["happy", "day"] * 300)
    encoded = encoder.encode([long, "short"])
    assert np.diff(encoded.splits)[0] == 64 - 2
    assert encoded.spans[61, 1] < len(long)
    assert encoder.count_tokens([long]).tolist() == [64]
