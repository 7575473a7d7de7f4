"""Loss and weighting: hand-computed numbers, torch's own cross entropy, and the rules of the method."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import binary_cross_entropy_with_logits

from emoglot.config import WEIGHTINGS, LossConfig
from emoglot.training.loss import (
    DynamicWeighting,
    asymmetric_loss,
    element_loss,
    focal_loss,
    make_weighting,
    total_loss,
)

POSITIVES = np.array([100, 10, 1, 0])


def batch(rows: int = 8, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn((rows, 4), generator=generator)
    targets = torch.randint(0, 2, (rows, 4), generator=generator, dtype=torch.int8)
    return logits, targets


def test_focal_loss_by_hand():
    # p = 0.9 for a positive: -(0.1)² ln 0.9; a negative with the same score has p = 0.1: -(0.9)² ln 0.1.
    logit = torch.tensor([[math.log(9.0), math.log(9.0)]], dtype=torch.float64)
    losses = focal_loss(logit, torch.tensor([[1, 0]]), gamma=2.0)
    assert losses.tolist()[0] == pytest.approx([0.01 * 0.105360516, 0.81 * 2.302585093], rel=1e-6)


@given(st.floats(-100, 100), st.integers(0, 1))
def test_gamma_zero_is_cross_entropy(logit, target):
    logits, targets = torch.tensor([[logit]], dtype=torch.float64), torch.tensor([[target]])
    expected = binary_cross_entropy_with_logits(logits, targets.double())
    assert focal_loss(logits, targets, gamma=0.0).item() == pytest.approx(expected.item(), rel=1e-7, abs=1e-12)


@pytest.mark.parametrize("kind", ["focal", "cross-entropy", "asymmetric"])
@pytest.mark.parametrize("gamma", [0.0, 0.5, 4.0])
def test_losses_and_gradients_stay_finite_at_extreme_logits(kind, gamma):
    logits = torch.tensor([[-100.0, 100.0, -100.0, 100.0, 0.0]], requires_grad=True)
    targets = torch.tensor([[0, 0, 1, 1, 1]])
    config = LossConfig(kind=kind, gamma=gamma, gamma_positive=gamma, gamma_negative=gamma)
    losses = element_loss(logits, targets, config)
    losses.sum().backward()
    assert torch.isfinite(losses).all()
    assert torch.isfinite(logits.grad).all()
    assert (losses >= 0).all()


def test_focal_gradient_is_the_derivative():
    logits = torch.tensor([[1.3, -0.7]], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda z: focal_loss(z, torch.tensor([[1, 0]]), 2.0), logits)


def test_asymmetric_loss_without_margin_and_with_equal_gammas_is_focal():
    logits, targets = batch()
    expected = focal_loss(logits, targets, 2.0)
    assert torch.allclose(asymmetric_loss(logits, targets, 2.0, 2.0, margin=0.0), expected, atol=1e-5)


def test_asymmetric_loss_without_margin_is_right_far_from_zero():
    logits = torch.tensor([[20.0]], requires_grad=True)
    loss = asymmetric_loss(logits, torch.tensor([[0]]), 0.0, 0.0, margin=0.0)
    loss.sum().backward()
    assert loss.item() == pytest.approx(20)
    assert logits.grad.item() == pytest.approx(1)


def test_asymmetric_loss_forgets_easy_negatives():
    logits = torch.tensor([[math.log(0.04 / 0.96)]])  # a score of 0.04, below the margin
    assert asymmetric_loss(logits, torch.tensor([[0]]), 0.0, 4.0, margin=0.05).item() == 0


@pytest.mark.parametrize("kind", ["focal", "cross-entropy", "asymmetric"])
def test_unknown_targets_give_neither_loss_nor_gradient(kind):
    logits, targets = batch()
    targets[:, 1] = -1
    logits.requires_grad_()
    losses = element_loss(logits, targets, LossConfig(kind=kind))
    losses.sum().backward()
    assert losses[:, 1].abs().sum() == 0
    assert logits.grad[:, 1].abs().sum() == 0
    assert losses[:, 0].sum() > 0


@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_weights_are_positive_and_sum_to_one(weighting):
    logits, targets = batch()
    config = LossConfig(weighting=weighting)
    alpha = make_weighting(config, POSITIVES)(element_loss(logits, targets, config), targets != -1)
    assert alpha.sum().item() == pytest.approx(1)
    assert (alpha > 0).all()


@pytest.mark.parametrize(
    ("weighting", "expected"),
    [
        ("uniform", [1, 1, 1, 1]),
        ("inverse", [1 / 100, 1 / 10, 1, 1]),
        ("cost-sensitive", [100, 10, 1, 1]),
        ("class-balanced", [(1 - 0.9) / (1 - 0.9**count) for count in (100, 10, 1, 1)]),
    ],
)
def test_static_weights_by_hand(weighting, expected):
    alpha = make_weighting(LossConfig(weighting=weighting, beta=0.9), POSITIVES)(*[torch.zeros(1, 4)] * 2)
    assert alpha.tolist() == pytest.approx((np.array(expected) / sum(expected)).tolist(), rel=1e-6)


@pytest.mark.parametrize("width", [1, 3, 11, 28])
def test_kappa_zero_is_uniform_to_the_last_bit(width):
    logits = torch.randn((5, width), generator=torch.Generator().manual_seed(1))
    targets = (logits > 0.3).to(torch.int8)
    config = LossConfig(kappa=0.0)
    dynamic = make_weighting(config, np.ones(width, dtype=np.int64))
    uniform = make_weighting(LossConfig(weighting="uniform"), np.ones(width, dtype=np.int64))
    for _ in range(3):
        assert total_loss(logits, targets, config, dynamic) == total_loss(logits, targets, config, uniform)


def test_dynamic_weights_by_hand():
    # ω ← ½·loss + ½·½ in two classes: (0.75, 0.35); α is inverse to ω.
    alpha = DynamicWeighting(2, kappa=0.5)(torch.tensor([[1.0, 0.2]]), torch.ones(1, 2, dtype=torch.bool))
    inverse = np.array([1 / (1e-5 + 0.75), 1 / (1e-5 + 0.35)])
    assert alpha.tolist() == pytest.approx((inverse / inverse.sum()).tolist(), rel=1e-6)


def test_dynamic_weights_use_the_mean_so_batch_size_does_not_matter():
    losses = torch.rand((6, 3), generator=torch.Generator().manual_seed(2))
    known = torch.ones(6, 3, dtype=torch.bool)
    once = DynamicWeighting(3, 0.4)(losses, known)
    twice = DynamicWeighting(3, 0.4)(losses.repeat(2, 1), known.repeat(2, 1))
    assert torch.allclose(once, twice)


def test_a_class_unknown_in_a_batch_keeps_its_average():
    weighting, reference = DynamicWeighting(2, 0.5), DynamicWeighting(2, 0.5)
    seen = torch.ones(1, 2, dtype=torch.bool)
    for one in (weighting, reference):
        one(torch.tensor([[0.4, 0.6]]), seen)
    weighting(torch.tensor([[0.1, 0.0]]), torch.tensor([[True, False]]))
    reference(torch.tensor([[0.1, 0.0]]), seen)
    assert weighting.omega[1] == pytest.approx(0.5 * 0.6 + 0.5 * 0.5)
    assert reference.omega[1] != weighting.omega[1]


def test_no_gradient_flows_through_the_weights():
    logits, targets = batch()
    logits.requires_grad_()
    config = LossConfig(kappa=0.7)
    alpha = make_weighting(config, POSITIVES)(element_loss(logits, targets, config), targets != -1)
    total_loss(logits, targets, config, make_weighting(config, POSITIVES)).backward()
    losses = element_loss(logits.detach().requires_grad_(), targets, config)
    assert not alpha.requires_grad
    fixed = logits.detach().clone().requires_grad_()
    (element_loss(fixed, targets, config) * alpha).sum().div(len(losses)).backward()
    assert torch.allclose(logits.grad, fixed.grad)


def test_total_loss_is_the_weighted_sum_over_classes_and_mean_over_rows():
    logits, targets = batch()
    config = LossConfig(weighting="inverse", gamma=2.0)
    alpha = np.array([1 / 100, 1 / 10, 1, 1])
    expected = (focal_loss(logits, targets, 2.0).numpy() * alpha / alpha.sum()).sum() / len(logits)
    assert total_loss(logits, targets, config, make_weighting(config, POSITIVES)).item() == pytest.approx(expected)


def test_labels_not_chosen_count_as_little_as_their_dataset_says():
    logits, _ = batch()
    targets = torch.tensor([[1, 0, 0, -1], [0, 0, 0, 0], [1, 1, 0, 0]], dtype=torch.int8)
    config, weights = LossConfig(weighting="uniform"), torch.tensor([0.25, 0.25, 1.0])
    losses = element_loss(logits[:3], targets, config)
    # The second row was found to have none of them, which is sure; the third is of a dataset that asked for all.
    counts = torch.tensor([[1, 0.25, 0.25, 0], [1, 1, 1, 1], [1, 1, 1, 1]])
    found = total_loss(logits[:3], targets, config, make_weighting(config, POSITIVES), weights)
    assert found.item() == pytest.approx(float((losses * counts).sum() / 4 / 3))


def test_what_counts_little_counts_little_in_dynamic_weights():
    weighting = DynamicWeighting(2, 1.0)
    weighting(torch.tensor([[0.8, 0.1], [0.05, 0.1]]), torch.tensor([[1.0, 1.0], [0.25, 1.0]]))
    assert weighting.omega.tolist() == pytest.approx([0.85 / 1.25, 0.1])
