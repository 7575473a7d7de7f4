"""Training: it learns, repeats bit for bit, stops early, and never looks at what is unknown."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save as save_tensors

from emoglot.config import HEAD_KINDS, LOSS_KINDS, WEIGHTINGS
from emoglot.data.dataset import Dataset, concatenate
from emoglot.encoders.features import extract_features
from emoglot.encoders.registry import load_encoder
from emoglot.errors import TrainingError, UsageError
from emoglot.inference.head import HeadRuntime
from emoglot.training.checkpoint import Checkpoint
from emoglot.training.loop import Trained
from emoglot.training.part import Part
from emoglot.training.to_onnx import compile_head
from emoglot.training.trainer import HeadLearner, Trainer, pooled_batches
from tests.conftest import QUICK, make_dataset
from tests.training.heads import train_head


@pytest.fixture(scope="module")
def labelled() -> Part:
    return encoded(make_dataset(3))


def encoded(data: Dataset) -> Part:
    return Part(data, data.texts, extract_features(load_encoder("tiny"), data.texts))


def run(labelled: Part, **settings) -> Trained:
    config = QUICK.override({name.replace("__", "."): value for name, value in settings.items()})
    return train_head(labelled, labelled, labelled, config)


def same(first: Trained, second: Trained) -> bool:
    return all(np.array_equal(first.weights[name], second.weights[name]) for name in first.weights)


def test_it_learns(labelled):
    history = run(labelled, training__max_epochs=25).history
    assert history[-1].loss < history[0].loss / 4
    assert max(epoch.macro_f1 for epoch in history) > 0.95


@pytest.mark.parametrize("kind", HEAD_KINDS)
def test_same_seed_same_weights_bit_for_bit(labelled, kind):
    first = run(labelled, head__kind=kind)
    torch.rand(3)  # the state of the caller's generator must not matter
    assert same(first, run(labelled, head__kind=kind))
    assert not same(first, run(labelled, head__kind=kind, training__seed=1))


def test_the_callers_random_numbers_are_left_alone(labelled):
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    run(labelled, training__max_epochs=1)
    assert torch.equal(torch.rand(1), expected)


@pytest.mark.parametrize("weighting", WEIGHTINGS)
@pytest.mark.parametrize("loss", LOSS_KINDS)
def test_every_loss_goes_with_every_weighting(labelled, loss, weighting):
    trained = run(labelled, loss__kind=loss, loss__weighting=weighting, training__max_epochs=12)
    assert trained.history[-1].loss < trained.history[0].loss


def test_kappa_zero_trains_like_uniform(labelled):
    assert same(run(labelled, loss__kappa=0.0), run(labelled, loss__weighting="uniform"))


def test_it_stops_when_patience_ends_and_keeps_the_best(labelled):
    trained = run(labelled, training__max_epochs=100, training__patience=3)
    scores = [epoch.macro_f1 for epoch in trained.history]
    assert trained.best_epoch == 1 + int(np.argmax(scores))
    assert len(scores) == trained.best_epoch + 3
    shorter = run(labelled, training__max_epochs=trained.best_epoch, training__patience=100)
    assert same(trained, shorter)


def test_a_label_unknown_in_every_row_keeps_its_initial_output(labelled):
    targets = labelled.targets.copy()
    targets[:, 2] = -1
    partly = replace(labelled, data=replace(labelled.data, targets=targets))
    # Without weight decay: Adam scales even a tiny decay up to a full step where there is no other gradient.
    settings = {"training__weight_decay": 0.0, "training__patience": 9}
    one, two = (run(partly, training__max_epochs=epochs, **settings) for epochs in (1, 4))
    if one.best_epoch == two.best_epoch:
        pytest.fail("the best epoch must differ for this test to mean anything")
    assert one.weights["output.bias"][2] == pytest.approx(two.weights["output.bias"][2], abs=1e-6)
    assert one.weights["output.bias"][0] != two.weights["output.bias"][0]


def test_texts_without_tokens_are_passed_over(labelled):
    blank = replace(make_dataset(3).select([0, 1]), texts=("", ""), targets=np.ones((2, 5), np.int8))
    trained = train_head(encoded(concatenate([make_dataset(3), blank])), labelled, labelled, QUICK)
    assert np.isfinite(trained.history[-1].loss)
    with pytest.raises(TrainingError, match="at least one training text must have a token"):
        train_head(encoded(blank), labelled, labelled, QUICK)


def test_a_loss_that_explodes_is_an_error_with_a_way_out(labelled):
    vectors = np.full_like(labelled.inputs.segments[0].vectors, np.nan)
    segment = replace(labelled.inputs.segments[0], vectors=vectors)
    broken = replace(labelled, inputs=replace(labelled.inputs, segments=(segment,)))
    with pytest.raises(TrainingError, match=r"lower training.learning_rate"):
        train_head(broken, labelled, labelled, QUICK)


class KilledError(Exception):
    """Stands for whatever ends a process between two epochs."""


@pytest.mark.parametrize("kind", HEAD_KINDS)
def test_an_interrupted_run_goes_on_to_the_same_weights(labelled, tmp_path, kind):
    config = QUICK.override({"head.kind": kind, "training.max_epochs": 6})
    expected = train_head(labelled, labelled, labelled, config)

    def kill(epoch):
        if epoch.number in (2, 3):
            raise KilledError

    checkpoint = Checkpoint(tmp_path / "run", key="this run")
    for _ in range(2):
        with pytest.raises(KilledError):
            train_head(labelled, labelled, labelled, config, kill, checkpoint)
    seen = []
    resumed = train_head(labelled, labelled, labelled, config, seen.append, checkpoint)
    assert [epoch.number for epoch in seen] == [4, 5, 6]
    assert same(resumed, expected)
    assert resumed.best_epoch == expected.best_epoch
    assert [epoch.loss for epoch in resumed.history] == [epoch.loss for epoch in expected.history]


def test_a_checkpoint_of_another_run_and_what_is_none_are_left_alone(labelled, tmp_path):
    path = tmp_path / "run"
    train_head(labelled, labelled, labelled, QUICK, checkpoint=Checkpoint(path, key="one"))
    assert Checkpoint(path, key="one").read() is not None
    before = path.read_bytes()
    with pytest.raises(UsageError, match="belongs to an interrupted training with other data or settings"):
        train_head(labelled, labelled, labelled, QUICK, checkpoint=Checkpoint(path, key="two"))
    assert path.read_bytes() == before
    for content in (path.read_bytes()[:-10], b"my thesis", save_tensors({"mine": torch.zeros(1)})):
        path.write_bytes(content)
        with pytest.raises(UsageError, match="damaged or not a checkpoint: move it away"):
            train_head(labelled, labelled, labelled, QUICK, checkpoint=Checkpoint(path, key="one"))
        assert path.read_bytes() == content
    path.unlink()
    assert Checkpoint(path, key="one").read() is None


@given(st.lists(st.integers(1, 50), min_size=1, max_size=300), st.integers(1, 40))
def test_batches_hold_every_row_once_and_no_more_than_asked(lengths, size):
    sizes = np.array(lengths)
    order = np.random.default_rng(0).permutation(len(sizes))
    batches = list(pooled_batches(order, sizes, size))
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(sizes)))
    assert all(len(batch) <= size for batch in batches)


def test_an_epoch_has_as_many_rows_as_wanted_and_others_each_time(labelled):
    drawn: list[list[int]] = []

    class Recorder(Trainer):
        def _loss(self, batch):
            drawn[-1] += batch.tolist()
            return super()._loss(batch)

    config = QUICK.override({"training.epoch_rows": len(labelled) // 3})
    trainer = Recorder(HeadLearner(config, labelled.inputs.dim), labelled, config, torch.device("cpu"))
    trainer.start()
    for number in (1, 2):
        drawn.append([])
        trainer.run_epoch(number)
        trainer.end_epoch()
    assert all(len(set(rows)) == len(rows) == len(labelled) // 3 for rows in drawn)
    assert set(drawn[0]) != set(drawn[1])
    assert same(run(labelled), run(labelled, training__epoch_rows=len(labelled)))


def test_a_per_dataset_bias_keeps_words_from_being_blamed_for_their_annotators(labelled):
    """One dataset's annotators say anger of every text, and its texts all begin alike."""
    encoder, data = load_encoder("tiny"), make_dataset(3)
    alike = extract_features(encoder, [f"hotel review: {text}" for text in data.texts])
    reviews = replace(data, texts=tuple(f"hotel review: {text}" for text in data.texts), targets=data.targets.copy())
    reviews.targets[:, 0] = 1
    raised = {"theirs": 0.0, "ours": 0.0}
    for name in raised:
        both = [replace(rows, sources=(own,) * len(data)) for rows, own in ((data, "ours"), (reviews, name))]
        given = encoded(concatenate(both))
        for seed in range(3):
            settings = {"training__seed": seed, "training__max_epochs": 15, "loss__weighting": "uniform"}
            head = HeadRuntime(compile_head(QUICK.head, run(given, loss__kind="cross-entropy", **settings).weights))
            raised[name] += (head.logits(alike) - head.logits(labelled.inputs))[:, 0].mean()
    assert raised["theirs"] < 0.9 * raised["ours"]
