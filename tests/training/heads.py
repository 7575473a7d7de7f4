"""Trains a head on frozen vectors, as tests of the loop need it."""

from __future__ import annotations

from typing import Any

from emoglot.config import Config
from emoglot.encoders.features import Features
from emoglot.training.loop import Trained, train
from emoglot.training.part import Part
from emoglot.training.trainer import HeadLearner


def train_head(
    training: Part, stopping: Part, thresholding: Part, config: Config, *others: Any, **options: Any
) -> Trained:
    assert isinstance(training.inputs, Features)
    learner = HeadLearner(config, training.inputs.dim)
    return train(learner, training, stopping, thresholding, config, *others, **options)
