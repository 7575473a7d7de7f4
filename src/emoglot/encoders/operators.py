"""Checks that an ONNX graph contains only allowed operators, before onnxruntime reads it.

An ONNX file is a protobuf message. The code below reads only the fields with operators, subgraphs and external files,
and skips the weights; it does not need the `onnx` package.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

# The operators written by emoglot, by torch's exporter for BERT, XLM-R, DeBERTa, MPNet and similar networks, and by the
# quantisation of onnxruntime. Loop, Scan and If are missing on purpose: a loop may never end. RNN, GRU and LSTM do.
# fmt: off
OPERATORS = frozenset({
    "Abs", "Add", "And", "ArgMax", "Cast", "CastLike", "Ceil", "Clip", "Concat", "Constant", "ConstantOfShape", "Conv",
    "Cos", "CumSum", "DequantizeLinear", "Div", "DynamicQuantizeLinear", "Equal", "Erf", "Exp", "Expand", "Flatten",
    "Floor", "Gather", "GatherElements", "GatherND", "Gelu", "Gemm", "Greater", "GreaterOrEqual", "GRU", "Identity",
    "IsNaN", "LayerNormalization", "Less", "LessOrEqual", "Log", "LSTM", "MatMul", "MatMulInteger", "Max", "Min", "Mod",
    "Mul", "Neg", "Not", "Or", "Pad", "Pow", "QuantizeLinear", "Range", "Reciprocal", "ReduceMax", "ReduceMean",
    "ReduceMin", "ReduceProd", "ReduceSum", "Relu", "Reshape", "RMSNormalization", "RNN", "Round", "ScatterElements",
    "ScatterND", "Shape", "Sigmoid", "Sign", "Sin", "Size", "Slice", "Softmax", "Split", "Sqrt", "Squeeze", "Sub",
    "Sum", "Tanh", "Tile", "Transpose", "Trilu", "Unsqueeze", "Where",
})
# fmt: on
_DOMAINS = frozenset({"", "ai.onnx"})
_MOST_DEPTH = 8  # of nested graphs
_ORT_FORMAT = b"ORTM"  # in the bytes 4 to 8 of onnxruntime's own format, which it reads instead of a protobuf

# Numbers of fields in onnx.proto.
_MODEL_GRAPH, _MODEL_FUNCTIONS = 7, 25
_GRAPH_NODE, _GRAPH_INITIALIZER, _GRAPH_SPARSE = 1, 5, 15
_NODE_OPERATOR, _NODE_ATTRIBUTE, _NODE_DOMAIN = 4, 5, 7
_ATTRIBUTE_TENSOR, _ATTRIBUTE_GRAPH, _ATTRIBUTE_TENSORS, _ATTRIBUTE_GRAPHS = 5, 6, 10, 11
_ATTRIBUTE_SPARSE = (22, 23)
_TENSOR_EXTERNAL = 13
_ENTRY_KEY, _ENTRY_VALUE = 1, 2
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5  # wire types

_Span: TypeAlias = tuple[int, int]  # start and end of a message


@dataclass
class Graph:
    """The operators of a network file, and the external files with its weights."""

    operators: set[str] = field(default_factory=set)
    external: set[str] = field(default_factory=set)


def check_graph(data: bytes | mmap.mmap) -> Graph:
    """Return what a network contains; raise ValueError for a forbidden operator or a file that is not ONNX."""
    if data[4:8] == _ORT_FORMAT:
        raise ValueError("it is not an ONNX graph")
    graph = Graph()
    try:
        for number, span in _messages(data, (0, len(data))):
            if number == _MODEL_GRAPH:
                _walk_graph(data, span, graph, 0)
            elif number == _MODEL_FUNCTIONS:
                raise ValueError("it defines functions, which are not allowed")
    except (IndexError, UnicodeDecodeError):
        raise ValueError("it is not an ONNX graph") from None
    if refused := sorted(graph.operators - OPERATORS):
        raise ValueError(f"it contains {', '.join(refused)[:100]}, which is not allowed")
    return graph


def check_graph_file(path: Path) -> Graph:
    """Check a network in a file without reading its weights."""
    with path.open("rb") as file:
        try:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError:  # an empty file
            raise ValueError("it is empty") from None
        with mapped:
            return check_graph(mapped)


def _walk_graph(data: bytes | mmap.mmap, span: _Span, graph: Graph, depth: int) -> None:
    if depth > _MOST_DEPTH:
        raise ValueError(f"its graphs are nested more than {_MOST_DEPTH} deep")
    for number, inner in _messages(data, span):
        if number == _GRAPH_NODE:
            _walk_node(data, inner, graph, depth)
        elif number == _GRAPH_INITIALIZER:
            _walk_tensor(data, inner, graph)
        elif number == _GRAPH_SPARSE:
            raise ValueError("it contains sparse weights, which are not allowed")


def _walk_node(data: bytes | mmap.mmap, span: _Span, graph: Graph, depth: int) -> None:
    for number, (start, end) in _messages(data, span):
        if number == _NODE_OPERATOR:
            graph.operators.add(data[start:end].decode())
        elif number == _NODE_DOMAIN:
            domain = data[start:end].decode()
            if domain not in _DOMAINS:
                raise ValueError(
                    f"it contains an operator of {domain[:50]!r}, but only those of ONNX itself are allowed"
                )
        elif number == _NODE_ATTRIBUTE:
            _walk_attribute(data, (start, end), graph, depth)


def _walk_attribute(data: bytes | mmap.mmap, span: _Span, graph: Graph, depth: int) -> None:
    for number, inner in _messages(data, span):
        if number in (_ATTRIBUTE_GRAPH, _ATTRIBUTE_GRAPHS):
            _walk_graph(data, inner, graph, depth + 1)
        elif number in (_ATTRIBUTE_TENSOR, _ATTRIBUTE_TENSORS):
            _walk_tensor(data, inner, graph)
        elif number in _ATTRIBUTE_SPARSE:
            raise ValueError("it contains sparse weights, which are not allowed")


def _walk_tensor(data: bytes | mmap.mmap, span: _Span, graph: Graph) -> None:
    for number, inner in _messages(data, span):
        if number == _TENSOR_EXTERNAL:
            entry = {key: data[start:end].decode() for key, (start, end) in _messages(data, inner)}
            if entry.get(_ENTRY_KEY) == "location":
                graph.external.add(entry.get(_ENTRY_VALUE, ""))


def _messages(data: bytes | mmap.mmap, span: _Span) -> Iterator[tuple[int, _Span]]:
    """Yield number and position of the fields of a message that have a length; numbers are skipped."""
    place, end = span
    while place < end:
        tag = data[place]
        place += 1
        if tag > 127:
            tag, place = _varint(data, place - 1)
        kind = tag & 7
        if kind == _BYTES:
            length = data[place]
            place += 1
            if length > 127:
                length, place = _varint(data, place - 1)
            if place + length > end:
                raise IndexError(place)
            yield tag >> 3, (place, place + length)
            place += length
        elif kind == _VARINT:
            _, place = _varint(data, place)
        elif kind in (_FIXED64, _FIXED32):
            place += 8 if kind == _FIXED64 else 4
        else:
            raise IndexError(place)
    if place != end:
        raise IndexError(place)


def _varint(data: bytes | mmap.mmap, place: int) -> tuple[int, int]:
    """Return a number of variable length, and where it ends."""
    value = 0
    for shift in range(0, 70, 7):
        byte = data[place]
        place += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, place
    raise IndexError(place)
