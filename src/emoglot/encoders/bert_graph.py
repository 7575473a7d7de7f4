"""Compiles the weights of a BERT or XLM-RoBERTa to an ONNX graph, without torch.

In float32 the graph refers to the weights in the safetensors file next to it, which torch reads as well. In int8 it
contains its weights, and the activations of each token are quantised separately, so that the vectors of a text do not
depend on the other texts of a batch.
"""

from __future__ import annotations

import json
import math
import struct
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emoglot.encoders.quantise import LEAST_SCALE, quantise_rows
from emoglot.errors import EncoderError, needs_extra

with needs_extra("e5", "compiling an encoder"):
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    from emoglot.encoders.graph import GraphBuilder, Weights

INPUTS = ("input_ids", "attention_mask")
OUTPUT = "states"

_COUNTS_FROM_PADDING = {"bert": False, "roberta": True, "xlm-roberta": True}
_HIDDEN = -1e9  # added to the logits of padding: its weight becomes exactly 0
_WORDS = "embeddings.word_embeddings.weight"
_POSITIONS = "embeddings.position_embeddings.weight"
_TYPES = "embeddings.token_type_embeddings.weight"

_ACTIVATION_LEVELS = 127
_ACTIVATION_ZERO = 128  # CPUs multiply unsigned by signed bytes faster than signed by signed
# Seven bits: the sum of two products then fits into the 16 bits of AVX2.
_WEIGHT_LEVELS = 63
_TABLE_LEVELS = 127  # eight bits for vectors that are only looked up

# Parts of the names of constants in an int8 graph, after the names of the weights.
_AND, _BYTES, _SCALES, _BIASES = " and ", " as bytes", " in steps of", " as they are"
_PARAMETERS = ("embeddings.", "encoder.")
_CONFIG_KEY = "config"


def can_compile(config: Mapping[str, Any]) -> bool:
    """Return whether the network of a transformers config is supported."""
    usual = {"hidden_act": "gelu", "position_embedding_type": "absolute", "is_decoder": False}
    return config.get("model_type") in _COUNTS_FROM_PADDING and all(
        config.get(name, value) in (value, None) for name, value in usual.items()
    )


def compile_beside(config: Mapping[str, Any], weights_file: Path, path: Path) -> None:
    """Write a float32 graph that refers to the weights in a safetensors file of the same folder."""
    places = _tensor_places(weights_file)
    builder = _Float32Builder(config, places, weights_file.name)
    onnx.save(builder.build(), path)


def compile_int8(config: Mapping[str, Any], weights: Weights, path: Path) -> None:
    """Write a graph with int8 weights, which `read_int8` reads."""
    model = _Int8Builder(config, weights).build()
    model.metadata_props.add(key=_CONFIG_KEY, value=json.dumps(dict(config), default=str))
    onnx.save(model, path)


def read_int8(path: Path) -> tuple[dict[str, Any], dict[str, NDArray[np.float32]]]:
    """Return the config and the weights, in float32, of a graph that `compile_int8` wrote."""
    model = onnx.load(path)
    config = {entry.key: entry.value for entry in model.metadata_props}.get(_CONFIG_KEY)
    if config is None:
        raise EncoderError(
            f"{path} was not quantised by `emoglot encoders`, so its weights cannot be trained: use e5-small, a folder "
            "of the transformers library or a model of the hub"
        )
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    weights: dict[str, NDArray[np.float32]] = {}
    for name, array in constants.items():
        if name.endswith(_BYTES):
            names = name.removesuffix(_BYTES).split(_AND)
            scales = constants[name.removesuffix(_BYTES) + _SCALES].reshape(-1, 1)
            rows = (array if names == [_WORDS] else array.T).astype(np.float32) * scales  # transposed for products
            weights |= dict(zip(names, np.split(rows, len(names)), strict=True))
        elif name.endswith(_BIASES):
            names = name.removesuffix(_BIASES).split(_AND)
            weights |= dict(zip(names, np.split(array, len(names)), strict=True))
        elif name.startswith(_PARAMETERS) and not name.endswith(_SCALES):
            weights[name] = array
    return json.loads(config), {name: np.ascontiguousarray(array) for name, array in weights.items()}


