"""The checks of a model folder, which may come from an untrusted source."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from emoglot.config import Config
from emoglot.encoders.description import MAX_NAME
from emoglot.encoders.foreign import foreign_errors
from emoglot.encoders.operators import check_graph
from emoglot.errors import ModelError
from emoglot.inference.description import (
    CARD_FILE,
    DESCRIPTION_FILE,
    LANGUAGES_FILE,
    ModelDescription,
    check_place,
    parse_json,
)
from emoglot.inference.strictness import STEPS
from emoglot.inference.thresholds import NEVER
from emoglot.labels import check_names
from emoglot.text.normalise import NORMALISATION_VERSION

if TYPE_CHECKING:
    from emoglot.inference.folder import ModelState

# More than any model needs; an untrusted folder must not fill the memory before it is rejected.
MAX_FILE_BYTES = 2**30
MAX_PAGE_BYTES = 2**20
MAX_LABELS = 1000
_MAX_PATH = 4096
_HALF_INFINITY, _MINUS_HALF_INFINITY = 0x7C00, 0xFC00  # bits of float16

_WEIGHT_DTYPES = {
    "head.": np.float32,
    "wide.signs": np.uint8,
    "wide.idf": np.float16,
    "wide.unknown_idf": np.float16,
    "wide.weights": np.int8,
    "wide.steps": np.float16,
    "wide.bias": np.float32,
}


def read_file(folder: Path, name: str, description: ModelDescription, most_bytes: int = MAX_FILE_BYTES) -> bytes:
    """Read a file; raise ModelError if its size or hash is not the recorded one."""
    recorded = description.files.get(name)
    if recorded is None:
        raise ModelError(f"{folder / DESCRIPTION_FILE} records no size and hash for {name}: copy or train it again")
    path = folder / name
    if not path.is_file():
        raise ModelError(f"{folder} is incomplete: {name} is missing; copy or train it again")
    found = path.stat().st_size
    if found != recorded.bytes:
        raise ModelError(
            f"{path} must have {recorded.bytes} bytes, got {found}: it is truncated or another file; copy it again"
        )
    check_place(path, folder, most_bytes)
    data = path.read_bytes()
    if sha256(data) != recorded.sha256:
        raise ModelError(f"{path} has changed: its sha256 is not the recorded one; copy or train it again")
    return data


def check_pages(folder: Path, description: ModelDescription) -> None:
    """Check the model card and the languages, if they exist.

    The card may be edited. The file of languages must have the recorded hash, which earlier versions did not record.
    """
    read_page(folder, CARD_FILE)
    if read_entries(folder) is not None and LANGUAGES_FILE in description.files:
        read_file(folder, LANGUAGES_FILE, description, MAX_PAGE_BYTES)


def read_page(folder: Path, name: str) -> str | None:
    """Read the card or the languages: UTF-8, of limited size and inside the folder; None if the file is missing."""
    path = folder / name
    if not os.path.lexists(path):
        return None
    check_place(path, folder, MAX_PAGE_BYTES)
    try:
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise ModelError(f"{path} must be UTF-8: {error}; save it as UTF-8, or remove it") from error


def read_entries(folder: Path) -> list[dict[str, Any]] | None:
    """Read the measured quality of each language; None if it was not measured."""
    path, text = folder / LANGUAGES_FILE, read_page(folder, LANGUAGES_FILE)
    if text is None:
        return None
    entries = parse_json(path, text.encode())
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ModelError(f"{path} must be a list of languages: remove it, or copy the folder again")
    return entries


def check_head(path: Path, graph: bytes) -> None:
    """Check the operators of the head before onnxruntime reads it; all its weights are in the file."""
    try:
        if external := check_graph(graph).external:
            raise ValueError(f"it has weights in other files: {', '.join(sorted(external))[:100]}")
    except ValueError as error:
        raise ModelError(f"{path} cannot be run by onnxruntime: {error}; copy or train the model again") from error


def read_tensors(path: Path, data: bytes) -> dict[str, NDArray[Any]]:
    """Read the weights; check their names and types, and that they are finite."""
    from safetensors.numpy import load

    with foreign_errors(path, ModelError, "does not describe a model", "copy or train it again"):
        tensors: dict[str, NDArray[Any]] = load(data)
    for name, array in tensors.items():
        dtype = next((dtype for start, dtype in _WEIGHT_DTYPES.items() if name.startswith(start)), None)
        if dtype is None or array.dtype != dtype:
            wanted = "be named head.… or wide.…" if dtype is None else f"be {np.dtype(dtype).name}"
            raise ModelError(f"{path}: {name[:100]!r} must {wanted}, got {array.dtype.name}; copy or train it again")
        if not _is_finite(array):
            raise ModelError(f"{path}: {name[:100]!r} must be finite, got NaN or infinity; copy or train it again")
    return tensors


def _is_finite(array: NDArray[Any]) -> bool:
    if array.dtype != np.float16:
        return bool(np.isfinite(array).all())
    # numpy is slow for float16. As integers, infinity and NaN are the largest values of either sign.
    positive, negative = array.view(np.int16), array.view(np.uint16)
    return not array.size or bool(positive.max() < _HALF_INFINITY and negative.max() < _MINUS_HALF_INFINITY)


def check_labels(labels: Sequence[str]) -> tuple[str, ...]:
    """Return the labels; raise ModelError if there are too many, before they are compared with each other."""
    if len(labels) > MAX_LABELS:
        raise ModelError(f"a model may have at most {MAX_LABELS} labels, got {len(labels)}: train it on fewer")
    return check_names(labels)


def check_encoder_name(name: str) -> str:
    """Raise ModelError unless a name is that of an encoder, an absolute path, or a path below the working directory."""
    parts = re.split(r"[/\\]", name)
    if not name.strip() or not name.isprintable() or len(name) > _MAX_PATH or max(map(len, parts)) > MAX_NAME:
        raise ModelError(f"the name of an encoder must have 1 to {MAX_NAME} printable characters, got {name[:50]!r}")
    if ".." in parts or name.startswith(("//", "\\\\", "~")):
        raise ModelError(
            f"an encoder must not be above the working directory or on another machine, got {name[:200]!r}"
        )
    return name


def check_state(state: ModelState, normalisation: int | None, folder: Path) -> None:
    """Check that the parts of a model fit together."""
    _check_thresholds(state, folder)
    if normalisation != NORMALISATION_VERSION:
        raise ModelError(
            f"{folder} was trained with version {normalisation} of the normalisation, this emoglot has version "
            f"{NORMALISATION_VERSION}: train it again"
        )
    if state.wide:
        _check_wide(state, state.config, folder)
    # The reverse is allowed: a label that no validation row annotates has no metrics.
    if strange := state.metrics.overall.per_class.keys() - set(state.labels):
        raise ModelError(f"{folder}: metrics must be of labels, got {', '.join(sorted(strange)[:5])}")


def _check_thresholds(state: ModelState, folder: Path) -> None:
    width = len(state.labels)
    cuts = (state.thresholds, *state.language_thresholds.values(), *state.matched_thresholds.values())
    if any(thresholds.shape != (width,) for thresholds in cuts):
        raise ModelError(f"{folder}: there must be one threshold for each of {width} labels")
    tables = () if state.strictness is None else tuple(vars(state.strictness).values())
    if any(table.shape != (width, STEPS) for table in tables):
        raise ModelError(f"{folder}: strictness must have {STEPS} thresholds for each of {width} labels")
    for thresholds in (*cuts, *(table.ravel() for table in tables)):
        finite = thresholds[thresholds != NEVER]
        if wrong := finite[~((finite >= 0) & (finite <= 1))].tolist():
            raise ModelError(f"{folder}: thresholds must be in [0, 1] or null, got {wrong[:5]}")


def _check_wide(state: ModelState, config: Config, folder: Path) -> None:
    assert state.wide
    buckets, outputs = config.wide.buckets, len(state.outputs)
    ngrams = [array.shape for array in vars(state.wide.ngrams).values()]
    shapes = (*ngrams, state.wide.weights.shape, state.wide.steps.shape, state.wide.bias.shape)
    if shapes != ((buckets,), (buckets,), (1,), (buckets, outputs), (buckets,), (outputs,)):
        raise ModelError(f"{folder}: the wide channel must fit {buckets} buckets and {outputs} labels, got {shapes}")


def sha256(data: bytes) -> str:
    """Return the SHA-256 of some bytes, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()
