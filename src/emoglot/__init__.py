"""emoglot finds the emotions that a text carries, in about a hundred languages.

>>> import emoglot
>>> model = emoglot.load()
>>> model.predict("Je suis tellement triste sans toi").labels
('sadness',)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from emoglot._version import __version__

if TYPE_CHECKING:
    from emoglot.batch.frame import score_frame as score_frame
    from emoglot.classifier import EmotionClassifier as EmotionClassifier
    from emoglot.config import Config as Config
    from emoglot.data.dataset import Dataset as Dataset
    from emoglot.data.dataset import concatenate as concatenate
    from emoglot.data.registry import read as read
    from emoglot.errors import DataError as DataError
    from emoglot.errors import EmoglotError as EmoglotError
    from emoglot.errors import EncoderError as EncoderError
    from emoglot.errors import MissingExtraError as MissingExtraError
    from emoglot.errors import ModelError as ModelError
    from emoglot.errors import TrainingError as TrainingError
    from emoglot.errors import UsageError as UsageError
    from emoglot.evaluation.evaluate import evaluate_model as evaluate_model
    from emoglot.inference.prediction import Prediction as Prediction
    from emoglot.inference.prediction import Sentiment as Sentiment
    from emoglot.inference.prediction import TokenWeight as TokenWeight
    from emoglot.inference.protocol import AsyncPredictor as AsyncPredictor
    from emoglot.inference.protocol import Predictor as Predictor
    from emoglot.model import Model as Model
    from emoglot.model import load as load
    from emoglot.serving.client import AsyncClient as AsyncClient
    from emoglot.serving.client import Client as Client

# The module of each public name. Names are imported on first use, so that `import emoglot` is fast.
_HOMES = {
    "AsyncClient": "emoglot.serving.client",
    "AsyncPredictor": "emoglot.inference.protocol",
    "Client": "emoglot.serving.client",
    "Config": "emoglot.config",
    "DataError": "emoglot.errors",
    "Dataset": "emoglot.data.dataset",
    "EmoglotError": "emoglot.errors",
    "EmotionClassifier": "emoglot.classifier",
    "EncoderError": "emoglot.errors",
    "MissingExtraError": "emoglot.errors",
    "Model": "emoglot.model",
    "ModelError": "emoglot.errors",
    "Prediction": "emoglot.inference.prediction",
    "Predictor": "emoglot.inference.protocol",
    "Sentiment": "emoglot.inference.prediction",
    "TokenWeight": "emoglot.inference.prediction",
    "TrainingError": "emoglot.errors",
    "UsageError": "emoglot.errors",
    "concatenate": "emoglot.data.dataset",
    "evaluate_model": "emoglot.evaluation.evaluate",
    "load": "emoglot.model",
    "read": "emoglot.data.registry",
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
