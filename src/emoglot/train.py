"""Trains a network: early stopping on macro-F1, the best epoch's weights kept, going on from a checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from emoglot.checkpoint import Checkpoint, under
from emoglot.config import Config
from emoglot.errors import TrainingError, UsageError
from emoglot.features import Features
from emoglot.metrics import macro_f1
from emoglot.thresholds import choose_thresholds, decide
from emoglot.trainer import HeadLearner, Labelled, Learner, Trainer


@dataclass(frozen=True)
class Epoch:
    """What one epoch came to."""

    number: int
    loss: float
    macro_f1: float
    seconds: float


@dataclass(frozen=True)
class Trained:
    """The weights of the best epoch, and how training went."""

    weights: dict[str, NDArray[np.float32]]
    history: tuple[Epoch, ...]
    best_epoch: int


def train_head(
    training: Labelled,
    stopping: Labelled,
    thresholding: Labelled,
    config: Config,
    on_epoch: Callable[[Epoch], None] = lambda epoch: None,
    checkpoint: Checkpoint | None = None,
    start: Mapping[str, NDArray[np.float32]] | None = None,
) -> Trained:
    """Train a head on frozen vectors; see `train`."""
    assert isinstance(training.inputs, Features)
    learner = HeadLearner(config, training.inputs.dim)
    return train(learner, training, stopping, thresholding, config, on_epoch, checkpoint, start)


def train(
    learner: Learner,
    training: Labelled,
    stopping: Labelled,
    thresholding: Labelled,
    config: Config,
    on_epoch: Callable[[Epoch], None] = lambda epoch: None,
    checkpoint: Checkpoint | None = None,
    start: Mapping[str, NDArray[np.float32]] | None = None,
    device: str = "auto",
) -> Trained:
    """Train until macro-F1 on `stopping`, cut by `thresholding`, has not risen for `patience` epochs.

    The network starts as the learner makes it; parameters that `start` names are taken from there.
    """
    training, thresholding = training.with_tokens(), thresholding.with_tokens()
    if not len(training):
        raise TrainingError("no training text has a token left after normalisation: are the texts in the right column?")
    trainer = Trainer(learner, training, config, find_device(device))
    trained = Trained({}, (), best_epoch=0)
    # The caller's own random numbers go on as if nothing had happened.
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        trainer.start(start)
        if checkpoint and (found := checkpoint.read()):
            trained = _resume(trainer, *found)

        def save(*, is_epoch_over: bool) -> None:
            if checkpoint and (is_epoch_over or checkpoint.is_due()):
                best = {f"best.{name}": torch.from_numpy(array) for name, array in trained.weights.items()}
                checkpoint.write(trainer.state() | best, [asdict(entry) for entry in trained.history])

        while not _is_finished(trained, config):
            number = len(trained.history) + 1
            with _memory_told(config):
                loss = trainer.run_epoch(number, lambda: save(is_epoch_over=False))
                score = _validation_score(trainer, stopping, thresholding, config)
            epoch = Epoch(number, loss, score, trainer.end_epoch())
            trained = _after(trained, epoch, trainer)
            save(is_epoch_over=True)
            on_epoch(epoch)
    return trained


@contextmanager
def _memory_told(config: Config) -> Iterator[None]:
    """Turn torch's errors about memory, of which there are several, into a sentence."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, MemoryError) and "memory" not in str(error):
            raise
        size = config.training.batch_size
        raise TrainingError(
            f"there is too little memory for batches of {size} texts: lower training.batch_size"
            + (" and raise fine_tune.accumulate in its place" if config.fine_tune.enabled else "")
        ) from error


def find_device(name: str) -> torch.device:
    """Return the device of a name such as "cpu", "cuda" or "mps"; "auto" takes a GPU if there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.ones(1, device=device).item()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise UsageError(f"a device is auto, cpu, or one that torch has here, got {name!r}: {reason}") from error
    return device


def _after(trained: Trained, epoch: Epoch, trainer: Trainer) -> Trained:
    """Take an epoch into the record, and its weights if it is the best so far."""
    history = (*trained.history, epoch)
    if trained.history and epoch.macro_f1 <= max(entry.macro_f1 for entry in trained.history):
        return replace(trained, history=history)
    return Trained(trainer.weights(), history, epoch.number)


def _is_finished(trained: Trained, config: Config) -> bool:
    epochs = len(trained.history)
    return epochs >= config.training.max_epochs or epochs - trained.best_epoch >= config.training.patience


def _resume(trainer: Trainer, state: dict[str, Tensor], history: list[dict[str, Any]]) -> Trained:
    """Go back to where an interrupted run was saved."""
    trainer.restore(state)
    epochs = tuple(Epoch(**entry) for entry in history)
    best = max(epochs, key=lambda epoch: (epoch.macro_f1, -epoch.number), default=None)
    weights = {name: tensor.numpy() for name, tensor in under("best.", state).items()}
    return Trained(weights, epochs, best.number if best else 0)


def _validation_score(trainer: Trainer, stopping: Labelled, thresholding: Labelled, config: Config) -> float:
    given = stopping.targets.shape[1] - len(config.training.sentiment)  # labels; sentiment behind them is not given
    scores, held_out = (trainer.scores(part.inputs)[:, :given] for part in (thresholding, stopping))
    thresholds = choose_thresholds(scores, thresholding.targets[:, :given])
    return macro_f1(stopping.targets[:, :given], decide(held_out, thresholds, single_label=config.single_label))
