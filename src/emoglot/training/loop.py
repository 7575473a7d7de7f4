"""The training loop: early stopping on macro-F1, the weights of the best epoch, checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from emoglot.config import Config
from emoglot.encoders.features import Progress
from emoglot.errors import TrainingError, UsageError, reason_of
from emoglot.evaluation.metrics import macro_f1
from emoglot.inference.folder import under
from emoglot.inference.thresholds import choose_thresholds, decide
from emoglot.training.checkpoint import Checkpoint
from emoglot.training.part import Part
from emoglot.training.trainer import Learner, Trainer


@dataclass(frozen=True)
class Epoch:
    """The results of one epoch."""

    number: int
    loss: float
    macro_f1: float
    seconds: float


@dataclass(frozen=True)
class Trained:
    """The weights of the best epoch, and the history of all."""

    weights: dict[str, NDArray[np.float32]]
    history: tuple[Epoch, ...]
    best_epoch: int


def train(
    learner: Learner,
    training: Part,
    stopping: Part,
    thresholding: Part,
    config: Config,
    on_epoch: Callable[[Epoch], None] = lambda epoch: None,
    checkpoint: Checkpoint | None = None,
    start: Mapping[str, NDArray[np.float32]] | None = None,
    device: str = "auto",
    on_step: Progress = lambda done, total: None,
) -> Trained:
    """Train until macro-F1 on `stopping` has not risen for `patience` epochs; thresholds come from `thresholding`.

    The parameters in `start` replace the initial ones.
    """
    training, thresholding = training.with_tokens(), thresholding.with_tokens()
    if not len(training):
        raise TrainingError(
            "at least one training text must have a token after normalisation, got none: check the text column"
        )
    trainer = Trainer(learner, training, config, find_device(device))
    trained = Trained({}, (), best_epoch=0)
    # Does not change the caller's random state.
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        trainer.start(start)
        if checkpoint and (found := checkpoint.read()):
            trained = _resume(trainer, *found)

        def save(*, is_epoch_over: bool) -> None:
            if checkpoint and (is_epoch_over or checkpoint.is_due()):
                best = {f"best.{name}": torch.from_numpy(array) for name, array in trained.weights.items()}
                checkpoint.write(trainer.state() | best, [asdict(entry) for entry in trained.history])

        def after_step(done: int, total: int) -> None:
            save(is_epoch_over=False)
            on_step(done, total)

        while not _is_finished(trained, config):
            number = len(trained.history) + 1
            with _memory_told(config):
                loss = trainer.run_epoch(number, after_step)
                score = _validation_score(trainer, stopping, thresholding, config)
            epoch = Epoch(number, loss, score, trainer.end_epoch())
            trained = _after(trained, epoch, trainer)
            save(is_epoch_over=True)
            on_epoch(epoch)
    return trained


@contextmanager
def _memory_told(config: Config) -> Iterator[None]:
    """Raise TrainingError in place of torch's various errors about memory."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, MemoryError) and "memory" not in str(error):
            raise
        size = config.training.batch_size
        raise TrainingError(
            f"out of memory with batches of {size} texts: lower training.batch_size"
            + (" and raise fine_tune.accumulate" if config.fine_tune.enabled else "")
        ) from error


def find_device(name: str) -> torch.device:
    """Return the device of a name such as "cpu", "cuda" or "mps"; "auto" is a GPU if there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.ones(1, device=device).item()
    except (RuntimeError, AssertionError, NotImplementedError, ImportError, TypeError) as error:
        raise UsageError(
            f"a device must be auto, cpu or another device that torch supports here, got {name!r}: {reason_of(error)}"
        ) from error
    return device


def _after(trained: Trained, epoch: Epoch, trainer: Trainer) -> Trained:
    """Return the record with an epoch added, and its weights if it is the best so far."""
    history = (*trained.history, epoch)
    if trained.history and epoch.macro_f1 <= max(entry.macro_f1 for entry in trained.history):
        return replace(trained, history=history)
    return Trained(trainer.weights(), history, epoch.number)


def _is_finished(trained: Trained, config: Config) -> bool:
    epochs = len(trained.history)
    return epochs >= config.training.max_epochs or epochs - trained.best_epoch >= config.training.patience


def _resume(trainer: Trainer, state: dict[str, Tensor], history: list[dict[str, Any]]) -> Trained:
    """Restore the state of an interrupted run."""
    trainer.restore(state)
    epochs = tuple(Epoch(**entry) for entry in history)
    best = max(epochs, key=lambda epoch: (epoch.macro_f1, -epoch.number), default=None)
    weights = {name: tensor.numpy() for name, tensor in under("best.", state).items()}
    return Trained(weights, epochs, best.number if best else 0)


def _validation_score(trainer: Trainer, stopping: Part, thresholding: Part, config: Config) -> float:
    given = stopping.targets.shape[1] - len(config.training.sentiment)  # without the sentiment outputs
    scores, held_out = (trainer.scores(part.inputs)[:, :given] for part in (thresholding, stopping))
    thresholds = choose_thresholds(scores, thresholding.targets[:, :given])
    is_read = np.isin(np.arange(len(stopping)), stopping.inputs.rows_with_tokens)
    chosen = decide(held_out, thresholds, is_read, single_label=config.single_label)
    return macro_f1(stopping.targets[:, :given], chosen)
