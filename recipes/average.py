"""Averages the weights of fine-tuned models with the same layers and pieces.

They were trained from one another, or from the same model.

    python recipes/average.py build/averaged build/before=0.5 build/trained=0.5

The numbers are shares and sum to 1. The networks are in int8. Labels and settings are those of the last model. The
n-grams are left out: `recipes/ngrams.py` adds and calibrates them.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file

import emoglot
from emoglot.encoders.bert_folder import WEIGHTS_FILE, restore_float32, write_int8, write_weights
from emoglot.encoders.description import EncoderDescription
from emoglot.encoders.onnx import OnnxEncoder
from emoglot.inference.folder import ENCODER_FOLDER
from emoglot.model import Model
from emoglot.training.to_onnx import compile_head

Weights = Mapping[str, NDArray[np.float32]]


def main(out: Path, shares: Mapping[Path, float]) -> None:
    """Write a model folder with the mean of all networks and heads."""
    if not np.isclose(sum(shares.values()), 1):
        sys.exit(f"the shares must sum to 1, got {sum(shares.values()):g}")
    *_, last = shares
    state = emoglot.load(last).state
    config = state.config.override({"wide.enabled": False})
    weights = mean((emoglot.load(folder).state.weights, share) for folder, share in shares.items())
    with tempfile.TemporaryDirectory() as scratch:
        source, encoder = Path(scratch) / "source", Path(scratch) / "encoder"
        encoder.mkdir()
        write_weights(mean((restored(folder, source), share) for folder, share in shares.items()), source)
        write_int8(source, encoder, state.encoder_name, EncoderDescription.read(last / ENCODER_FOLDER).max_tokens)
        found = OnnxEncoder(encoder, state.encoder_name)
        averaged = replace(
            state,
            config=config,
            weights=weights,
            graph=compile_head(config.head, weights),
            wide=None,
            encoder_fingerprint=found.fingerprint,
        )
        Model(averaged, found).save(out)
    sys.stdout.write(f"{out}\n")


def restored(folder: Path, scratch: Path) -> Weights:
    """Return the weights of an encoder; its other files are left in a scratch folder."""
    scratch.mkdir(exist_ok=True)
    restore_float32(folder / ENCODER_FOLDER, scratch)
    return load_file(scratch / WEIGHTS_FILE)


def mean(parts: Iterable[tuple[Weights, float]]) -> dict[str, NDArray[np.float32]]:
    """Return the weighted mean of arrays with the same names."""
    total: dict[str, NDArray[np.float32]] = {}
    for arrays, share in parts:
        for name, array in arrays.items():
            total[name] = total.get(name, np.float32(0)) + np.float32(share) * array
    return total


if __name__ == "__main__":
    folders, numbers = zip(*(argument.rsplit("=", 1) for argument in sys.argv[2:]), strict=True)
    main(Path(sys.argv[1]), dict(zip(map(Path, folders), map(float, numbers), strict=True)))
