"""The student: a table with one vector per piece, and its way through the lessons."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from emoglot.checkpoint import Checkpoint, optimiser_tensors, restore_optimiser, under
from emoglot.config import DistillConfig
from emoglot.errors import TrainingError
from emoglot.labels import UNKNOWN
from emoglot.lessons import Lessons

STEPS_PER_REPORT = 100
STEPS_PER_CHECKPOINT = 500
WARM_UP_STEPS = 200
WARM_UP_SHARE = 0.1  # of all steps at most: a short course is not to end before it began
FINAL_RATE = 0.02  # of the learning rate, reached in a straight line

Say = Callable[[str], None]


class Student(nn.Module):
    """The table, and the ways from a text's mean vector to what is asked of it."""

    def __init__(self, table: Tensor, answer_dim: int | None, judged: int, labels: int, habits: int) -> None:
        """`answer_dim` is the teacher's; None when the teacher is the table's own older part."""
        super().__init__()
        dim = table.shape[1]
        self.pieces = nn.EmbeddingBag.from_pretrained(table, freeze=False, mode="mean", sparse=True)
        inner = 2 * dim
        self.answer: nn.Module = (
            nn.Identity()
            if answer_dim is None
            else nn.Sequential(nn.Linear(dim, inner), nn.GELU(), nn.Linear(inner, answer_dim))
        )
        self.judge = _linear(dim, judged)
        self.label = _linear(dim, labels)
        # As in the training of a head: one dataset's readiness to say "trust" is not another's.
        self.habits = nn.Parameter(torch.zeros(habits, labels))
        self.sharpness = nn.Parameter(torch.tensor(3.0))  # of the choice among a batch's answers, as a logarithm

    def dense_parameters(self) -> list[nn.Parameter]:
        """Give all but the table."""
        return [parameter for name, parameter in self.named_parameters() if not name.startswith("pieces.")]


def _linear(dim: int, width: int) -> nn.Module:
    """Make a layer; of one that leads to nothing torch would warn."""
    return nn.Linear(dim, width) if width else nn.Identity()


def learn(
    lessons: Lessons,
    table: Tensor,
    config: DistillConfig,
    work: Path,
    say: Say,
    *,
    answer_dim: int | None = None,
    frozen: int = 0,
) -> NDArray[np.float32]:
    """Train a student and give its table; the first `frozen` vectors stay as they are."""
    judged = lessons.scores.shape[1] if lessons.scores is not None else 0
    habits = int(lessons.habits_of.max(initial=-1)) + 1
    student = Student(table, answer_dim, judged, lessons.targets.shape[1], habits)
    course = _Course(student, lessons, config, frozen)
    checkpoint = Checkpoint(work / "student", [asdict(config), lessons.digests(), len(table), frozen])
    if found := checkpoint.read():
        course.restore(found[0])
        say(f"going on from step {course.step:,}")
    began, since = time.monotonic(), course.step
    for loss in course.run():
        if course.step % STEPS_PER_REPORT == 0:
            left = (course.steps - course.step) * (time.monotonic() - began) / (course.step - since)
            say(f"step {course.step:,} of {course.steps:,}: loss {loss:.3f}, {left / 60:.0f} minutes left")
        if course.step % STEPS_PER_CHECKPOINT == 0 or course.step == course.steps:
            checkpoint.write(course.state(), [])
    return np.array(student.pieces.weight.detach().numpy(), dtype=np.float32)


