"""The scikit-learn estimator: trains a model on labelled texts."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from emoglot.config import Config
from emoglot.data.memory import given_labels, is_one_name_each, names_of, to_dataset
from emoglot.encoders.base import Encoder
from emoglot.encoders.features import Progress
from emoglot.encoders.registry import BUNDLED_NAME
from emoglot.errors import DataError, MissingExtraError, ModelError, UsageError
from emoglot.evaluation.metrics import evaluate
from emoglot.labels import check_names
from emoglot.model import Model

try:
    from sklearn.base import BaseEstimator, ClassifierMixin
except ImportError:  # all public names can be imported without an extra; using one without it is the error

    class ClassifierMixin:  # type: ignore[no-redef]
        """Stands in for that of scikit-learn."""

    class BaseEstimator:  # type: ignore[no-redef]
        """Stands in for that of scikit-learn."""

        def __new__(cls, *args: Any, **kwargs: Any) -> BaseEstimator:
            """Raise MissingExtraError."""
            raise MissingExtraError("scikit-learn", "train", "training")


if TYPE_CHECKING:
    from emoglot.training.loop import Epoch


class EmotionClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A text classifier with the interface of scikit-learn; `model_` is the `Model` that `fit` trained.

    Parameters
    ----------
    encoder
        An encoder by name, folder or instance; by default the one in the package.
    labels
        The names of the columns, if labels are given as an array; by default the eleven emotions.
    config
        An `emoglot.Config` with all settings of the training; by default those of the paper.
    wide
        Whether to train n-grams beside the network; by default as in the config.
    fine_tune
        Whether to train the encoder as well; it then becomes part of the model.
    quantize
        "int8" reduces a fine-tuned encoder to a quarter of its size; "none" keeps it.
    device
        The device for torch: "cpu", "cuda", "mps", or "auto" for a CUDA GPU if there is one.
    cache
        The folder in which token vectors are kept between runs; by default one in the user's cache.
    """

    model_: Model
    classes_: NDArray[np.str_]

    def __init__(
        self,
        encoder: str | os.PathLike[str] | Encoder = BUNDLED_NAME,
        *,
        labels: Sequence[str] | None = None,
        config: Config | None = None,
        wide: bool | None = None,
        fine_tune: bool | None = None,
        quantize: str = "none",
        device: str = "auto",
        cache: Path | str | None = None,
    ) -> None:
        self.encoder = encoder
        self.labels = labels
        self.config = config
        self.wide = wide
        self.fine_tune = fine_tune
        self.quantize = quantize
        self.device = device
        self.cache = cache

    def fit(
        self,
        texts: Iterable[str],
        labels: Any,
        validation: tuple[Iterable[str], Any] | None = None,
        *,
        on_features: Progress | None = None,
        on_epoch: Callable[[Epoch], None] = lambda epoch: None,
    ) -> EmotionClassifier:
        """Train on texts with labels, and return self.

        Labels are sets or lists of names, one name per text, or an array or data frame of 0 and 1 in which NaN means
        not annotated. If each text has one name and no config is given, the task is single-label: exactly one label is
        predicted for a text.

        `validation` is a pair (texts, labels) for early stopping, thresholds and metrics; by default, a fifth of the
        texts is held out. `on_features(done, total)` is called while texts are encoded, and `on_epoch` after every
        epoch with its number, loss and macro-F1.
        """
        from emoglot.training.train import train_model  # the first module that needs torch

        labels = given_labels(labels)
        config = self._settings(labels)
        names = check_names(self.labels) if self.labels is not None else names_of(labels)
        training, held_out = to_dataset(texts, labels, names), None
        if validation is not None:
            if not isinstance(validation, tuple) or len(validation) != 2:
                raise DataError(f"validation must be a pair (texts, labels), got {type(validation).__name__}")
            held_out = to_dataset(*validation, names)
        self.model_ = train_model(
            self.encoder,
            training,
            held_out,
            config,
            quantize=self.quantize,
            device=self.device,
            cache=Path(self.cache) if self.cache is not None else None,
            on_features=on_features,
            on_epoch=on_epoch,
        )
        self.classes_ = np.array(self.model_.labels)
        return self

    def predict(self, texts: Iterable[str]) -> NDArray[Any]:
        """Return 0 or 1 for every text and label, int8 (texts, labels); in a single-label task, one name per text."""
        model = self._trained()
        chosen = model.choose(model.analyse(texts))
        return self.classes_[chosen.argmax(axis=1)] if model.config.single_label else chosen.astype(np.int8)

    def predict_proba(self, texts: Iterable[str]) -> NDArray[np.float32]:
        """Return the scores, float32 (texts, labels); in a single-label task, those of a read text sum to 1."""
        model = self._trained()
        scores = model.predict_proba(texts)
        if not model.config.single_label:
            return scores
        sums = scores.sum(axis=1, keepdims=True)
        return np.asarray(scores / np.where(sums > 0, sums, np.float32(1)))  # a text that is not read keeps zeros

    def score(self, texts: Iterable[str], labels: Any) -> float:
        """Return the macro-F1 of predictions for labelled texts, from 0 to 1."""
        model = self._trained()
        data = to_dataset(texts, labels, model.labels)
        chosen = model.choose(model.analyse(data.texts))
        return evaluate(data.targets, chosen, model.labels).macro_f1

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string, tags.input_tags.two_d_array = True, False
        tags.classifier_tags.multi_label = True
        return tags

    def _trained(self) -> Model:
        if not hasattr(self, "model_"):
            raise ModelError("this classifier is not trained yet: call fit, or load a trained model with emoglot.load")
        return self.model_

    def _settings(self, labels: Any) -> Config:
        """Return the config, overridden by the other arguments."""
        if self.config is not None and not isinstance(self.config, Config):
            raise UsageError(
                f"config must be an emoglot.Config, got {self.config!r}: create one with Config.from_dict(…)"
            )
        config = self.config or (Config.for_fine_tuning() if self.fine_tune else Config())
        if self.config is None and is_one_name_each(labels):
            config = replace(config, task="single-label")
        if self.wide is not None:
            config = replace(config, wide=replace(config.wide, enabled=bool(self.wide)))
        if self.fine_tune is not None and self.fine_tune != config.fine_tune.enabled:
            raise UsageError(
                f"fine_tune={self.fine_tune} contradicts the config, whose defaults depend on it: pass "
                f"{'Config.for_fine_tuning()' if self.fine_tune else 'Config()'} with your changes"
            )
        return config