class _BertBuilder(GraphBuilder, ABC):
    """Builds the network; subclasses define how weights are stored."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        self._layers, self._heads = int(config["num_hidden_layers"]), int(config["num_attention_heads"])
        self._dim, self._epsilon = int(config["hidden_size"]), float(config["layer_norm_eps"])
        # The position of the first token: XLM-R counts from the padding id.
        counts_from_padding = _COUNTS_FROM_PADDING[config["model_type"]]
        self._first_position = int(config.get("pad_token_id", 1)) + 1 if counts_from_padding else 0

    @abstractmethod
    def parameter(self, name: str) -> str:
        """Append a float32 parameter."""

    @abstractmethod
    def linear_of(self, source: str, *layers: str) -> list[str]:
        """Append x Wᵀ + b for layers with the same input."""

    @abstractmethod
    def look_up(self, table: str, ids: str) -> str:
        """Append the rows of a table."""

    def build(self) -> Any:
        """Append all nodes and return the model."""
        # The tokens of all texts in one matrix; only attention depends on the text of a token.
        states = self.node("Reshape", self._embed(), self.integers(-1, self._dim))
        shape = self.node("Shape", INPUTS[0])
        apart = self.node("Concat", shape, self.integers(self._heads, self._dim // self._heads), axis=0)
        is_padding = self.node("Sub", self.constant(1.0), self.node("Cast", INPUTS[1], to=TensorProto.FLOAT))
        mask = self.node("Unsqueeze", self.node("Mul", is_padding, self.constant(_HIDDEN)), self.integers(1, 2))
        for layer in range(self._layers):
            states = self._layer(f"encoder.layer.{layer}", states, mask, apart)
        self.node("Reshape", states, self.node("Concat", shape, self.integers(self._dim), axis=0), result=OUTPUT)
        sizes = ["texts", "tokens"]
        return self.model(
            "emoglot-encoder",
            [helper.make_tensor_value_info(name, TensorProto.INT64, sizes) for name in INPUTS],
            [helper.make_tensor_value_info(OUTPUT, TensorProto.FLOAT, [*sizes, self._dim])],
        )

    def _embed(self) -> str:
        tokens = self.node("Gather", self.node("Shape", INPUTS[0]), self.constant(1, np.int64))
        first = self.constant(self._first_position, np.int64)
        places = self.node("Range", first, self.node("Add", tokens, first), self.constant(1, np.int64))
        positions = self.node("Gather", self.parameter(_POSITIONS), places)
        kind = self.node("Gather", self.parameter(_TYPES), self.constant(0, np.int64))
        words = self.look_up(_WORDS, INPUTS[0])  # (texts, tokens, dim)
        return self._normalise(self.node("Add", words, self.node("Add", positions, kind)), "embeddings.LayerNorm")

    def _layer(self, prefix: str, states: str, mask: str, apart: str) -> str:
        attended = self._attend(f"{prefix}.attention", states, mask, apart)
        states = self._normalise(self.node("Add", attended, states), f"{prefix}.attention.output.LayerNorm")
        (inner,) = self.linear_of(states, f"{prefix}.intermediate.dense")
        (outer,) = self.linear_of(self._gelu(inner), f"{prefix}.output.dense")
        return self._normalise(self.node("Add", outer, states), f"{prefix}.output.LayerNorm")

    def _attend(self, prefix: str, states: str, mask: str, apart: str) -> str:
        """Append attention; `apart` is the shape (texts, tokens, heads, size)."""
        size = self._dim // self._heads
        layers = [f"{prefix}.self.{name}" for name in ("query", "key", "value")]
        parts = [self.node("Reshape", name, apart) for name in self.linear_of(states, *layers)]
        query, value = (self.node("Transpose", parts[index], perm=[0, 2, 1, 3]) for index in (0, 2))
        key = self.node("Transpose", parts[1], perm=[0, 2, 3, 1])
        relevance = self.node("MatMul", self.node("Mul", query, self.constant(1 / math.sqrt(size))), key)
        weights = self.node("Softmax", self.node("Add", relevance, mask), axis=-1)  # (texts, heads, tokens, tokens)
        joined = self.node("Transpose", self.node("MatMul", weights, value), perm=[0, 2, 1, 3])
        (attended,) = self.linear_of(
            self.node("Reshape", joined, self.integers(-1, self._dim)), f"{prefix}.output.dense"
        )
        return attended

    def _normalise(self, states: str, layer: str) -> str:
        scale, shift = self.parameter(f"{layer}.weight"), self.parameter(f"{layer}.bias")
        return self.node("LayerNormalization", states, scale, shift, axis=-1, epsilon=self._epsilon)

    def _gelu(self, states: str) -> str:
        error = self.node("Erf", self.node("Div", states, self.constant(math.sqrt(2))))
        doubled = self.node("Mul", states, self.node("Add", error, self.constant(1.0)))
        return self.node("Mul", doubled, self.constant(0.5))


class _Float32Builder(_BertBuilder):
    """Refers to the weights in a safetensors file."""

    def __init__(self, config: Mapping[str, Any], places: Mapping[str, _Place], file: str) -> None:
        super().__init__(config)
        self._places, self._file = places, file

    def parameter(self, name: str) -> str:
        if name not in self._places:
            raise EncoderError(f"the weights of this network must contain {name}, and {self._file} does not")
        shape, start, size = self._places[name]
        tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=shape, data_location=TensorProto.EXTERNAL)
        for key, value in (("location", self._file), ("offset", start), ("length", size)):
            tensor.external_data.add(key=key, value=str(value))
        self._constants[name] = tensor
        return name

    def linear_of(self, source: str, *layers: str) -> list[str]:
        # onnxruntime transposes constants once, on loading.
        return [
            self.node(
                "Add",
                self.node("MatMul", source, self.node("Transpose", self.parameter(f"{layer}.weight"), perm=[1, 0])),
                self.parameter(f"{layer}.bias"),
            )
            for layer in layers
        ]

    def look_up(self, table: str, ids: str) -> str:
        return self.node("Gather", self.parameter(table), ids)


class _Int8Builder(_BertBuilder):
    """Stores weights as bytes with one scale per row, and quantises activations per token."""

    def __init__(self, config: Mapping[str, Any], weights: Weights) -> None:
        super().__init__(config)
        self._weights = weights

    def parameter(self, name: str) -> str:
        return self.constant(self._weights[name], name=name)

    def linear_of(self, source: str, *layers: str) -> list[str]:
        bytes_, scales = quantise_rows(
            np.concatenate([self._weights[f"{layer}.weight"] for layer in layers]), _WEIGHT_LEVELS
        )
        name = _AND.join(f"{layer}.weight" for layer in layers)
        highest, lowest = (self.node(f"Reduce{kind}", source, axes=[-1], keepdims=1) for kind in ("Max", "Min"))
        peak = self.node("Max", highest, self.node("Neg", lowest), self.constant(LEAST_SCALE))
        step = self.node("Mul", peak, self.constant(1 / _ACTIVATION_LEVELS))  # (tokens, 1)
        steps = self.node("Reshape", step, self.integers(-1))
        zeros = self.node("Expand", self.constant(_ACTIVATION_ZERO, np.uint8), self.node("Shape", steps))
        product = self.node(
            "MatMulInteger",
            self.node("QuantizeLinear", source, steps, zeros, axis=0),
            self.constant(bytes_.T, np.int8, name + _BYTES),
            self.constant(_ACTIVATION_ZERO, np.uint8),
        )
        # Two multiplications: onnxruntime would fuse their product into one scale for the whole batch.
        scaled = self.node("Mul", self.node("Cast", product, to=TensorProto.FLOAT), step)
        bias = np.concatenate([self._weights[f"{layer}.bias"] for layer in layers])
        biases = self.constant(bias, name=_AND.join(f"{layer}.bias" for layer in layers) + _BIASES)
        result = self.node("Add", self.node("Mul", scaled, self.constant(scales, name=name + _SCALES)), biases)
        if len(layers) == 1:
            return [result]
        return self.nodes("Split", result, results=("",) * len(layers), axis=-1)

    def look_up(self, table: str, ids: str) -> str:
        bytes_, scales = quantise_rows(self._weights[table], _TABLE_LEVELS)
        rows = self.node("Gather", self.constant(bytes_, np.int8, table + _BYTES), ids)
        steps = self.node("Gather", self.constant(scales[:, None], name=table + _SCALES), ids)
        return self.node("Mul", self.node("Cast", rows, to=TensorProto.FLOAT), steps)


_Place = tuple[list[int], int, int]  # shape, first byte, bytes


def _tensor_places(file: Path) -> dict[str, _Place]:
    """Return the places of the float32 tensors in a safetensors file."""
    with file.open("rb") as opened:
        (length,) = struct.unpack("<Q", opened.read(8))
        header = json.loads(opened.read(length))
    places = {}
    for name, entry in header.items():
        if name != "__metadata__":
            assert entry["dtype"] == "F32", name
            start, end = entry["data_offsets"]
            places[name] = (entry["shape"], 8 + length + start, end - start)
    return places