class _Course:
    """A student with its optimisers on its way through the lessons."""

    def __init__(self, student: Student, lessons: Lessons, config: DistillConfig, frozen: int) -> None:
        self.step = 0
        self.steps = max(1, int(config.epochs * lessons.repeats.sum() / config.batch_size))
        self._student, self._lessons, self._config, self._frozen = student, lessons, config, frozen
        self._usable = (lessons.texts.lengths > 0) & (lessons.english.lengths > 0)[lessons.english_of]
        if not (self._usable & (lessons.repeats > 0)).any():
            raise TrainingError("no pair has known pieces on both sides and a weight above 0: nothing to learn")
        # The teacher's vectors share a direction that says nothing: without it, angles tell more.
        sample = np.random.default_rng(config.seed).permutation(len(lessons.vectors))[:50_000]
        self._centre = lessons.vectors[np.sort(sample)].astype(np.float32).mean(axis=0)
        self._sparse = torch.optim.SparseAdam([student.pieces.weight], lr=config.learning_rate)
        self._dense = torch.optim.Adam(student.dense_parameters(), lr=config.learning_rate)

    def run(self) -> Iterator[float]:
        """Take the steps that are left, giving the loss of each."""
        while self.step < self.steps:
            # Each step's random numbers follow from its number, so that a run goes on as if never interrupted.
            rng = np.random.default_rng((self._config.seed, self.step))
            torch.manual_seed(int(rng.integers(2**62)))
            loss = self._loss(rng)
            rate = self._config.learning_rate * schedule(self.step, self.steps)
            for optimiser in (self._sparse, self._dense):
                optimiser.zero_grad()
                for group in optimiser.param_groups:
                    group["lr"] = rate
            loss.backward()  # type: ignore[no-untyped-call]
            self._keep_frozen()
            self._sparse.step()  # type: ignore[no-untyped-call]
            self._dense.step()
            self.step += 1
            yield float(loss.detach())
        if not torch.isfinite(self._student.pieces.weight).all():
            raise TrainingError(
                f"the vectors became infinite: lower learning_rate, which is {self._config.learning_rate:g}"
            )

    def state(self) -> dict[str, Tensor]:
        """Give all that the next step depends on, as tensors."""
        tensors = {f"student.{name}": tensor for name, tensor in self._student.state_dict().items()}
        tensors |= optimiser_tensors("sparse", self._sparse) | optimiser_tensors("dense", self._dense)
        return tensors | {"step": torch.tensor(self.step)}

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Take up a state that `state` gave."""
        self._student.load_state_dict(under("student.", tensors))
        restore_optimiser("sparse", self._sparse, tensors)
        restore_optimiser("dense", self._dense, tensors)
        self.step = int(tensors["step"])

    @cached_property
    def _pairs(self) -> NDArray[np.float64]:
        return np.cumsum(self._lessons.repeats * self._usable)

    @cached_property
    def _labelled(self) -> NDArray[np.float64]:
        assert self._lessons.labelled is not None
        return np.cumsum((self._lessons.labelled.lengths > 0).astype(np.float64))

    def _loss(self, rng: np.random.Generator) -> Tensor:
        """Add up what the student got wrong in one batch of pairs and one of labelled texts."""
        lessons, student, config = self._lessons, self._student, self._config
        rows = _draw(rng, self._pairs, config.batch_size)
        # One English sentence may be there in several languages: it is one answer among the batch's answers.
        english, answer_of = np.unique(lessons.english_of[rows], return_inverse=True)
        answers = torch.from_numpy(lessons.vectors[english].astype(np.float32) - self._centre)
        right = torch.from_numpy(answer_of)
        means = student.pieces(*self._drop(*lessons.texts.pick(rows)))
        loss = self._answer_loss(means, answers, right)
        if not self._frozen:  # else English is not to be learnt
            english_means = student.pieces(*self._drop(*lessons.english.pick(english)))
            loss = loss + 0.5 * self._answer_loss(english_means, answers, torch.arange(len(english)))
            if lessons.scores is not None:
                scores = torch.from_numpy(lessons.scores[english])
                loss = loss + config.judge_weight * (
                    functional.binary_cross_entropy_with_logits(student.judge(means), scores[right])
                    + 0.5 * functional.binary_cross_entropy_with_logits(student.judge(english_means), scores)
                )
        if lessons.labelled is not None:
            loss = loss + config.label_weight * self._label_loss(rng)
        return loss

    def _answer_loss(self, means: Tensor, answers: Tensor, right: Tensor) -> Tensor:
        """Ask for the teacher's vector: which of the batch's it is, and how near."""
        given = self._student.answer(means)
        if self._frozen:  # the table's own vectors are wanted, with what they share and as long as they are
            given = given - torch.from_numpy(self._centre)
        directions, right_directions = functional.normalize(given, dim=1), functional.normalize(answers, dim=1)
        sharpness = self._student.sharpness.exp().clamp(max=100)
        choice = functional.cross_entropy(sharpness * directions @ right_directions.T, right)
        if self._frozen:
            distance: Tensor = (given - answers[right]).square().mean() / answers.square().mean().clamp(min=1e-12)
        else:
            distance = (1 - (directions * right_directions[right]).sum(dim=1)).mean()
        return choice / 3 + 2 * distance  # of about equal size at the end of training

    def _label_loss(self, rng: np.random.Generator) -> Tensor:
        lessons = self._lessons
        assert lessons.labelled is not None
        rows = _draw(rng, self._labelled, self._config.labelled_batch)
        means = self._student.pieces(*self._drop(*lessons.labelled.pick(rows)))
        habits = self._student.habits[torch.from_numpy(lessons.habits_of[rows])]
        targets = torch.from_numpy(lessons.targets[rows])
        logits = self._student.label(means) + habits
        losses = functional.binary_cross_entropy_with_logits(logits, (targets == 1).float(), reduction="none")
        known = targets != UNKNOWN
        return (losses * known).sum() / known.sum().clamp(min=1)

    def _drop(self, ids: Tensor, starts: Tensor) -> tuple[Tensor, Tensor]:
        """Leave out pieces by chance, but never the first of a text, so that no single piece is relied on."""
        is_first = torch.zeros(len(ids), dtype=torch.bool)
        is_first[starts] = True
        kept = (torch.rand(len(ids)) >= self._config.dropout) | is_first
        # A text now starts as many pieces earlier as were dropped before it.
        dropped = torch.cumsum(~kept, dim=0)
        return ids[kept], starts - dropped[starts]

    def _keep_frozen(self) -> None:
        """Let no gradient reach the vectors that are not to change."""
        gradient = self._student.pieces.weight.grad
        if self._frozen and gradient is not None:
            gradient = gradient.coalesce()
            is_new = gradient.indices()[0] >= self._frozen
            self._student.pieces.weight.grad = torch.sparse_coo_tensor(
                gradient.indices()[:, is_new], gradient.values()[is_new], gradient.shape, check_invariants=False
            )


def schedule(step: int, steps: int) -> float:
    """Give the share of the learning rate that a step takes: it rises quickly, then falls to the end."""
    warm_up = min(WARM_UP_STEPS, WARM_UP_SHARE * steps)
    return min(1.0, (step + 1) / warm_up) * max(FINAL_RATE, 1 - step / steps)


def _draw(rng: np.random.Generator, cumulative: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    """Draw rows with the chances whose running sum is given."""
    places = rng.random(count) * cumulative[-1]
    return np.asarray(np.searchsorted(cumulative, places, side="right"), dtype=np.int64)
