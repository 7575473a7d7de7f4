"""Losses per element, class weights, and the weighted sum."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from emoglot.config import LossConfig
from emoglot.labels import UNKNOWN

# Bounds the weight of a class whose loss vanishes (the paper's value).
EPSILON = 1e-5
# Differences between probabilities below this, or above 1 minus it, are noise.
LEAST_CHANCE = 0.005

# The loss and the weight of each element of a batch, both (rows, labels) → class weights α (labels,), which sum to 1.
Weighting: TypeAlias = Callable[[Tensor, Tensor], Tensor]


def focal_loss(logits: Tensor, targets: Tensor, gamma: float) -> Tensor:
    """Return −(1−p)^γ log p per element, where p is the probability of the target; γ = 0 is cross entropy."""
    truth_logits = torch.where(targets == 1, logits, -logits)
    # In logarithms, so that the gradient exists at p = 0 and p = 1; softplus(z) = −log sigmoid(−z).
    modulation = torch.exp(-gamma * functional.softplus(truth_logits))
    return modulation * functional.softplus(-truth_logits)


def asymmetric_loss(
    logits: Tensor, targets: Tensor, gamma_positive: float, gamma_negative: float, margin: float
) -> Tensor:
    """Return focal loss with another γ for negatives, whose probability is lowered by a margin (Ridnik et al. 2021)."""
    positive = focal_loss(logits, torch.ones_like(targets), gamma_positive)
    if margin == 0:
        return torch.where(targets == 1, positive, focal_loss(logits, torch.zeros_like(targets), gamma_negative))
    shifted = (torch.sigmoid(logits) - margin).clamp(min=0)
    negative = -(shifted**gamma_negative) * torch.log1p(-shifted)  # 1 − shifted is at least the margin
    return torch.where(targets == 1, positive, negative)


def element_loss(logits: Tensor, targets: Tensor, config: LossConfig) -> Tensor:
    """Return the loss of every element (rows, labels), 0 where the target is unknown.

    Floating-point targets are probabilities; the loss is then the expected loss.
    """
    if targets.is_floating_point():
        present, absent = (_loss_of(logits, torch.full_like(logits, truth), config) for truth in (1.0, 0.0))
        losses = targets * present + (1 - targets) * absent
        if config.distance:
            losses = losses + config.distance * squared_distance(logits, targets)
    else:
        losses = _loss_of(logits, targets, config)
    return losses.masked_fill(targets == UNKNOWN, 0.0)


def squared_distance(logits: Tensor, chances: Tensor) -> Tensor:
    """Return (z − logit(c))² per element; 0 for probabilities of 0 and 1, which are annotations."""
    taught = torch.logit(chances.clamp(LEAST_CHANCE, 1 - LEAST_CHANCE))
    return torch.where((chances > 0) & (chances < 1), (logits - taught) ** 2, 0.0)


def _loss_of(logits: Tensor, targets: Tensor, config: LossConfig) -> Tensor:
    if config.kind == "focal":
        return focal_loss(logits, targets, config.gamma)
    if config.kind == "cross-entropy":
        return focal_loss(logits, targets, gamma=0.0)
    return asymmetric_loss(logits, targets, config.gamma_positive, config.gamma_negative, config.margin)


class DynamicWeighting:
    """Class weights inverse to the exponential average of each class's loss."""

    def __init__(self, width: int, kappa: float) -> None:
        self._kappa = kappa
        self.omega = torch.full((width,), 1 / width, dtype=torch.float64)

    def __call__(self, losses: Tensor, counts: Tensor) -> Tensor:
        """Update the average with the batch and return its weights."""
        rows = counts.double().sum(dim=0)
        mean = losses.detach().double().sum(dim=0) / torch.where(rows > 0, rows, 1)
        omega = self._kappa * mean.cpu() + (1 - self._kappa) * self.omega
        # The average of a class without annotations in this batch does not change.
        self.omega = torch.where(rows.cpu() > 0, omega, self.omega)
        return _normalise(1 / (EPSILON + self.omega)).to(losses)


def make_weighting(config: LossConfig, positives: NDArray[np.int64]) -> Weighting:
    """Return the weighting that a config names, given the positive training rows of each class."""
    # A class without positives counts as one row, so that no weight is infinite.
    counts = torch.from_numpy(np.maximum(positives, 1).astype(np.float64))
    if config.weighting == "dynamic":
        return DynamicWeighting(len(counts), config.kappa)
    weights = {
        "uniform": torch.ones_like(counts),
        "inverse": 1 / counts,
        "class-balanced": (1 - config.beta) / (1 - config.beta**counts),
        "cost-sensitive": counts / counts.sum(),
    }
    alpha = _normalise(weights[config.weighting])
    return lambda losses, counts: alpha.to(losses)


def total_loss(
    logits: Tensor, targets: Tensor, config: LossConfig, weighting: Weighting, zero_weights: Tensor | None = None
) -> Tensor:
    """Return (1/b) Σ_i Σ_a α_a l_(i,a), with α updated by this batch first; no gradient flows through α.

    `zero_weights` (rows,) are the weights of the absent labels of rows that have another label.
    """
    counts = (targets != UNKNOWN).to(logits)
    if zero_weights is not None:
        is_doubtful = (targets == 0) & (targets == 1).any(dim=1, keepdim=True)
        counts = torch.where(is_doubtful, zero_weights[:, None], counts)
    losses = element_loss(logits, targets, config) * counts
    alpha = weighting(losses, counts)
    return (losses * alpha).sum() / len(losses)


def _normalise(weights: Tensor) -> Tensor:
    # Dividing by the largest first makes κ = 0 exactly uniform.
    relative = weights.double() / weights.max()
    return relative / relative.sum()
