"""The data of a training: checked, split into three parts, normalised and encoded."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from emoglot.config import Config, TrainingConfig
from emoglot.data.dataset import Dataset, concatenate
from emoglot.data.split import stratified_split
from emoglot.encoders.base import Encoder
from emoglot.encoders.export import check_exportable
from emoglot.encoders.features import FeatureCache, Progress, extract_features
from emoglot.encoders.hub import HubEncoder
from emoglot.errors import DataError, TrainingError, UsageError
from emoglot.inference.prediction import NEGATIVE, POSITIVE
from emoglot.text.limit import cut
from emoglot.text.normalise import normalise_text
from emoglot.training.finetune import read_inputs
from emoglot.training.part import Inputs, Part

# Thresholds chosen on 13 rows made a model of 200 rows a matter of luck: macro-F1 from 52 to 90 with the seed.
ENOUGH_ROWS = 100
LARGEST_SHARE = 0.6


@dataclass(frozen=True)
class Parts:
    """The disjoint parts of the data of a training."""

    training: Part
    stopping: Part
    thresholding: Part

    def all(self) -> tuple[Part, Part, Part]:
        """Return the three parts."""
        return self.training, self.stopping, self.thresholding


def prepare(
    encoder: Encoder,
    training: Dataset,
    validation: Dataset | None,
    config: Config,
    cache: FeatureCache | None,
    on_features: Progress | None = None,
    chances: NDArray[np.float32] | None = None,
) -> Parts:
    """Check, split, normalise and encode the data, for one training or many.

    `chances` (rows, labels) replace the targets of the training rows.
    """
    if config.fine_tune.enabled:
        assert isinstance(encoder, HubEncoder)
        check_exportable(encoder)
    if chances is None:
        training = training.annotated()
        if len(training) and not (training.targets == 1).any():
            raise TrainingError("at least one training row must have a label, got none: check the label columns")
    elif chances.shape != training.targets.shape:
        raise DataError(f"chances must have the shape of the labels, {training.targets.shape}, got {chances.shape}")
    elif validation is None:
        raise UsageError(
            "training with a teacher needs labelled rows that are not in the training data: pass validation data"
        )
    training, validation = _check_data(training, validation, config)
    if chances is None:
        _warn_of_absent_labels(training)
    training, chances = _with_sentiment_last(training, chances, config.training.sentiment)
    data = concatenate([training, validation]).with_labels(training.labels)
    texts = [normalise_text(cut(text)[0]) for text in data.texts]  # as in prediction
    # Both sets at once, for one progress bar.
    whole = Part(data, texts, _read_inputs(encoder, texts, config, cache, on_features))
    held_out = whole.select(np.arange(len(training), len(data)))
    settings = config.training
    stopping, thresholding = split_held_out(held_out.data, settings)
    learnt = replace(whole.select(np.arange(len(training))), chances=chances)
    return Parts(learnt, held_out.select(stopping), held_out.select(thresholding))


def _read_inputs(
    encoder: Encoder, texts: list[str], config: Config, cache: FeatureCache | None, on_features: Progress | None
) -> Inputs:
    if not config.fine_tune.enabled:
        return extract_features(encoder, texts, cache, on_features)
    assert isinstance(encoder, HubEncoder)
    return read_inputs(encoder, texts, config, cache, on_features)


def _check_data(training: Dataset, validation: Dataset | None, config: Config) -> tuple[Dataset, Dataset]:
    """Check both sets; without a validation set, split one off the training rows."""
    if validation is None:
        kept, held_out = split_rows(training, config.training.validation_fraction, config.training)
        training, validation = training.select(kept), training.select(held_out)
    given_labels = validation.labels
    validation = validation.with_labels(training.labels).annotated()
    if not len(validation) and not set(given_labels) & set(training.labels):
        raise DataError(
            f"training and validation must have labels in common, got {', '.join(training.labels)} "
            f"and {', '.join(given_labels)}"
        )
    for name, part in (("training", training), ("validation", validation)):
        if len(part) < 2:  # a validation set is split in two
            raise DataError(f"the {name} set needs at least 2 rows with known labels, got {len(part)}")
        if config.single_label and ((part.targets == 1).sum(axis=1) > 1).any():
            raise DataError(f"a single-label task needs at most one label per row, got several in the {name} set")
    if unknown := config.training.unused_choices(set(training.sources)):
        raise UsageError(
            f"training.single_choice must name datasets of the training data, got {', '.join(unknown)}: the dataset of "
            "a file is its name without extension"
        )
    shared = len(set(training.texts) & set(validation.texts))
    if shared:
        warnings.warn(f"{shared} texts are in both training and validation: the metrics will be too high", stacklevel=2)
    return training, validation


def _with_sentiment_last(
    training: Dataset, chances: NDArray[np.float32] | None, sentiment: Sequence[str]
) -> tuple[Dataset, NDArray[np.float32] | None]:
    """Move the labels of sentiment behind the others, in data and probabilities."""
    if missing := [name for name in sentiment if name not in training.labels]:
        raise UsageError(f"training.sentiment must name labels of the training data, got {', '.join(missing)}")
    given = [name for name in training.labels if name not in sentiment]
    if not given:
        raise UsageError("training.sentiment must leave at least one other label")
    if len(sentiment) == 2 and tuple(sentiment) != (POSITIVE, NEGATIVE):  # predictions distinguish them by their order
        raise UsageError(
            f"two labels of training.sentiment must be {POSITIVE} and {NEGATIVE}, in this order, got "
            f"{', '.join(sentiment)}"
        )
    labels = (*given, *sentiment)
    columns = [training.labels.index(name) for name in labels]
    return training.with_labels(labels), None if chances is None else chances[:, columns]


def split_held_out(data: Dataset, settings: TrainingConfig) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Split held-out rows into those that choose the epoch and those that choose the thresholds.

    Where `thresholding_fraction` gives the thresholds fewer than `ENOUGH_ROWS`, they get up to `LARGEST_SHARE` instead.
    """
    needed = min(LARGEST_SHARE, ENOUGH_ROWS / max(1, len(data)))
    return split_rows(data, max(settings.thresholding_fraction, needed), settings)


def split_rows(data: Dataset, fraction: float, settings: TrainingConfig) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Split rows in two, stratified by label and language; copies of a text stay on one side."""
    first_row: dict[str, int] = {}
    representative = np.array([first_row.setdefault(text, row) for row, text in enumerate(data.texts)], dtype=np.int64)
    rows = np.unique(representative)
    if len(rows) < 2:
        raise DataError(f"at least 2 different texts with known labels are needed to split a set, got {len(rows)}")
    languages = [data.languages[row] for row in rows]
    _, second = stratified_split(data.targets[rows], fraction, settings.seed, groups=languages)
    in_second = np.isin(representative, rows[second])
    return np.flatnonzero(~in_second), np.flatnonzero(in_second)


def _warn_of_absent_labels(training: Dataset) -> None:
    """Warn of labels without positive training rows."""
    absent = [name for name, column in zip(training.labels, training.targets.T, strict=True) if 1 not in column]
    if absent:
        warnings.warn(f"no training row is labelled {', '.join(absent)}: the model will not predict it", stacklevel=2)
