"""A file from which an interrupted training resumes: tensors and history, written atomically."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor
from torch.optim import Optimizer

from emoglot.errors import UsageError
from emoglot.files import draft
from emoglot.inference.folder import under

# Between two saves within an epoch: the most that an interruption can lose. A save takes a second or two.
SECONDS = 300.0
_OPTIMISER = "adam."  # before the names of its tensors


def optimiser_tensors(optimiser: Optimizer) -> dict[str, Tensor]:
    """Return the moments of an optimiser as tensors."""
    return {
        f"{_OPTIMISER}{index}.{part}": torch.as_tensor(value)
        for index, entry in optimiser.state_dict()["state"].items()
        for part, value in entry.items()
    }


def restore_optimiser(optimiser: Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Restore the moments that `optimiser_tensors` returned."""
    moments: dict[int, dict[str, Tensor]] = {}
    for key, tensor in under(_OPTIMISER, tensors).items():
        index, part = key.split(".")
        moments.setdefault(int(index), {})[part] = tensor
    optimiser.load_state_dict(optimiser.state_dict() | {"state": moments})


class Checkpoint:
    """The last saved state of a run, which `key` identifies.

    It is saved after every epoch, and within long ones every `SECONDS`.
    """

    def __init__(self, path: Path, key: Any) -> None:
        self._path = path
        self._key = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()
        self._written = time.monotonic()

    def is_due(self) -> bool:
        """Return whether the last save is at least `SECONDS` ago."""
        return time.monotonic() - self._written >= SECONDS

    def write(self, tensors: dict[str, Tensor], history: list[dict[str, Any]]) -> None:
        """Replace the file atomically."""
        # Copies, since safetensors rejects tensors that share memory, as weights and best weights may.
        contiguous = {name: tensor.detach().cpu().clone().contiguous() for name, tensor in tensors.items()}
        try:
            with draft(self._path) as path:
                save_file(contiguous, path, metadata={"key": self._key, "history": json.dumps(history)})
        except SafetensorError as error:
            raise OSError(f"cannot write {self._path}: {error}") from error
        self._written = time.monotonic()

    def read(self) -> tuple[dict[str, Tensor], list[dict[str, Any]]] | None:
        """Return tensors and history, or None if there is no file."""
        if not self._path.exists():
            return None
        try:
            with safe_open(self._path, framework="pt") as file:
                metadata = file.metadata() or {}
                if metadata["key"] != self._key:
                    raise UsageError(
                        f"{self._path} belongs to an interrupted training with other data or settings: repeat that "
                        "one, or move the file away to start this one"
                    )
                names = file.keys()  # not a dict's method
                # Copies, since some systems cannot replace a mapped file.
                tensors = {name: file.get_tensor(name).clone() for name in names}
                return tensors, json.loads(metadata["history"])
        except (SafetensorError, OSError, ValueError, KeyError) as error:
            raise UsageError(
                f"{self._path} is damaged or not a checkpoint: move it away to start the training again"
            ) from error
