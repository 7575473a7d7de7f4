"""Averages the weights of a fine-tuned model and of the model that its training started from.

    python recipes/average.py build/before build/trained build/averaged

Both networks are in int8. The n-grams are left out: `recipes/ngrams.py` adds and calibrates them.
"""

from __future__ import annotations

import sys
import tempfile
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

SHARE = 0.5  # of the trained weights


def main(before: Path, trained: Path, out: Path) -> None:
    """Write a model folder with the mean of both networks and heads."""
    first, second = (emoglot.load(folder) for folder in (before, trained))
    weights = {name: mean(first.state.weights[name], array) for name, array in second.state.weights.items()}
    with tempfile.TemporaryDirectory() as scratch:
        source, other, encoder = (Path(scratch) / name for name in ("trained", "before", "encoder"))
        for folder in (source, other, encoder):
            folder.mkdir()
        restore_float32(trained / ENCODER_FOLDER, source)
        restore_float32(before / ENCODER_FOLDER, other)
        arrays = load_file(other / WEIGHTS_FILE)
        mixed = {name: mean(arrays[name], array) for name, array in load_file(source / WEIGHTS_FILE).items()}
        write_weights(mixed, source)
        max_tokens = EncoderDescription.read(trained / ENCODER_FOLDER).max_tokens
        write_int8(source, encoder, second.state.encoder_name, max_tokens)
        found = OnnxEncoder(encoder, second.state.encoder_name)
        state = replace(
            second.state,
            weights=weights,
            graph=compile_head(second.config.head, weights),
            wide=None,
            encoder_fingerprint=found.fingerprint,
        )
        Model(state, found).save(out)
    sys.stdout.write(f"{out}\n")


def mean(before: NDArray[np.float32], trained: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the weighted mean of two arrays."""
    return (1 - SHARE) * before + SHARE * trained


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
