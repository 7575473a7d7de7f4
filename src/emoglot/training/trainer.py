"""The trainer: runs the steps of an epoch with a network, its optimiser, class weights and per-dataset biases."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.optim import Optimizer

from emoglot.config import Config
from emoglot.encoders.features import Progress, length_sorted_batches
from emoglot.errors import TrainingError
from emoglot.inference.folder import under
from emoglot.training.checkpoint import optimiser_tensors, restore_optimiser
from emoglot.training.head import make_head
from emoglot.training.loss import DynamicWeighting, Weighting, make_weighting, total_loss
from emoglot.training.part import Inputs, Part

# Rows are sorted by length within pools of this many batches: little padding, and random batches.
POOL_BATCHES = 32
# Padded tokens in one forward pass without gradients.
SCORING_BUDGET = 8192


class Learner(Protocol):
    """Defines what is trained, and how: a head on frozen vectors, or an encoder with its head."""

    batches_per_step: int
    largest_gradient: float | None  # gradients are clipped to this norm

    def make_network(self, labels: int) -> nn.Module:
        """Return a network that maps padded inputs and true lengths to logits and attention."""

    def make_optimiser(self, network: nn.Module, biases: Sequence[Tensor]) -> Optimizer:
        """Return an optimiser of the network's parameters and the per-dataset biases."""

    def rate(self, step: int, steps: int) -> float:
        """Return the factor of the learning rates in a step."""

    def drop(self, padded: Tensor, is_dropped: Tensor) -> Tensor:
        """Return inputs with tokens dropped where `is_dropped` (batch, tokens)."""


class HeadLearner:
    """Trains a head on the vectors of a frozen encoder, as the paper does."""

    batches_per_step = 1
    largest_gradient: float | None = None

    def __init__(self, config: Config, dim: int) -> None:
        self._config, self._dim = config, dim

    def make_network(self, labels: int) -> nn.Module:
        """Return a head with random weights."""
        return make_head(self._config.head, self._dim, labels)

    def make_optimiser(self, network: nn.Module, biases: Sequence[Tensor]) -> Optimizer:
        """Return Adam over all parameters."""
        settings = self._config.training
        parameters = [*network.parameters(), *biases]
        return torch.optim.Adam(parameters, lr=settings.learning_rate, weight_decay=settings.weight_decay, fused=True)

    def rate(self, step: int, steps: int) -> float:
        """Return 1: the learning rate is constant."""
        return 1.0

    def drop(self, padded: Tensor, is_dropped: Tensor) -> Tensor:
        """Return vectors with dropped tokens set to zero."""
        return padded * ~is_dropped[..., None]


