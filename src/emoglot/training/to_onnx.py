"""Compiles a trained head to an ONNX graph, so that prediction needs no torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper

from emoglot.config import HeadConfig
from emoglot.encoders.graph import GraphBuilder, Weights
from emoglot.training.head import CNN_CHUNKS, CNN_WINDOWS

# For each gate in ONNX's order, its place in torch's.
_GATES = {"lstm": (0, 3, 1, 2), "gru": (1, 0, 2), "rnn": (0,)}
_OPERATORS = {"lstm": "LSTM", "gru": "GRU", "rnn": "RNN"}


def compile_head(config: HeadConfig, weights: Weights) -> bytes:
    """Return a graph that maps `vectors` (batch, tokens, dim) and `lengths` (batch,) to `logits` and `attention`."""
    builder = _Builder()
    builder.add_mask()
    if config.kind == "attention":
        dim = weights["attention"].shape[1]
        _add_label_attention(builder, weights)
    elif config.kind == "xml-cnn":
        dim = weights["convolutions.0.weight"].shape[1]
        _add_xml_cnn(builder, weights)
        builder.linear("pooled", weights, "output", result="logits")
    else:
        dim = weights["layers.0.ahead.weight_ih_l0"].shape[1]
        _add_recurrent(builder, config, weights)
        builder.linear("pooled", weights, "output", result="logits")
    return builder.serialise(dim, labels=len(weights["output.bias"]))


class _Builder(GraphBuilder):
    """Builds the inputs and outputs that all heads have."""

    def add_mask(self) -> None:
        """Append `position` (tokens,), `row_lengths` (batch, 1) and `mask` (batch, tokens)."""
        tokens = self.node("Gather", self.node("Shape", "vectors"), self.constant(1, np.int64))
        self.node("Range", self.constant(0, np.int64), tokens, self.constant(1, np.int64), result="position")
        self.node("Unsqueeze", "lengths", self.integers(1), result="row_lengths")
        self.node("Less", "position", "row_lengths", result="mask")

    def serialise(self, dim: int, labels: int) -> bytes:
        """Check the graph and return its bytes."""
        model = self.model(
            "emoglot-head",
            inputs=[
                helper.make_tensor_value_info("vectors", TensorProto.FLOAT, ["batch", "tokens", dim]),
                helper.make_tensor_value_info("lengths", TensorProto.INT64, ["batch"]),
            ],
            outputs=[
                helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", labels]),
                helper.make_tensor_value_info("attention", TensorProto.FLOAT, ["batch", "tokens"]),
            ],
        )
        onnx.checker.check_model(model, full_check=True)
        return bytes(model.SerializeToString())


def _add_recurrent(builder: _Builder, config: HeadConfig, weights: Weights) -> None:
    states = builder.node("Transpose", "vectors", perm=[1, 0, 2])  # (tokens, batch, dim)
    lengths = builder.node("Cast", "lengths", to=TensorProto.INT32)
    for depth in range(config.layers):
        states = _add_recurrent_layer(builder, config, weights, depth, states, lengths)
    states = builder.node("Transpose", states, perm=[1, 0, 2])  # (batch, tokens, hidden × directions)
    relevance = builder.node("MatMul", states, builder.constant(weights["attention"], name="attention_vector"))
    masked = builder.node("Where", "mask", relevance, builder.constant(-np.inf))
    builder.node("Softmax", masked, axis=1, result="attention")
    pooled = builder.node("MatMul", builder.node("Unsqueeze", "attention", builder.integers(1)), states)
    builder.node("Squeeze", pooled, builder.integers(1), result="pooled")


def _add_recurrent_layer(
    builder: _Builder, config: HeadConfig, weights: Weights, depth: int, states: str, lengths: str
) -> str:
    """Append one layer; ONNX reverses each text within its own length for the backward direction."""
    directions = ["ahead", "back"] if config.bidirectional else ["ahead"]
    stacked = [_direction_weights(config, weights, f"layers.{depth}.{name}") for name in directions]
    arrays = [np.stack(group) for group in zip(*stacked, strict=True)]
    names = [
        builder.constant(array, name=f"layer_{depth}_{part}")
        for part, array in zip(("input", "recurrent", "bias"), arrays, strict=True)
    ]
    # torch applies the reset gate of a GRU after the matrix product, ONNX before it by default.
    attributes: dict[str, Any] = {"linear_before_reset": 1} if config.kind == "gru" else {}
    output = builder.node(
        _OPERATORS[config.kind],
        states,
        *names,
        lengths,
        hidden_size=config.hidden,
        direction="bidirectional" if config.bidirectional else "forward",
        **attributes,
    )  # (tokens, directions, batch, hidden)
    output = builder.node("Transpose", output, perm=[0, 2, 1, 3])
    return builder.node("Reshape", output, builder.integers(0, 0, config.hidden * len(directions)))


def _direction_weights(config: HeadConfig, weights: Weights, prefix: str) -> list[NDArray[np.float32]]:
    """Return input matrix, recurrent matrix and biases of one direction, with gates in ONNX's order."""

    def reorder(name: str) -> NDArray[np.float32]:
        gates = np.split(weights[f"{prefix}.{name}_l0"], len(_GATES[config.kind]))
        return np.concatenate([gates[gate] for gate in _GATES[config.kind]])

    bias = np.concatenate([reorder("bias_ih"), reorder("bias_hh")])
    return [reorder("weight_ih"), reorder("weight_hh"), bias]


