"""Trains a model on datasets, in memory or into a folder."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from emoglot.config import Config
from emoglot.data.dataset import Dataset
from emoglot.encoders.base import Encoder
from emoglot.encoders.features import FeatureCache, Progress
from emoglot.encoders.onnx import check_quantization
from emoglot.encoders.registry import load_encoder, load_trainable
from emoglot.encoders.store import cache_folder
from emoglot.errors import UsageError, needs_extra
from emoglot.inference.folder import check_target
from emoglot.model import Model

with needs_extra("train", "training"):
    from emoglot.training.fit import fit_parts
    from emoglot.training.loop import Epoch, find_device
    from emoglot.training.parts import prepare


def train_model(
    encoder: str | os.PathLike[str] | Encoder,
    training: Dataset,
    validation: Dataset | None = None,
    config: Config | None = None,
    *,
    quantize: str = "none",
    device: str = "auto",
    cache: Path | None = None,
    on_features: Progress | None = None,
    on_epoch: Callable[[Epoch], None] = lambda epoch: None,
    on_step: Progress = lambda done, total: None,
    checkpoint: Path | None = None,
    start: Model | None = None,
    chances: NDArray[np.float32] | None = None,
) -> Model:
    """Train a model on datasets; without a validation set, some of the training rows are held out.

    An interrupted run resumes from the file `checkpoint`, with the same result. The network starts from random weights,
    or from those of `start`, a model with the same encoder, labels and head. `chances` (rows, labels), probabilities
    given by teachers, replace the labels. `cache` is the folder of token vectors kept between runs.
    """
    config = config or Config()
    check_quantization(quantize)
    if quantize != "none" and not config.fine_tune.enabled:
        raise UsageError(
            f"quantize={quantize!r} is only for fine-tuned encoders: quantise a frozen one with "
            "`emoglot encoders install` or `export`"
        )
    find_device(device)  # fail before anything is encoded
    base = load_trainable(encoder) if config.fine_tune.enabled else load_encoder(encoder)
    features = FeatureCache(cache or cache_folder() / "features", base)
    parts = prepare(base, training, validation, config, features, on_features, chances)
    fitted = fit_parts(
        parts,
        base,
        config,
        on_epoch,
        checkpoint,
        start.state if start else None,
        quantize=quantize,
        device=device,
        on_step=on_step,
    )
    return Model(fitted.state, fitted.encoder)


def check_folder(folder: Path, *, overwrite: bool) -> None:
    """Raise an error unless the folder is new, or a model that may be replaced."""
    if folder.exists() and not overwrite:
        raise UsageError(f"{folder} already exists: choose another --out, or replace it with --overwrite")
    check_target(folder)


def checkpoint_of(folder: Path) -> Path:
    """Return the checkpoint file of the training of the model in a folder."""
    folder = folder.resolve()
    return folder.with_name(f"{folder.name}.checkpoint")


def save_trained(model: Model, folder: Path, *, overwrite: bool) -> None:
    """Write a model to its folder and remove its checkpoint."""
    if folder.exists() and not overwrite:
        raise UsageError(
            f"{folder} was created by another process during training: move it away, and the same command resumes from "
            f"{checkpoint_of(folder)}"
        )
    model.save(folder)
    checkpoint_of(folder).unlink(missing_ok=True)
