"""The file of e5-small: a tiny one, written here byte by byte, against loops that read it slowly."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from emoglot.encoders.e5_file import parse
from emoglot.errors import EncoderError

HIDDEN, LAYERS, HEADS, INNER, POSITIONS, TYPES = 4, 2, 2, 8, 8, 2
PIECES = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁ἀγάπη🙂", -3.25)]
CHARACTERS = {"\u00a0": " ", "ﬁ": "fi", "\x07": ""}
FLOAT32, FOUR_BITS = 0, 1


def shapes() -> dict[str, tuple[int, ...]]:
    """Every tensor of the file, by the names it has there."""
    found: dict[str, tuple[int, ...]] = {
        "emb.word": (len(PIECES), HIDDEN),
        "emb.pos": (POSITIONS, HIDDEN),
        "emb.type": (TYPES, HIDDEN),
        "emb.ln.w": (HIDDEN,),
        "emb.ln.b": (HIDDEN,),
    }
    for layer in range(LAYERS):
        for part, (rows, columns) in {
            "q": (HIDDEN, HIDDEN),
            "k": (HIDDEN, HIDDEN),
            "v": (HIDDEN, HIDDEN),
            "ao": (HIDDEN, HIDDEN),
            "fi": (INNER, HIDDEN),
            "fo": (HIDDEN, INNER),
        }.items():
            found |= {f"l{layer}.{part}.w": (rows, columns), f"l{layer}.{part}.b": (rows,)}
        for part in ("aln", "oln"):
            found |= {f"l{layer}.{part}.w": (HIDDEN,), f"l{layer}.{part}.b": (HIDDEN,)}
    return found


def is_packed(name: str) -> bool:
    """Return whether a tensor is in 4 bits: matrices are, but for that of positions, so that both kinds have one."""
    return name != "emb.pos" and len(shapes()[name]) == 2


def make_file() -> tuple[bytes, dict[str, bytes]]:
    """Write a file of random tensors; return it with the bytes of each tensor."""
    rng = np.random.default_rng(5)
    stored = {}
    for name, shape in shapes().items():
        count = int(np.prod(shape))
        if is_packed(name):
            blocks = -(-count // 32)  # the last one is filled up
            scales = rng.normal(size=blocks).astype("<f2")
            stored[name] = b"".join(scale.tobytes() + rng.bytes(16) for scale in scales)
        else:
            stored[name] = rng.normal(size=count).astype("<f4").tobytes()

    letters = [piece.encode() for piece, _ in PIECES]
    ends = np.cumsum([0, *map(len, letters)])
    header = b"E5S1" + struct.pack("<i", 1) + struct.pack("<7i", HIDDEN, LAYERS, HEADS, INNER, 5, POSITIONS, TYPES)
    header += struct.pack("<fi", 1e-12, 32)
    vocabulary = struct.pack("<5iQ", len(PIECES), 0, 2, 1, 3, ends[-1])
    vocabulary += struct.pack(f"<{len(ends)}I", *ends)
    vocabulary += struct.pack(f"<{len(PIECES)}f", *(score for _, score in PIECES))
    vocabulary += b"".join(letters)
    entries = [
        struct.pack(f"<IB{len(read)}I", ord(given), len(read), *map(ord, read)) for given, read in CHARACTERS.items()
    ]
    characters = struct.pack("<iI", len(entries), sum(map(len, entries))) + b"".join(entries)

    directory_bytes = 4 + sum(2 + len(name) + 1 + 4 + 8 + 8 for name in stored)
    offset = len(header + vocabulary + characters) + directory_bytes
    directory = struct.pack("<i", len(stored))
    for name, content in stored.items():
        kind = FOUR_BITS if is_packed(name) else FLOAT32
        directory += struct.pack("<H", len(name)) + name.encode()
        directory += struct.pack("<BIQQ", kind, int(np.prod(shapes()[name])), offset, len(content))
        offset += len(content)
    return header + vocabulary + characters + directory + b"".join(stored.values()), stored


def read_slowly(name: str, content: bytes) -> NDArray[np.float32]:
    """Decode a tensor one number at a time."""
    shape = shapes()[name]
    count = int(np.prod(shape))
    numbers = []
    for index in range(count):
        if is_packed(name):
            block, place = divmod(index, 32)
            (scale,) = struct.unpack_from("<e", content, 18 * block)
            pair = content[18 * block + 2 + place % 16]
            numbers.append(((pair & 15 if place < 16 else pair >> 4) - 8) * scale)
        else:
            numbers.append(struct.unpack_from("<f", content, 4 * index)[0])
    return np.array(numbers, dtype=np.float32).reshape(shape)


# The names of a BertModel, written out by hand.
NAMES = {
    "emb.word": "embeddings.word_embeddings.weight",
    "emb.pos": "embeddings.position_embeddings.weight",
    "emb.type": "embeddings.token_type_embeddings.weight",
    "emb.ln.w": "embeddings.LayerNorm.weight",
    "emb.ln.b": "embeddings.LayerNorm.bias",
    "l0.q.w": "encoder.layer.0.attention.self.query.weight",
    "l1.k.b": "encoder.layer.1.attention.self.key.bias",
    "l1.v.w": "encoder.layer.1.attention.self.value.weight",
    "l0.ao.w": "encoder.layer.0.attention.output.dense.weight",
    "l0.aln.w": "encoder.layer.0.attention.output.LayerNorm.weight",
    "l1.fi.w": "encoder.layer.1.intermediate.dense.weight",
    "l1.fo.w": "encoder.layer.1.output.dense.weight",
    "l1.fo.b": "encoder.layer.1.output.dense.bias",
    "l1.oln.b": "encoder.layer.1.output.LayerNorm.bias",
}


def test_tensors_are_those_that_a_slow_loop_reads() -> None:
    content, stored = make_file()
    tensors = parse(content).tensors
    for theirs, ours in NAMES.items():
        np.testing.assert_array_equal(tensors[ours], read_slowly(theirs, stored[theirs]), err_msg=theirs, strict=True)
    assert len(tensors) == len(stored)


def test_the_names_and_shapes_are_those_of_transformers() -> None:
    from transformers import BertConfig, BertModel

    found = parse(make_file()[0])
    model: Any = BertModel(BertConfig(**found.config), add_pooling_layer=False)
    expected = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    assert {name: tensor.shape for name, tensor in found.tensors.items()} == expected


def test_vocabulary_and_characters() -> None:
    found = parse(make_file()[0])
    assert found.pieces == PIECES
    assert found.characters == CHARACTERS


def test_the_config_is_that_of_the_header() -> None:
    config = parse(make_file()[0]).config
    assert config["layer_norm_eps"] == pytest.approx(1e-12)
    expected = {
        "model_type": "bert",
        "hidden_size": HIDDEN,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "intermediate_size": INNER,
        "vocab_size": len(PIECES),
        "max_position_embeddings": POSITIONS,
        "type_vocab_size": TYPES,
        "pad_token_id": 1,
        "hidden_act": "gelu",
    }
    assert {name: config[name] for name in expected} == expected


def test_another_file_is_refused() -> None:
    with pytest.raises(EncoderError, match="must begin with E5S1, got b'GGUF'"):
        parse(b"GGUF" + bytes(100))
