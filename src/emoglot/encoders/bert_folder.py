"""The folder of a BERT or XLM-RoBERTa for onnxruntime; in float32 also for the transformers library."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from emoglot.encoders.description import LAYOUT, MODEL_FILE, TOKENIZER_FILE, EncoderDescription
from emoglot.files import hash_file

CONFIG_FILE, WEIGHTS_FILE, TOKENIZER_CONFIG_FILE = "config.json", "model.safetensors", "tokenizer_config.json"
# Increase it when the graph changes, so that cached vectors are not reused.
_RECIPE_VERSION = 2
# Weights on which token vectors do not depend.
_UNUSED_PREFIX, _UNUSED_SUFFIX = "pooler.", "position_ids"


def write_weights(tensors: Mapping[str, NDArray[Any]], folder: Path) -> None:
    """Write the weights of token vectors as float32."""
    kept = {
        name: np.ascontiguousarray(array, dtype=np.float32)
        for name, array in tensors.items()
        if not name.startswith(_UNUSED_PREFIX) and not name.endswith(_UNUSED_SUFFIX)
    }
    save_file(kept, folder / WEIGHTS_FILE, metadata={"format": "pt"})
    (folder / WEIGHTS_FILE).chmod(0o644)  # the same mode as the other files


def finish_float32(folder: Path, name: str, max_tokens: int, extends: Sequence[str] = ()) -> None:
    """Add the graph and the description to a transformers folder."""
    from emoglot.encoders.bert_graph import compile_beside

    config = _read_config(folder)
    compile_beside(config, folder / WEIGHTS_FILE, folder / MODEL_FILE)
    _describe(folder, name, config, max_tokens, (WEIGHTS_FILE, TOKENIZER_FILE), extends)


def write_int8(source: Path, folder: Path, name: str, max_tokens: int, extends: Sequence[str] = ()) -> None:
    """Quantise a transformers folder to int8 and write it to another folder."""
    from emoglot.encoders.bert_graph import compile_int8

    config = _read_config(source)
    compile_int8(config, load_file(source / WEIGHTS_FILE), folder / MODEL_FILE)
    shutil.copy(source / TOKENIZER_CONFIG_FILE, folder)
    tokenizer = json.loads((source / TOKENIZER_FILE).read_text(encoding="utf-8"))
    # Without indentation, which halves the size.
    compact = json.dumps(tokenizer, ensure_ascii=False, separators=(",", ":"))
    (folder / TOKENIZER_FILE).write_text(compact, encoding="utf-8")
    _describe(folder, name, config, max_tokens, (MODEL_FILE, TOKENIZER_FILE), extends)


def restore_float32(folder: Path, out: Path) -> None:
    """Write a transformers folder with the dequantised weights of an int8 network."""
    from emoglot.encoders.bert_graph import read_int8

    config, weights = read_int8(folder / MODEL_FILE)
    write_weights(weights, out)
    (out / CONFIG_FILE).write_text(json.dumps(config), encoding="utf-8")
    for name in (TOKENIZER_FILE, TOKENIZER_CONFIG_FILE):
        shutil.copy(folder / name, out / name)


def _read_config(folder: Path) -> dict[str, Any]:
    config: dict[str, Any] = json.loads((folder / CONFIG_FILE).read_text(encoding="utf-8"))
    return config


def _describe(
    folder: Path, name: str, config: Mapping[str, Any], max_tokens: int, files: Sequence[str], extends: Sequence[str]
) -> None:
    from emoglot.encoders.bert_graph import INPUTS, OUTPUT

    # A hash of the files: weights from 4 bits and in full precision are two encoders.
    hashes = [hash_file(folder / file) for file in files]
    EncoderDescription(
        name=name,
        fingerprint=hashlib.sha256(" ".join([*hashes, str(_RECIPE_VERSION)]).encode()).hexdigest()[:32],
        dim=config["hidden_size"],
        max_tokens=max_tokens,
        layout=LAYOUT,
        input_names=INPUTS,
        output_name=OUTPUT,
        one_by_one=False,
        extends=tuple(extends),
    ).write(folder)
