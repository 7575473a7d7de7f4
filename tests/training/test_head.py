"""The head: padding and company never change a score, and torch, onnxruntime and packed sequences agree."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from emoglot.config import HEAD_KINDS, HeadConfig
from emoglot.encoders.features import Features, Segment
from emoglot.errors import ModelError
from emoglot.inference.head import HeadRuntime, logit, sigmoid
from emoglot.training.head import chunk_mask, make_head, token_mask, turn_around
from emoglot.training.to_onnx import compile_head

DIM, LABELS = 12, 5
SHAPES = [(kind, directions, layers) for kind in HEAD_KINDS for directions in (1, 2) for layers in (1, 2)]


def make(kind: str, directions: int = 2, layers: int = 1, seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    config = HeadConfig(kind=kind, hidden=8, layers=layers, bidirectional=directions == 2)
    head = make_head(config, DIM, LABELS).eval()
    if kind != "xml-cnn":
        nn.init.normal_(head.attention)  # zero at first: then it could not be told whether it is used
    return head


def features_of(lengths: list[int], seed: int = 0) -> Features:
    """Random token vectors of texts of these lengths."""
    ends = np.cumsum(lengths)
    vectors = np.random.default_rng(seed).standard_normal((sum(lengths), DIM)).astype(np.float16)
    nothing = np.zeros((0, 16), np.uint8)
    segment = Segment(nothing, np.zeros(1, np.int64), np.zeros((sum(lengths), 2), np.int32), vectors)
    places = np.stack([np.zeros(len(lengths), np.int64), ends - lengths, ends], axis=1)
    return Features((segment,), places, DIM)


def padded(features: Features, rows: Sequence[int]) -> tuple[torch.Tensor, torch.Tensor]:
    vectors, lengths = features.pad(np.array(rows))
    return torch.from_numpy(vectors).float(), torch.from_numpy(lengths)


def weights_of(head: nn.Module) -> dict[str, np.ndarray]:
    return {name: tensor.numpy() for name, tensor in head.state_dict().items()}


@pytest.mark.parametrize(("kind", "directions", "layers"), SHAPES)
def test_torch_and_onnxruntime_agree(kind, directions, layers):
    head = make(kind, directions, layers)
    features = features_of([9, 1, 4, 7, 30])
    config = HeadConfig(kind=kind, hidden=8, layers=layers, bidirectional=directions == 2)
    runtime = HeadRuntime(compile_head(config, weights_of(head)))
    vectors, lengths = padded(features, range(5))
    with torch.inference_mode():
        logits, attention = head(vectors, lengths)
    assert np.abs(runtime.logits(features) - logits.numpy()).max() < 1e-5
    for row, length in enumerate(lengths):
        assert np.abs(runtime.attention(features, row) - attention[row, :length].numpy()).max() < 1e-5
        assert runtime.attention(features, row).sum() == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("kind", HEAD_KINDS)
@given(st.lists(st.integers(1, 20), min_size=1, max_size=6), st.integers(0, 9), st.randoms())
@settings(max_examples=20)
def test_padding_and_order_never_change_a_score(kind, lengths, padding, random):
    head, features = make(kind, layers=2), features_of(lengths)
    order = list(range(len(lengths)))
    random.shuffle(order)
    vectors, sizes = padded(features, order)
    vectors = nn.functional.pad(vectors, (0, 0, 0, padding), value=7.0)  # padding need not be zero
    with torch.inference_mode():
        together, _ = head(vectors, sizes)
        for slot, row in enumerate(order):
            alone, _ = head(*padded(features, [row]))
            assert torch.allclose(together[slot], alone[0], atol=1e-5)


@pytest.mark.parametrize(("kind", "cell"), [("lstm", nn.LSTM), ("gru", nn.GRU), ("rnn", nn.RNN)])
def test_turning_around_equals_packing(kind, cell):
    head = make(kind, layers=2)
    packed = cell(DIM, 8, num_layers=2, bidirectional=True, batch_first=True)
    names = {f"{part}_l0": part for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")}
    state = {
        f"{part}_l{depth}{suffix}": head.state_dict()[f"layers.{depth}.{direction}.{name}"]
        for depth in (0, 1)
        for direction, suffix in (("ahead", ""), ("back", "_reverse"))
        for name, part in names.items()
    }
    packed.load_state_dict(state)
    vectors, lengths = padded(features_of([9, 1, 4, 7]), range(4))
    with torch.inference_mode():
        expected, _ = packed(pack_padded_sequence(vectors, lengths, batch_first=True, enforce_sorted=False))
        expected, _ = pad_packed_sequence(expected, batch_first=True)
        states = vectors
        for layer in head.layers:
            states = layer(states, lengths)
        mask = token_mask(states, lengths)
        assert torch.allclose(states[mask], expected[mask], atol=1e-6)


@given(st.lists(st.integers(1, 12), min_size=1, max_size=5))
def test_turning_around_twice_changes_nothing(lengths):
    vectors, sizes = padded(features_of(lengths), range(len(lengths)))
    turned = turn_around(vectors, sizes)
    assert torch.equal(turn_around(turned, sizes), vectors)
    for row, size in enumerate(sizes):
        assert torch.equal(turned[row, :size], vectors[row, :size].flip(0))


@given(st.lists(st.integers(1, 40), min_size=1, max_size=5))
def test_chunks_cover_every_token_and_no_padding(lengths):
    vectors, sizes = padded(features_of(lengths), range(len(lengths)))
    chunks = chunk_mask(vectors, sizes)
    assert torch.equal(chunks.any(dim=1), token_mask(vectors, sizes))
    assert chunks.any(dim=2).all()  # even a text of one token fills every chunk


def test_prediction_is_deterministic_and_training_is_not():
    head = make("lstm")
    vectors, lengths = padded(features_of([5, 3]), range(2))
    with torch.inference_mode():
        assert torch.equal(head(vectors, lengths)[0], head(vectors, lengths)[0])
        head.train()
        assert not torch.equal(head(vectors, lengths)[0], head(vectors, lengths)[0])


@pytest.mark.parametrize("kind", HEAD_KINDS)
def test_a_text_without_tokens_scores_zero(kind):
    runtime = HeadRuntime(compile_head(HeadConfig(kind=kind, hidden=8, layers=1), weights_of(make(kind))))
    scores = sigmoid(runtime.logits(features_of([3, 0, 2])))
    assert (scores[1] == 0).all()
    assert (scores[[0, 2]] > 0).all()
    assert len(runtime.attention(features_of([3, 0]), 1)) == 0


def test_logit_is_the_inverse_of_sigmoid_within_its_range():
    scores = np.array([0, 1e-5, 0.01, 0.5, 0.9, 1])
    within = np.array([0.01, 0.01, 0.01, 0.5, 0.9, 0.95])
    assert sigmoid(logit(scores, 0.01, 0.95)).tolist() == pytest.approx(within.tolist())
    assert logit(scores.astype(np.float32), 0.01, 0.95).dtype == np.float32


def test_sigmoid_is_stable():
    logits = np.array([-np.inf, -1000, -1, 0, 1, 1000, np.inf], dtype=np.float32)
    assert sigmoid(logits).tolist() == pytest.approx([0, 0, 0.26894142, 0.5, 0.73105858, 1, 1])


def test_bytes_that_are_no_network_are_refused():
    with pytest.raises(ModelError, match="cannot be run by onnxruntime"):
        HeadRuntime(b"not a network")
