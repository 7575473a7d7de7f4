"""A fine-tuning of a second or two, for the tests of it."""

from __future__ import annotations

from emoglot.config import Config
from emoglot.data.dataset import Dataset
from emoglot.encoders.hub import HubEncoder
from emoglot.model import Model
from tests.conftest import train

# A network of two layers of 32 numbers learns our sentences by heart in a second or two.
QUICK_TUNING = Config.for_fine_tuning().override(
    {
        "training.max_epochs": 8,
        "training.batch_size": 8,
        "training.learning_rate": 0.01,
        "fine_tune.learning_rate": 3e-3,
        "wide.buckets": 512,
    }
)


def tune(encoder: HubEncoder, data: Dataset, config: Config = QUICK_TUNING, **arguments) -> Model:
    return train(encoder, data, config=config, **arguments)
