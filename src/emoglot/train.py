"""Fits a head to features: Adam, dynamic class weights, early stopping on macro-F1, the best epoch's weights kept."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from emoglot.config import Config
from emoglot.errors import TrainingError
from emoglot.features import Features, length_sorted_batches
from emoglot.head import Head, make_head
from emoglot.labels import Targets
from emoglot.loss import Weighting, make_weighting, total_loss
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

    def __len__(self) -> int:
        return len(self.features)


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
) -> Trained:
    """Train until macro-F1 on `stopping`, cut by `thresholding`, has not risen for `patience` epochs."""
    rows = np.flatnonzero(training.features.lengths)  # a text without tokens teaches nothing
    if not len(rows):
        raise TrainingError("no training text has a token left after normalisation: are the texts in the right column?")
    trainer = _Trainer(training, config)
    history: list[Epoch] = []
    best: Epoch | None = None
    # The caller's own random numbers go on as if nothing had happened.
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        trainer.start()
        while len(history) < config.training.max_epochs:
            began = time.perf_counter()
            loss = trainer.run_epoch(rows, number=len(history) + 1)
            score = _validation_score(trainer, stopping, thresholding, config)
            epoch = Epoch(len(history) + 1, loss, score, time.perf_counter() - began)
            history.append(epoch)
            on_epoch(epoch)
            if best is None or epoch.macro_f1 > best.macro_f1:
                best, weights = epoch, trainer.weights()
            if epoch.number - best.number >= config.training.patience:
                break
    assert best is not None  # max_epochs is at least 1
    return Trained(weights, tuple(history), best.number)


class _Trainer:
    """A head with its optimiser and class weights."""

    def __init__(self, training: Labelled, config: Config) -> None:
        self._training = training
        self._config = config
        self._device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    def start(self) -> None:
        """Draw the initial weights; everything random after this follows from the seed."""
        settings = self._config.training
        torch.manual_seed(settings.seed)
        width = self._training.targets.shape[1]
        self._head: Head = make_head(self._config.head, self._training.features.dim, width).to(self._device)
        self._optimiser = torch.optim.Adam(
            self._head.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay
        )
        positives = (self._training.targets == 1).sum(axis=0)
        self._weighting: Weighting = make_weighting(self._config.loss, positives)

    def run_epoch(self, rows: NDArray[np.int64], number: int) -> float:
        """Take one step per batch and give the mean loss."""
        self._head.train()
        settings = self._config.training
        order = np.random.default_rng((settings.seed, number)).permutation(rows)
        losses = []
        for batch in pooled_batches(order, self._training.features.lengths, settings.batch_size):
            vectors, lengths = self._pad(self._training.features, batch)
            targets = torch.from_numpy(self._training.targets[batch]).to(self._device)
            logits, _ = self._head(vectors, lengths)
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
        rows = np.flatnonzero(features.lengths)
        with torch.inference_mode():
            for batch in length_sorted_batches(features.lengths[rows], SCORING_BUDGET):
                logits, _ = self._head(*self._pad(features, rows[batch]))
                scores[rows[batch]] = torch.sigmoid(logits).cpu().numpy()
        return scores

    def weights(self) -> dict[str, NDArray[np.float32]]:
        """Copy the current weights."""
        return {name: tensor.cpu().numpy().copy() for name, tensor in self._head.state_dict().items()}

    def _pad(self, features: Features, rows: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
        vectors, lengths = features.pad(rows)
        return torch.from_numpy(vectors).to(self._device), torch.from_numpy(lengths).to(self._device)


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
    single_label = config.task == "single-label"
    return macro_f1(stopping.targets, decide(trainer.scores(stopping.features), thresholds, single_label=single_label))
