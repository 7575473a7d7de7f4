"""Fits a head to features: Adam, dynamic class weights, early stopping on macro-F1, the best epoch's weights kept."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from emoglot.checkpoint import Checkpoint, optimiser_tensors, restore_optimiser, under
from emoglot.config import Config
from emoglot.errors import TrainingError
from emoglot.features import Features, length_sorted_batches
from emoglot.head import Head, make_head
from emoglot.labels import Targets
from emoglot.loss import DynamicWeighting, Weighting, make_weighting, total_loss
from emoglot.metrics import macro_f1
from emoglot.thresholds import choose_thresholds, decide

# Batches are cut from pools of this many batches' rows sorted by length: little padding, yet ever new company.
POOL_BATCHES = 32
# Padded tokens in one forward pass without gradients.
SCORING_BUDGET = 8192


@dataclass(frozen=True)
class Labelled:
    """Features with what is known of their labels."""

    features: Features
    targets: Targets
    sources: tuple[str, ...]  # the dataset of every row

    def __len__(self) -> int:
        return len(self.features)

    def with_tokens(self) -> Labelled:
        """Leave out texts without tokens."""
        rows = self.features.rows_with_tokens
        return Labelled(self.features.select(rows), self.targets[rows], tuple(self.sources[row] for row in rows))


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
    """Train until macro-F1 on `stopping`, cut by `thresholding`, has not risen for `patience` epochs.

    The head starts from random weights or from those of `start`.
    """
    training, thresholding = training.with_tokens(), thresholding.with_tokens()
    if not len(training):
        raise TrainingError("no training text has a token left after normalisation: are the texts in the right column?")
    trainer = _Trainer(training, config)
    trained = Trained({}, (), best_epoch=0)
    # The caller's own random numbers go on as if nothing had happened.
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        trainer.start(start)
        if checkpoint and (found := checkpoint.read()):
            trained = _resume(trainer, *found)
        while not _is_finished(trained, config):
            began = time.perf_counter()
            loss = trainer.run_epoch(number=len(trained.history) + 1)
            score = _validation_score(trainer, stopping, thresholding, config)
            epoch = Epoch(len(trained.history) + 1, loss, score, time.perf_counter() - began)
            trained = _after(trained, epoch, trainer)
            if checkpoint:
                best = {f"best.{name}": torch.from_numpy(array) for name, array in trained.weights.items()}
                checkpoint.write(trainer.state() | best, [asdict(entry) for entry in trained.history])
            on_epoch(epoch)
    return trained


def _after(trained: Trained, epoch: Epoch, trainer: _Trainer) -> Trained:
    """Take an epoch into the record, and its weights if it is the best so far."""
    history = (*trained.history, epoch)
    if trained.history and epoch.macro_f1 <= max(entry.macro_f1 for entry in trained.history):
        return replace(trained, history=history)
    return Trained(trainer.weights(), history, epoch.number)


def _is_finished(trained: Trained, config: Config) -> bool:
    epochs = len(trained.history)
    return epochs >= config.training.max_epochs or epochs - trained.best_epoch >= config.training.patience


def _resume(trainer: _Trainer, state: dict[str, Tensor], history: list[dict[str, Any]]) -> Trained:
    """Go back to the end of the last epoch of an interrupted run."""
    trainer.restore(state)
    epochs = tuple(Epoch(**entry) for entry in history)
    best = max(epochs, key=lambda epoch: (epoch.macro_f1, -epoch.number))
    weights = {name: tensor.numpy() for name, tensor in under("best.", state).items()}
    return Trained(weights, epochs, best.number)


class _Trainer:
    """A head with its optimiser, its class weights and the habits of each dataset.

    Annotators of one dataset say "trust" or "anger" sooner than those of another. Each dataset has a bias of its own on
    the logits, which takes this up in training and is left out when the head is measured and used.
    """

    def __init__(self, training: Labelled, config: Config) -> None:
        self._training = training
        names, self._source_of = np.unique(training.sources, return_inverse=True)
        self._source_count = len(names)
        self._config = config
        self._device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    def start(self, weights: Mapping[str, NDArray[np.float32]] | None = None) -> None:
        """Draw the initial weights, or take them over; everything random after this follows from the seed."""
        settings = self._config.training
        torch.manual_seed(settings.seed)
        width = self._training.targets.shape[1]
        self._head: Head = make_head(self._config.head, self._training.features.dim, width).to(self._device)
        if weights is not None:
            self._head.load_state_dict({name: torch.from_numpy(array.copy()) for name, array in weights.items()})
        # From zero, so that they draw no random numbers; the only dataset's habits are simply the truth.
        self._habits = torch.zeros(self._source_count, width, device=self._device, requires_grad=self._source_count > 1)
        parameters = [*self._head.parameters(), *([self._habits] if self._habits.requires_grad else [])]
        self._optimiser = torch.optim.Adam(
            parameters, lr=settings.learning_rate, weight_decay=settings.weight_decay, fused=True
        )
        positives = (self._training.targets == 1).sum(axis=0)
        self._weighting: Weighting = make_weighting(self._config.loss, positives)

    def run_epoch(self, number: int) -> float:
        """Take one step per batch and give the mean loss."""
        self._head.train()
        settings = self._config.training
        order = np.random.default_rng((settings.seed, number)).permutation(len(self._training))
        losses = []
        for batch in pooled_batches(order, self._training.features.lengths, settings.batch_size):
            vectors, lengths = self._pad(self._training.features, batch)
            targets = torch.from_numpy(self._training.targets[batch]).to(self._device)
            if settings.token_dropout:
                is_kept = torch.rand(vectors.shape[:2], device=self._device) >= settings.token_dropout
                vectors = vectors * is_kept[..., None]
            logits, _ = self._head(vectors, lengths)
            logits = logits + self._habits[torch.from_numpy(self._source_of[batch])]
            loss = total_loss(logits, targets, self._config.loss, self._weighting)
            self._optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            self._optimiser.step()
            losses.append(float(loss.detach()))
        if not np.isfinite(losses).all():
            raise TrainingError(
                f"the loss became {losses[-1]} in epoch {number}: lower training.learning_rate, "
                f"which is {settings.learning_rate:g}"
            )
        return float(np.mean(losses))

    def scores(self, features: Features) -> NDArray[np.float32]:
        """Score texts; one without tokens scores 0."""
        self._head.eval()
        scores = np.zeros((len(features), self._training.targets.shape[1]), dtype=np.float32)
        rows = features.rows_with_tokens
        with torch.inference_mode():
            for batch in length_sorted_batches(features.lengths[rows], SCORING_BUDGET):
                logits, _ = self._head(*self._pad(features, rows[batch]))
                scores[rows[batch]] = torch.sigmoid(logits).cpu().numpy()
        return scores

    def weights(self) -> dict[str, NDArray[np.float32]]:
        """Copy the current weights."""
        return {name: tensor.cpu().numpy().copy() for name, tensor in self._head.state_dict().items()}

    def state(self) -> dict[str, Tensor]:
        """Give all that the next epoch depends on, as tensors."""
        tensors = {f"head.{name}": tensor for name, tensor in self._head.state_dict().items()}
        tensors |= optimiser_tensors("adam", self._optimiser)
        if isinstance(self._weighting, DynamicWeighting):
            tensors["omega"] = self._weighting.omega
        tensors["habits"] = self._habits.detach()
        tensors["random"] = torch.get_rng_state()
        if torch.cuda.is_available():
            tensors["random-cuda"] = torch.cuda.get_rng_state()
        return tensors

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Take up a state that `state` gave."""
        self._head.load_state_dict(under("head.", tensors))
        restore_optimiser("adam", self._optimiser, tensors)
        if isinstance(self._weighting, DynamicWeighting):
            self._weighting.omega = tensors["omega"]
        with torch.no_grad():
            self._habits.copy_(tensors["habits"])
        torch.set_rng_state(tensors["random"])
        if "random-cuda" in tensors:
            torch.cuda.set_rng_state(tensors["random-cuda"])

    def _pad(self, features: Features, rows: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
        vectors, lengths = features.pad(rows)
        # torch widens seven times faster than numpy.
        return torch.from_numpy(vectors).to(self._device).float(), torch.from_numpy(lengths).to(self._device)


def pooled_batches(
    order: NDArray[np.int64], lengths: NDArray[np.int64], batch_size: int
) -> Iterator[NDArray[np.int64]]:
    """Cut shuffled rows into batches of similar length, in an order that does not follow length."""
    pool_size = POOL_BATCHES * batch_size
    for start in range(0, len(order), pool_size):
        pool = order[start : start + pool_size]
        by_length = pool[np.argsort(lengths[pool], kind="stable")]
        firsts = np.arange(0, len(pool), batch_size)
        # The pool's first rows are in random order already: they shuffle the batches.
        for first in firsts[np.argsort(pool[: len(firsts)], kind="stable")]:
            yield by_length[first : first + batch_size]


def _validation_score(trainer: _Trainer, stopping: Labelled, thresholding: Labelled, config: Config) -> float:
    thresholds = choose_thresholds(trainer.scores(thresholding.features), thresholding.targets)
    chosen = decide(trainer.scores(stopping.features), thresholds, single_label=config.single_label)
    return macro_f1(stopping.targets, chosen)
