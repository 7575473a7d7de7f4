"""Making a model: which rows serve for what, and how the two channels come together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import emoglot
from emoglot import DataError, TrainingError, UsageError
from emoglot.config import Config, HeadConfig
from emoglot.data.dataset import Dataset, concatenate
from emoglot.encoders.features import FeatureCache, extract_features
from emoglot.encoders.registry import load_encoder
from emoglot.evaluation.metrics import evaluate, macro_f1
from emoglot.inference.head import HeadRuntime, logits_of, score_features, sigmoid
from emoglot.inference.thresholds import NEVER, apply_thresholds, choose_thresholds
from emoglot.labels import to_targets
from emoglot.text.limit import READ_CHARACTERS
from emoglot.training.fit import fit_parts
from emoglot.training.head import INITIAL_STATE_SPREAD, make_head
from emoglot.training.ngrams import fit_wide, match_spread
from emoglot.training.parts import LARGEST_SHARE, Parts, prepare, split_held_out
from emoglot.training.to_onnx import compile_head
from tests.conftest import LABELS, QUICK, make_dataset, train
from tests.training.heads import train_head

TINY = load_encoder("tiny")


@pytest.fixture(scope="module")
def parts(tmp_path_factory) -> Parts:
    cache = FeatureCache(tmp_path_factory.mktemp("cache"), TINY)
    return prepare(TINY, make_dataset(4), _renamed(make_dataset(3)), QUICK, cache)


def _renamed(data: Dataset) -> Dataset:
    """The same sentences, each with another ending."""
    return replace(data, texts=tuple(f"{text} indeed" for text in data.texts))


def test_the_parts_share_no_text_and_lose_none(parts):
    texts = [set(part.data.texts) for part in parts.all()]
    assert not texts[0] & texts[1]
    assert not texts[0] & texts[2]
    assert not texts[1] & texts[2]
    assert texts[0] == set(make_dataset(4).texts)
    assert texts[1] | texts[2] == set(_renamed(make_dataset(3)).texts)
    assert len(parts.thresholding.data) == round(LARGEST_SHARE * 48)


@pytest.mark.parametrize(("rows", "choosing"), [(1000, 300), (400, 120), (200, 100), (50, 30)])
def test_few_held_out_rows_choose_thresholds_first(rows: int, choosing: int):
    targets = (np.arange(rows)[:, None] % [2, 3] == 0).astype(np.int8)
    data = Dataset(tuple(map(str, range(rows))), targets, ("joy", "fear"), ("en",) * rows, ("ours",) * rows)
    stopping, thresholding = split_held_out(data, Config().training)
    assert sorted([*stopping, *thresholding]) == list(range(rows))
    assert len(thresholding) == pytest.approx(choosing, abs=1)


def test_as_much_of_a_text_is_learnt_as_is_read_in_prediction(tmp_path):
    data = make_dataset(2)
    data = replace(data, texts=tuple(f"{text} {'word ' * READ_CHARACTERS}end" for text in data.texts))
    parts = prepare(TINY, data, None, QUICK, FeatureCache(tmp_path, TINY))
    assert all(len(text) <= READ_CHARACTERS for part in parts.all() for text in part.texts)


def test_every_part_keeps_texts_targets_and_vectors_together(parts):
    for part in parts.all():
        alone = extract_features(TINY, part.texts)
        for row in range(len(part.data)):
            assert np.array_equal(part.features.vectors(row), alone.vectors(row))
            source = make_dataset(4) if part is parts.training else _renamed(make_dataset(3))
            assert (part.targets[row] == source.targets[source.texts.index(part.data.texts[row])]).all()


def test_copies_of_a_text_stay_on_one_side(tmp_path):
    data = make_dataset(2)
    twice = concatenate([data, data.with_labels(["joy", "trust"])])
    with pytest.warns(UserWarning, match="labelled trust"):
        parts = prepare(TINY, twice, None, QUICK, FeatureCache(tmp_path, TINY))
    texts = [set(part.data.texts) for part in parts.all()]
    assert sum(map(len, texts)) == len(set(data.texts))
    assert sum(len(part.data) for part in parts.all()) == len(twice)


def test_texts_shared_by_training_and_validation_are_reported(tmp_path):
    data = make_dataset(2)
    with pytest.warns(UserWarning, match="32 texts are in both training and validation"):
        prepare(TINY, data, data, QUICK, FeatureCache(tmp_path, TINY))


def test_thresholds_are_chosen_on_the_thresholding_rows_and_figures_are_of_the_others(parts):
    state = fit_parts(parts, TINY, QUICK).state
    runtime = HeadRuntime(state.graph)
    chosen_on = score_features(runtime, None, parts.thresholding.features, parts.thresholding.texts)
    assert np.array_equal(state.thresholds, choose_thresholds(chosen_on, parts.thresholding.targets))
    measured = score_features(runtime, None, parts.stopping.features, parts.stopping.texts)
    expected = evaluate(parts.stopping.targets, apply_thresholds(measured, state.thresholds), LABELS)
    assert state.metrics.overall.macro_f1 == expected.macro_f1
    assert state.metrics.overall.rows == len(parts.stopping.data)


def test_an_epoch_is_judged_on_the_stopping_rows_at_thresholds_of_the_others(parts):
    training, stopping, thresholding = parts.all()
    config = QUICK.override({"training.max_epochs": 1})
    trained = train_head(training, stopping, thresholding, config)
    runtime = HeadRuntime(compile_head(config.head, trained.weights))
    thresholds = choose_thresholds(sigmoid(runtime.logits(thresholding.inputs)), thresholding.targets)
    chosen = apply_thresholds(sigmoid(runtime.logits(stopping.inputs)), thresholds)
    assert trained.history[0].macro_f1 == pytest.approx(macro_f1(stopping.targets, chosen), abs=1e-6)


def test_ngrams_join_the_network_at_its_scale(parts):
    plain = fit_parts(parts, TINY, QUICK).state
    both = fit_parts(parts, TINY, QUICK.override({"wide.enabled": True, "wide.buckets": 2**14})).state
    network = HeadRuntime(plain.graph)
    channel = fit_wide(parts.training.texts, parts.training.targets, parts.training.data.sources, both.config.wide)
    stopping = parts.stopping
    matched = match_spread(channel, stopping.texts, network.logits(stopping.features))
    expected = matched.join(network.logits(stopping.features), stopping.texts)
    together = logits_of(HeadRuntime(both.graph), both.wide, stopping.features, stopping.texts)
    assert np.abs(together - expected).max() < 0.005  # the n-grams' weights are kept in float16
    assert np.abs(network.logits(stopping.features) - expected).max() > 0.05


def test_training_goes_on_from_another_model(parts):
    first = fit_parts(parts, TINY, QUICK).state
    slow = QUICK.override({"training.max_epochs": 1, "training.learning_rate": 1e-8})
    second = fit_parts(parts, TINY, slow, start=first).state
    logits = [HeadRuntime(state.graph).logits(parts.stopping.features) for state in (first, second)]
    # Only calibrated once more: every label keeps the order of its texts.
    assert (logits[0].argsort(axis=0, kind="stable") == logits[1].argsort(axis=0, kind="stable")).mean() > 0.95
    assert second.training["history"][0]["loss"] < first.training["history"][0]["loss"]


@pytest.mark.parametrize(
    ("change", "name"),
    [({"encoder_fingerprint": "other"}, "encoder"), ({"labels": LABELS[::-1]}, "labels")],
)
def test_training_never_starts_from_what_does_not_fit(change, name, parts):
    first = fit_parts(parts, TINY, QUICK.override({"training.max_epochs": 1})).state
    with pytest.raises(TrainingError, match=f"the same {name}"):
        fit_parts(parts, TINY, QUICK, start=replace(first, **change))
    with pytest.raises(TrainingError, match="the same head"):
        fit_parts(parts, TINY, QUICK.override({"head.hidden": 5}), start=first)


def test_a_positive_text_without_a_word_sets_no_threshold(tmp_path):
    data = make_dataset(4)
    blank = Dataset(
        ("\u200b", "\u200b\u200b", "\u2060", "\ufeff"),
        to_targets([{"love"}] * 4, LABELS),
        LABELS,
        ("en",) * 4,
        ("ours",) * 4,
    )
    validation = concatenate([_renamed(make_dataset(2)), blank])
    model = train("tiny", data, validation, config=QUICK, cache=tmp_path)
    assert min(model.thresholds.values()) > 0
    assert model.predict(["", "\u200b"])[0].labels == ()


def test_a_label_without_a_row_to_choose_its_threshold_is_named(tmp_path):
    validation = _renamed(make_dataset(1)).select([0, 3])
    with pytest.warns(UserWarning, match=r"no row that chooses thresholds is labelled .*use more validation rows"):
        model = train("tiny", make_dataset(2), validation, config=QUICK, cache=tmp_path)
    assert NEVER in model.thresholds.values()


def test_a_validation_set_of_other_labels_is_refused_by_name(tmp_path):
    other = _renamed(make_dataset(1))
    other = replace(other, labels=("a", "b", "c", "d", "e"))
    with pytest.raises(DataError, match=r"labels in common, got anger, .* and a, b, c, d, e"):
        train("tiny", make_dataset(2), other, config=QUICK, cache=tmp_path)


def test_single_label_validation_rows_are_checked_too(tmp_path):
    config = QUICK.override({"task": "single-label"})
    single = make_dataset(2).select(np.flatnonzero((make_dataset(2).targets == 1).sum(axis=1) == 1))
    with pytest.raises(DataError, match="got several in the validation set"):
        prepare(TINY, single, _renamed(make_dataset(2)), config, FeatureCache(tmp_path, TINY))


def test_weight_decay_pulls_weights_towards_zero(parts):
    training, stopping, thresholding = parts.all()
    sizes = []
    for decay in (0.0, 0.1):
        config = QUICK.override({"training.weight_decay": decay})
        weights = train_head(training, stopping, thresholding, config).weights
        sizes.append(np.mean([np.abs(array).mean() for array in weights.values()]))
    assert sizes[1] < 0.8 * sizes[0]


@pytest.mark.parametrize("kind", ["lstm", "gru", "rnn"])
def test_training_starts_from_small_random_states(kind):
    torch.manual_seed(0)
    layer = make_head(HeadConfig(kind=kind, hidden=64, dropout=0.0), 8, 3).layers[0]
    states = [layer._initial(layer.ahead, torch.zeros(200, 1, 8)) for _ in range(2)]
    for drawn in zip(*states, strict=True) if kind == "lstm" else [states]:
        assert not torch.equal(*drawn)
        assert drawn[0].std().item() == pytest.approx(INITIAL_STATE_SPREAD, rel=0.1)
    assert INITIAL_STATE_SPREAD == 0.01
    assert layer.eval()._initial(layer.ahead, torch.zeros(200, 1, 8)) is None


def test_dropout_reaches_the_pooled_vector():
    torch.manual_seed(0)
    head = make_head(HeadConfig(hidden=8, layers=1, dropout=0.9), 8, 3)
    for layer in head.layers:
        layer.eval()  # zero initial states: what still varies comes from dropout
    vectors, lengths = torch.randn(1, 5, 8), torch.tensor([5])
    outputs = {tuple(head(vectors, lengths)[0][0].tolist()) for _ in range(10)}
    assert len(outputs) > 1


def test_sentiment_is_learnt_beside_the_labels_and_not_given_with_them(dataset: Dataset, tmp_path: Path):
    config = QUICK.override({"training.sentiment": ["joy"]})
    model = train("tiny", dataset, config=config, wide=True)
    given = tuple(name for name in dataset.labels if name != "joy")
    assert model.labels == given
    assert model.state.outputs == (*given, "joy")
    assert HeadRuntime(model.state.graph).width == len(dataset.labels)
    loaded = emoglot.load(model.save(tmp_path / "model"))
    assert loaded.state.sentiment == ("joy",)
    assert loaded.predict_proba(dataset.texts).shape == (len(dataset), len(given))
    np.testing.assert_array_equal(loaded.predict_proba(dataset.texts), model.predict_proba(dataset.texts))
    assert set(model.metrics.overall.per_class) <= set(given)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["bliss"], "got bliss"),
        (list(LABELS), "must leave at least one other label"),
        (["sadness", "joy"], "must be positive and negative, in this order, got sadness, joy"),
    ],
)
def test_sentiment_that_is_no_label_or_every_label_or_in_another_order_is_refused(dataset: Dataset, names, message):
    with pytest.raises(UsageError, match=message):
        train("tiny", dataset, config=QUICK.override({"training.sentiment": names}))


def test_a_language_annotated_with_sentiment_alone_is_not_measured():
    dataset = make_dataset(12)
    targets = dataset.targets.copy()
    is_spanish = np.array([code == "es" for code in dataset.languages])
    targets[np.ix_(is_spanish, [index for index, name in enumerate(LABELS) if name != "joy"])] = -1
    data = replace(dataset, targets=targets)
    model = train("tiny", data, config=QUICK.override({"training.sentiment": ["joy"]}))
    assert set(model.metrics.languages) == {"ar", "en"}
