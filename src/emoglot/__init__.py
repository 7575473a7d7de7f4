"""emoglot: which emotions a text carries, in a hundred languages."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from emoglot._version import __version__

if TYPE_CHECKING:
    from emoglot.analysis import Prediction as Prediction
    from emoglot.analysis import Sentiment as Sentiment
    from emoglot.analysis import TokenWeight as TokenWeight
    from emoglot.batch.frame import score_frame as score_frame
    from emoglot.client import Client as Client
    from emoglot.config import Config as Config
    from emoglot.data import read as read
    from emoglot.data.dataset import Dataset as Dataset
    from emoglot.data.dataset import concatenate as concatenate
    from emoglot.errors import DataError as DataError
    from emoglot.errors import EmoglotError as EmoglotError
    from emoglot.errors import EncoderError as EncoderError
    from emoglot.errors import MissingExtraError as MissingExtraError
    from emoglot.errors import ModelError as ModelError
    from emoglot.errors import TrainingError as TrainingError
    from emoglot.errors import UsageError as UsageError
    from emoglot.evaluate import evaluate_model as evaluate_model
    from emoglot.model import EmotionClassifier as EmotionClassifier
    from emoglot.model import load as load

# Where each public name lives. Names are imported when first used, so that `import emoglot` stays instant.
_HOMES = {
    "Client": "emoglot.client",
    "Config": "emoglot.config",
    "DataError": "emoglot.errors",
    "Dataset": "emoglot.data.dataset",
    "EmoglotError": "emoglot.errors",
    "EmotionClassifier": "emoglot.model",
    "EncoderError": "emoglot.errors",
    "MissingExtraError": "emoglot.errors",
    "ModelError": "emoglot.errors",
    "Prediction": "emoglot.analysis",
    "Sentiment": "emoglot.analysis",
    "TokenWeight": "emoglot.analysis",
    "TrainingError": "emoglot.errors",
    "UsageError": "emoglot.errors",
    "concatenate": "emoglot.data.dataset",
    "evaluate_model": "emoglot.evaluate",
    "load": "emoglot.model",
    "read": "emoglot.data",
    "score_frame": "emoglot.batch.frame",
}

__all__ = ["__version__", *sorted(_HOMES)]  # noqa: PLE0604 - the names are strings, taken from the table above


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'emoglot' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