class Trainer:
    """A network with its optimiser, class weights and per-dataset biases.

    Annotators of one dataset choose "trust" or "anger" more readily than those of another. A per-dataset bias on the
    logits accounts for this in training; it is not used in evaluation and prediction.
    """

    def __init__(self, learner: Learner, training: Part, config: Config, device: torch.device) -> None:
        self._learner, self._training, self._config, self._device = learner, training, config, device
        names, self._source_of = np.unique(training.data.sources, return_inverse=True)
        self._source_count = len(names)
        # The weight of absent labels in each dataset; without `single_choice`, all are 1.
        weights = [config.training.zero_weight(name) for name in names.tolist()]
        self._zero_weights = torch.tensor(weights) if config.training.single_choice else None
        # Of the current epoch: batches done, their losses, and the seconds before it was resumed.
        self._done, self._losses, self._seconds_before = 0, [0.0] * 0, 0.0

    def start(self, weights: Mapping[str, NDArray[np.float32]] | None = None) -> None:
        """Set the random seed and initialise the network, with `weights` for the parameters they name."""
        torch.manual_seed(self._config.training.seed)
        width = self._training.learnt.shape[1]
        self._network = self._learner.make_network(width).to(self._device)
        if weights is not None:
            given = {name: torch.from_numpy(array.copy()) for name, array in weights.items()}
            found = self._network.load_state_dict(given, strict=False)
            assert not found.unexpected_keys, found.unexpected_keys
        # Zeros, so that no random numbers are drawn; with one dataset there is no bias to train.
        self._biases = torch.zeros(self._source_count, width, device=self._device, requires_grad=self._source_count > 1)
        self._optimiser = self._learner.make_optimiser(
            self._network, [self._biases] if self._biases.requires_grad else []
        )
        self._rates = [group["lr"] for group in self._optimiser.param_groups]
        positives = (self._training.learnt >= 0.5).sum(axis=0)  # also of probabilities
        self._weighting: Weighting = make_weighting(self._config.loss, positives)

    def run_epoch(self, number: int, after_step: Progress = lambda done, total: None) -> float:
        """Run the remaining steps of an epoch and return the mean loss of its batches."""
        self._began = time.perf_counter()
        self._network.train()
        settings = self._config.training
        order = np.random.default_rng((settings.seed, number)).permutation(len(self._training))
        order = order[: settings.epoch_rows or None]
        batches = list(pooled_batches(order, self._training.inputs.lengths, settings.batch_size))
        for first in range(self._done, len(batches), self._learner.batches_per_step):
            together = batches[first : first + self._learner.batches_per_step]
            self._take_step(together, number, first, len(batches))
            self._done += len(together)
            after_step(self._done, len(batches))
        return float(np.mean(self._losses))

    def end_epoch(self) -> float:
        """Prepare for the next epoch and return the seconds that this one took."""
        seconds = self._seconds()
        self._done, self._losses, self._seconds_before = 0, [], 0.0
        return seconds

    def _seconds(self) -> float:
        return self._seconds_before + time.perf_counter() - self._began

    def _take_step(self, batches: Sequence[NDArray[np.int64]], epoch: int, first: int, count: int) -> None:
        """Update the parameters with the mean gradient of some batches, from number `first` of `count`."""
        size = self._learner.batches_per_step
        in_epoch, steps = first // size, -(-count // size)
        rate = self._learner.rate((epoch - 1) * steps + in_epoch, self._config.training.max_epochs * steps)
        for group, usual in zip(self._optimiser.param_groups, self._rates, strict=True):
            group["lr"] = usual * rate
        self._optimiser.zero_grad()
        for batch in batches:
            loss = self._loss(batch)
            (loss / len(batches)).backward()  # type: ignore[no-untyped-call]
            self._losses.append(float(loss.detach()))
        if not np.isfinite(self._losses[-1]):
            rates = {"training.learning_rate": self._config.training.learning_rate}
            if self._config.fine_tune.enabled:
                rates["fine_tune.learning_rate"] = self._config.fine_tune.learning_rate
            raise TrainingError(
                f"the loss became {self._losses[-1]} in epoch {epoch}: lower "
                + " or ".join(f"{name}, which is {value:g}" for name, value in rates.items())
            )
        if self._learner.largest_gradient is not None:
            nn.utils.clip_grad_norm_(self._network.parameters(), self._learner.largest_gradient)
        self._optimiser.step()

    def _loss(self, batch: NDArray[np.int64]) -> Tensor:
        padded, lengths = self._pad(self._training.inputs, batch)
        if dropout := self._config.training.token_dropout:
            padded = self._learner.drop(padded, torch.rand(padded.shape[:2], device=self._device) < dropout)
        logits, _ = self._network(padded, lengths)
        sources = torch.from_numpy(self._source_of[batch])
        targets = torch.from_numpy(self._training.learnt[batch]).to(self._device)
        zero_weights = None if self._zero_weights is None else self._zero_weights[sources].to(self._device)
        return total_loss(logits + self._biases[sources], targets, self._config.loss, self._weighting, zero_weights)

    def scores(self, inputs: Inputs) -> NDArray[np.float32]:
        """Return the scores of texts, 0 for a text without tokens."""
        self._network.eval()
        scores = np.zeros((len(inputs), self._training.learnt.shape[1]), dtype=np.float32)
        rows = inputs.rows_with_tokens
        with torch.inference_mode():
            for batch in length_sorted_batches(inputs.lengths[rows], SCORING_BUDGET):
                logits, _ = self._network(*self._pad(inputs, rows[batch]))
                scores[rows[batch]] = torch.sigmoid(logits).cpu().numpy()
        return scores

    def weights(self) -> dict[str, NDArray[np.float32]]:
        """Return copies of the trained weights."""
        return {name: tensor.detach().cpu().numpy().copy() for name, tensor in self._trained_parameters().items()}

    def _trained_parameters(self) -> dict[str, Tensor]:
        return {name: tensor for name, tensor in self._network.named_parameters() if tensor.requires_grad}

    def state(self) -> dict[str, Tensor]:
        """Return everything that the next step depends on, as tensors."""
        tensors = {f"network.{name}": tensor for name, tensor in self._trained_parameters().items()}
        tensors |= optimiser_tensors(self._optimiser)
        if isinstance(self._weighting, DynamicWeighting):
            tensors["omega"] = self._weighting.omega
        tensors["biases"] = self._biases
        tensors["done"] = torch.tensor(self._done)
        tensors["losses"] = torch.tensor(self._losses, dtype=torch.float64)
        tensors["seconds"] = torch.tensor(self._seconds() if self._done else 0.0, dtype=torch.float64)
        tensors["random"] = torch.get_rng_state()
        if torch.cuda.is_available():
            tensors["random-cuda"] = torch.cuda.get_rng_state()
        return tensors

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Restore a state that `state` returned."""
        self._network.load_state_dict(under("network.", tensors), strict=False)
        restore_optimiser(self._optimiser, tensors)
        if isinstance(self._weighting, DynamicWeighting):
            self._weighting.omega = tensors["omega"]
        with torch.no_grad():
            self._biases.copy_(tensors["biases"])
        self._done, self._losses = int(tensors["done"]), tensors["losses"].tolist()
        self._seconds_before = float(tensors["seconds"])
        torch.set_rng_state(tensors["random"])
        if "random-cuda" in tensors:
            torch.cuda.set_rng_state(tensors["random-cuda"])

    def _pad(self, inputs: Inputs, rows: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
        padded, lengths = inputs.pad(rows)
        tensor = torch.from_numpy(padded).to(self._device)
        # torch converts to float32 seven times faster than numpy; ids are not converted.
        return tensor.float() if tensor.is_floating_point() else tensor, torch.from_numpy(lengths).to(self._device)


def pooled_batches(
    order: NDArray[np.int64], lengths: NDArray[np.int64], batch_size: int
) -> Iterator[NDArray[np.int64]]:
    """Yield batches of rows of similar length, in random order."""
    pool_size = POOL_BATCHES * batch_size
    for start in range(0, len(order), pool_size):
        pool = order[start : start + pool_size]
        by_length = pool[np.argsort(lengths[pool], kind="stable")]
        firsts = np.arange(0, len(pool), batch_size)
        # The pool's first rows are in random order: they shuffle the batches.
        for first in firsts[np.argsort(pool[: len(firsts)], kind="stable")]:
            yield by_length[first : first + batch_size]
