"""Makes a trained model of datasets: features, splits, head, wide channel, thresholds, held-out metrics."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emoglot.config import Config
from emoglot.data.dataset import Dataset
from emoglot.data.split import stratified_split
from emoglot.encoders import Encoder
from emoglot.errors import DataError, MissingExtraError, TrainingError
from emoglot.features import FeatureCache, Features, Progress, extract_features
from emoglot.labels import Targets
from emoglot.metrics import evaluate_languages
from emoglot.persist import ModelState
from emoglot.runtime import HeadRuntime, score
from emoglot.text import normalise_text
from emoglot.thresholds import choose_thresholds, decide
from emoglot.wide import WideChannel, fit_wide, match_spread

try:
    from emoglot.checkpoint import Checkpoint
    from emoglot.graph import compile_head
    from emoglot.train import Epoch, Labelled, Trained, train_head
except ImportError as missing:
    raise MissingExtraError(missing.name or "torch", "train", "training") from missing


@dataclass(frozen=True)
class _Part:
    """The rows of one split in every form that training needs."""

    data: Dataset
    texts: list[str]  # normalised
    features: Features

    @property
    def targets(self) -> Targets:
        return self.data.targets

    def labelled(self) -> Labelled:
        return Labelled(self.features, self.targets)

    def select(self, rows: NDArray[np.int64]) -> _Part:
        return _Part(self.data.select(rows), [self.texts[row] for row in rows], self.features.select(rows))


def fit_model(
    encoder: Encoder,
    training: Dataset,
    validation: Dataset | None,
    config: Config,
    cache: FeatureCache,
    on_features: Progress | None,
    on_epoch: Callable[[Epoch], None],
    checkpoint_file: Path | None = None,
) -> ModelState:
    """Train a model; no row serves in more than one of training, stopping and thresholding."""
    train_data, validation_data = _check_data(training, validation, config)
    whole = _prepare(encoder, train_data, validation_data, cache, on_features)
    train_part = whole.select(np.arange(len(train_data)))
    held_out = whole.select(np.arange(len(train_data), len(whole.data)))
    stopping_rows, thresholding_rows = _split(held_out.data, config.training.thresholding_fraction, config)
    stopping, thresholding = held_out.select(stopping_rows), held_out.select(thresholding_rows)

    checkpoint = None
    if checkpoint_file:
        key = (encoder.fingerprint, whole.data.fingerprint, len(train_data), config.to_dict())
        checkpoint = Checkpoint(checkpoint_file, key)
    trained = train_head(
        train_part.labelled(), stopping.labelled(), thresholding.labelled(), config, on_epoch, checkpoint
    )
    weights, wide = trained.weights, None
    if config.wide.enabled:
        weights, wide = _add_wide(trained, train_part, stopping, config)
    graph = compile_head(config.head, weights)
    runtime = HeadRuntime(graph)
    thresholding_scores = score(runtime, wide, thresholding.features, thresholding.texts)
    thresholds = choose_thresholds(thresholding_scores, thresholding.targets)
    stopping_scores = score(runtime, wide, stopping.features, stopping.texts)
    chosen = decide(stopping_scores, thresholds, single_label=config.task == "single-label")
    return ModelState(
        labels=train_data.labels,
        thresholds=thresholds,
        config=config,
        encoder_name=encoder.name,
        encoder_fingerprint=encoder.fingerprint,
        weights=weights,
        graph=graph,
        wide=wide,
        training=_training_record(
            trained, {"training": train_part, "stopping": stopping, "thresholding": thresholding}
        ),
        metrics=asdict(evaluate_languages(stopping.targets, chosen, train_data.labels, stopping.data.languages)),
    )


def _check_data(training: Dataset, validation: Dataset | None, config: Config) -> tuple[Dataset, Dataset]:
    """Refuse what nothing can be learnt from; cut a validation set from the training rows where none is given."""
    training = training.annotated()
    if validation is None:
        kept, held_out = _split(training, config.training.validation_fraction, config)
        training, validation = training.select(kept), training.select(held_out)
    validation = validation.with_labels(training.labels).annotated()
    for name, part in (("training", training), ("validation", validation)):
        if len(part) < 2:
            raise DataError(f"the {name} set needs at least 2 rows with known labels, got {len(part)}")
    positives = (training.targets == 1).sum(axis=0)
    if not positives.any():
        raise TrainingError("no training row has any label: there is nothing to learn; is the right column read?")
    absent = [name for name, count in zip(training.labels, positives, strict=True) if count == 0]
    if absent:
        warnings.warn(f"no training row is labelled {', '.join(absent)}: expect no such prediction", stacklevel=4)
    if config.task == "single-label" and ((training.targets == 1).sum(axis=1) > 1).any():
        raise DataError("a single-label task needs at most one label a row, got a row with several: use multi-label")
    return training, validation


def _split(data: Dataset, fraction: float, config: Config) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    if len(data) < 2:
        raise DataError(f"at least 2 rows with known labels are needed to split a set, got {len(data)}")
    return stratified_split(data.targets, fraction, config.training.seed, groups=data.languages)


def _prepare(
    encoder: Encoder, training: Dataset, validation: Dataset, cache: FeatureCache, progress: Progress | None
) -> _Part:
    """Normalise and encode both sets together, so that one progress bar tells the whole truth."""
    data = Dataset(
        training.texts + validation.texts,
        np.concatenate([training.targets, validation.targets]),
        training.labels,
        training.languages + validation.languages,
        training.sources + validation.sources,
    )
    texts = [normalise_text(text) for text in data.texts]
    return _Part(data, texts, extract_features(encoder, texts, cache, progress))


def _add_wide(
    trained: Trained, training: _Part, stopping: _Part, config: Config
) -> tuple[dict[str, NDArray[np.float32]], WideChannel]:
    """Fit the n-grams apart, bring them to the network's scale on held-out rows, and give each channel half a say.

    The halves are folded into the weights, so that prediction only adds.
    """
    channel = fit_wide(training.texts, training.targets, config.wide)
    network = HeadRuntime(compile_head(config.head, trained.weights)).logits(stopping.features)
    has_tokens = stopping.features.lengths > 0
    channel = match_spread(channel, channel.logits(stopping.texts)[has_tokens], network[has_tokens])
    half = np.full(network.shape[1], 0.5, dtype=np.float32)
    halved = {name: trained.weights[name] * np.float32(0.5) for name in ("output.weight", "output.bias")}
    return trained.weights | halved, channel.rescaled(half, np.zeros_like(half))


def _training_record(trained: Trained, parts: dict[str, _Part]) -> dict[str, Any]:
    return {
        "data": {name: part.data.summary() for name, part in parts.items()},
        "best_epoch": trained.best_epoch,
        "epochs": len(trained.history),
        "history": [asdict(epoch) for epoch in trained.history],
    }
