"""A file from which an interrupted training goes on: tensors and history, written whole."""

from __future__ import annotations

import hashlib
import json
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor
from torch.optim import Optimizer, SparseAdam

from emoglot.errors import UsageError

# Between two saves of a long epoch: what an interruption can lose at most. Writing takes a second or two.
SECONDS = 300.0


def optimiser_tensors(name: str, optimiser: Optimizer) -> dict[str, Tensor]:
    """Give the moments of an optimiser as tensors, for a checkpoint."""
    return {
        f"{name}.{index}.{part}": torch.as_tensor(value)
        for index, entry in optimiser.state_dict()["state"].items()
        for part, value in entry.items()
    }


def restore_optimiser(name: str, optimiser: Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Take up the moments that `optimiser_tensors` gave."""
    counts_in_python = isinstance(optimiser, SparseAdam)
    moments: dict[int, dict[str, Any]] = {}
    for key, tensor in under(f"{name}.", tensors).items():
        index, part = key.split(".")
        is_count = counts_in_python and part == "step"
        moments.setdefault(int(index), {})[part] = int(tensor) if is_count else tensor
    optimiser.load_state_dict(optimiser.state_dict() | {"state": moments})


def under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Give the tensors whose names begin so, without that beginning."""
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


class Checkpoint:
    """The state of one run when it was last saved; `key` tells this run from any other.

    It is saved after every epoch, and within long ones every `seconds`.
    """

    def __init__(self, path: Path, key: Any, seconds: float = SECONDS) -> None:
        self._path, self._seconds = path, seconds
        self._key = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()
        self._written = time.monotonic()

    def is_due(self) -> bool:
        """Return whether the last save is so long ago that more than a little would be lost."""
        return time.monotonic() - self._written >= self._seconds

    def write(self, tensors: dict[str, Tensor], history: list[dict[str, Any]]) -> None:
        """Replace the file in one step."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        draft = self._path.with_name(f".{self._path.name}.draft")  # one, so that a kill leaves no more than one
        # A copy each: safetensors refuses tensors that share memory, as weights and the best weights may.
        contiguous = {name: tensor.detach().cpu().clone().contiguous() for name, tensor in tensors.items()}
        try:
            save_file(contiguous, draft, metadata={"key": self._key, "history": json.dumps(history)})
        except SafetensorError as error:
            raise OSError(f"{self._path} can't be written: {error}") from error
        draft.replace(self._path)
        self._written = time.monotonic()

    def read(self) -> tuple[dict[str, Tensor], list[dict[str, Any]]] | None:
        """Give tensors and history, or None where there is nothing to go on from; what is not ours is not replaced."""
        if not self._path.exists():
            return None
        try:
            with safe_open(self._path, framework="pt") as file:
                metadata = file.metadata() or {}
                if metadata["key"] != self._key:
                    warnings.warn(f"{self._path} belongs to another run: training starts anew", stacklevel=2)
                    return None
                names = file.keys()  # a method of its own, not a dict's
                # A copy each: what is still mapped can't be replaced on every system.
                tensors = {name: file.get_tensor(name).clone() for name in names}
                return tensors, json.loads(metadata["history"])
        except (SafetensorError, OSError, ValueError, KeyError) as error:
            raise UsageError(
                f"{self._path} is not a checkpoint, or damaged: move it away, and training starts anew"
            ) from error
