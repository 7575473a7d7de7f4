"""Shrinks a BERT or XLM-R encoder: fewer layers, and only the pieces that a sample of texts needs."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from safetensors.numpy import load_file

from emoglot.encoders.bert_folder import (
    CONFIG_FILE,
    TOKENIZER_CONFIG_FILE,
    WEIGHTS_FILE,
    finish_float32,
    write_weights,
)
from emoglot.encoders.bert_graph import can_compile
from emoglot.encoders.description import TOKENIZER_FILE, EncoderDescription
from emoglot.errors import EncoderError, UsageError
from emoglot.files import folder_in_the_making
from emoglot.text.normalise import UNREAD

WORD_MARK = "▁"
TEXTS_AT_ONCE = 4096
_LAYER = "encoder.layer."
_EMBEDDINGS = "embeddings.word_embeddings.weight"


def shrink(source: Path, out: Path, layers: Sequence[int], pieces: int, texts: Iterable[str]) -> Path:
    """Write an encoder folder with some layers and pieces of that in `source`, for further training."""
    config, tokenizer = _read(source, CONFIG_FILE), _read(source, TOKENIZER_FILE)
    if not can_compile(config) or tokenizer["model"]["type"] != "Unigram":
        raise EncoderError(f"only an encoder with the vocabulary of XLM-R can be shrunk, {source} has another")
    if any(token["id"] >= len(tokenizer["model"]["vocab"]) for token in tokenizer["added_tokens"]):
        raise EncoderError(f"{source} has words of an added language: shrink it first, then add the language")
    own = config["num_hidden_layers"]
    if not layers or list(layers) != sorted(set(layers) & set(range(own))):
        raise UsageError(f"layers must be some of 0 to {own - 1}, in order, got {list(layers)} for {source}")
    kept = choose_pieces(tokenizer, pieces, texts)
    tensors = load_file(source / WEIGHTS_FILE)
    with folder_in_the_making(out) as draft:
        small = {name: array for name, array in tensors.items() if not name.startswith(_LAYER)}
        small |= _take_layers(tensors, layers)
        small[_EMBEDDINGS] = tensors[_EMBEDDINGS][kept]
        write_weights(small, draft)
        config |= {"num_hidden_layers": len(layers), "vocab_size": len(kept)}
        config["pad_token_id"] = kept.index(config["pad_token_id"])
        _write(draft / CONFIG_FILE, config)
        _write(draft / TOKENIZER_FILE, _take_pieces(tokenizer, kept))
        _write(draft / TOKENIZER_CONFIG_FILE, _read(source, TOKENIZER_CONFIG_FILE))
        finish_float32(draft, out.name, EncoderDescription.read(source).max_tokens)
    return out


def choose_pieces(tokenizer: Mapping[str, Any], size: int, texts: Iterable[str]) -> list[int]:
    """Return the sorted ids of the pieces to keep: special ones, single characters, and the most frequent."""
    from tokenizers import Tokenizer

    vocabulary = [piece for piece, _ in tokenizer["model"]["vocab"]]
    special = {token["id"] for token in tokenizer["added_tokens"]} | {tokenizer["model"]["unk_id"]}
    # With single characters any word can be tokenised.
    needed = special | {index for index, piece in enumerate(vocabulary) if len(piece.removeprefix(WORD_MARK)) <= 1}
    if size < len(needed):
        raise UsageError(f"pieces must be at least the {len(needed)} single characters and special ones, got {size}")
    used = _count(Tokenizer.from_str(json.dumps(tokenizer)), texts)
    by_use = (index for index, _ in used.most_common() if index not in needed)
    return sorted({*needed, *islice(by_use, size - len(needed))})


def _count(tokenizer: Any, texts: Iterable[str]) -> Counter[int]:
    """Count the occurrences of each piece."""
    used: Counter[int] = Counter()
    remaining = iter(texts)
    while batch := list(islice(remaining, TEXTS_AT_ONCE)):
        for encoding in tokenizer.encode_batch_fast(batch, add_special_tokens=False):
            used.update(encoding.ids)
    return used


def _take_layers(tensors: Mapping[str, NDArray[Any]], layers: Sequence[int]) -> dict[str, NDArray[Any]]:
    return {
        name.replace(f"{_LAYER}{old}.", f"{_LAYER}{new}.", 1): array
        for new, old in enumerate(layers)
        for name, array in tensors.items()
        if name.startswith(f"{_LAYER}{old}.")
    }


def _take_pieces(tokenizer: Mapping[str, Any], kept: Collection[int]) -> dict[str, Any]:
    """Return the tokenizer with these pieces only, renumbered, and a rule that removes `UNREAD`."""
    new_id = {old: new for new, old in enumerate(kept)}
    model = tokenizer["model"]
    vocabulary = [model["vocab"][old] for old in kept]
    frame = {
        name: entry | {"ids": [new_id[old] for old in entry["ids"]]}
        for name, entry in tokenizer["post_processor"]["special_tokens"].items()
    }
    # Mentions and variation selectors carry no emotion.
    unread = [{"type": "Replace", "pattern": {"Regex": f" ?{re.escape(sign)}"}, "content": ""} for sign in UNREAD]
    rules = [*unread, *([tokenizer["normalizer"]] if tokenizer["normalizer"] else [])]
    return {
        **tokenizer,
        "normalizer": {"type": "Sequence", "normalizers": rules},
        "added_tokens": [token | {"id": new_id[token["id"]]} for token in tokenizer["added_tokens"]],
        "post_processor": {**tokenizer["post_processor"], "special_tokens": frame},
        "model": {**model, "vocab": vocabulary, "unk_id": new_id[model["unk_id"]]},
    }


def _read(folder: Path, name: str) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads((folder / name).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise EncoderError(f"{folder} is not a float32 encoder folder: {name} cannot be read") from error
    return content


def _write(path: Path, content: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