def _add_label_attention(builder: _Builder, weights: Weights) -> None:
    """Append attention per label, in double precision, so that the order of summation does not affect scores."""

    def constant(name: str, value: Any) -> str:
        return builder.constant(value, np.float64, name=name)

    vectors = builder.node("Cast", "vectors", to=TensorProto.DOUBLE)
    relevance = builder.node("MatMul", vectors, constant("attention_vectors", weights["attention"].T))
    masked = builder.node(
        "Where", builder.node("Unsqueeze", "mask", builder.integers(2)), relevance, constant("hidden", -np.inf)
    )
    beta = builder.node("Softmax", masked, axis=1)  # (batch, tokens, labels)
    product = builder.node("MatMul", vectors, constant("output.weight", weights["output.weight"].T))
    votes = builder.node("Add", product, constant("output.bias", weights["output.bias"]))
    logits = builder.node("ReduceSum", builder.node("Mul", beta, votes), builder.integers(1), keepdims=0)
    builder.node("Cast", logits, to=TensorProto.FLOAT, result="logits")
    attention = builder.node("ReduceMean", beta, axes=[2], keepdims=0)
    builder.node("Cast", attention, to=TensorProto.FLOAT, result="attention")


def _add_xml_cnn(builder: _Builder, weights: Weights) -> None:
    mask = builder.node("Cast", "mask", to=TensorProto.FLOAT)
    row_lengths = builder.node("Cast", "row_lengths", to=TensorProto.FLOAT)
    builder.node("Div", mask, row_lengths, result="attention")
    masked = builder.node("Mul", "vectors", builder.node("Unsqueeze", mask, builder.integers(2)))
    channels = builder.node("Transpose", masked, perm=[0, 2, 1])  # (batch, dim, tokens)
    chunks = _add_chunk_mask(builder)  # (batch, 1, chunks, tokens)
    pooled = []
    for index, width in enumerate(CNN_WINDOWS):
        parameters = [
            builder.constant(weights[f"convolutions.{index}.{part}"], name=f"convolution_{index}_{part}")
            for part in ("weight", "bias")
        ]
        activation = builder.node("Relu", builder.node("Conv", channels, *parameters, pads=[0, width - 1]))
        spread = builder.node("Mul", builder.node("Unsqueeze", activation, builder.integers(2)), chunks)
        peaks = builder.node("ReduceMax", spread, axes=[3], keepdims=0)  # (batch, filters, chunks)
        pooled.append(builder.node("Flatten", peaks, axis=1))
    joined = builder.node("Concat", *pooled, axis=1)
    builder.node("Relu", builder.linear(joined, weights, "bottleneck"), result="pooled")


def _add_chunk_mask(builder: _Builder) -> str:
    """Append the equivalent of `head.chunk_mask`."""
    chunk = builder.constant(np.arange(CNN_CHUNKS), np.int64)
    count = builder.constant(CNN_CHUNKS, np.int64)
    one = builder.constant(1, np.int64)
    start = builder.node("Div", builder.node("Mul", chunk, "row_lengths"), count)
    next_start = builder.node("Mul", builder.node("Add", chunk, one), "row_lengths")
    end = builder.node("Div", builder.node("Add", next_start, builder.constant(CNN_CHUNKS - 1, np.int64)), count)
    last_axis = builder.integers(2)
    after_start = builder.node("GreaterOrEqual", "position", builder.node("Unsqueeze", start, last_axis))
    before_end = builder.node("Less", "position", builder.node("Unsqueeze", end, last_axis))
    inside = builder.node("Cast", builder.node("And", after_start, before_end), to=TensorProto.FLOAT)
    return builder.node("Unsqueeze", inside, builder.integers(1))
