"""The classifier that people use: fit, predict, explain, save, load."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from emoglot import persist
from emoglot._version import __version__
from emoglot.analysis import Analysis, Prediction, TokenWeight
from emoglot.arguments import check_languages, check_texts, given_labels, names_of, to_dataset
from emoglot.config import Config
from emoglot.data.dataset import Dataset
from emoglot.encoders import EMBEDDED_MODEL, Encoder, extended_fingerprints, load_encoder, load_trainable
from emoglot.encoders.onnx import OnnxEncoder, check_quantization
from emoglot.encoders.store import cache_folder
from emoglot.errors import DataError, EncoderError, MissingExtraError, ModelError, UsageError
from emoglot.features import FeatureCache, Progress
from emoglot.labels import check_names
from emoglot.language.recognise import recognise
from emoglot.persist import ModelState
from emoglot.scorer import Scored, Scorer, own_spans
from emoglot.strictness import Strictness
from emoglot.text import normalise
from emoglot.thresholds import decide

if TYPE_CHECKING:
    from emoglot.train import Epoch


class EmotionClassifier:
    """Says which emotions a text carries: a frozen encoder, a trained head, one threshold per label."""

    def __init__(
        self,
        encoder: str | os.PathLike[str] | Encoder = "xlm-roberta-large",
        *,
        labels: Sequence[str] | None = None,
        config: Config | None = None,
        wide: bool | None = None,
        fine_tune: bool | None = None,
        quantize: str = "none",
        device: str = "auto",
        cache: Path | str | None = None,
    ) -> None:
        """Choose an encoder by name, folder or instance; `cache` is where `fit` keeps token vectors between runs.

        With `fine_tune` the encoder is trained, too, and becomes part of the model, with `quantize="int8"` a quarter
        as large. `device` is where torch trains: "auto", "cpu", "cuda", "mps".
        """
        if config is not None and not isinstance(config, Config):
            raise UsageError(f"config is an emoglot.Config, got {config!r}: Config.from_dict(…) makes one")
        self.config = config or (Config.for_fine_tuning() if fine_tune else Config())
        if wide is not None:
            self.config = replace(self.config, wide=replace(self.config.wide, enabled=wide))
        if fine_tune is not None and fine_tune != self.config.fine_tune.enabled:
            raise UsageError(
                f"fine_tune={fine_tune} contradicts the config, whose defaults depend on it: give "
                f"{'Config.for_fine_tuning()' if fine_tune else 'Config()'} with your changes"
            )
        check_quantization(quantize)
        if quantize != "none" and not self.config.fine_tune.enabled:
            raise UsageError(
                f"quantize={quantize!r} is for an encoder that is fine-tuned: a frozen one is made small by "
                "`emoglot encoders install` or `export`"
            )
        self._quantize, self._device = quantize, device
        # The one that `fit` starts from, and the one that predicts: after fine-tuning they are two.
        self._base = self._encoder = load_trainable(encoder) if self.config.fine_tune.enabled else load_encoder(encoder)
        self._given_labels = check_names(labels) if labels is not None else None
        self._cache_root = Path(cache) if cache is not None else cache_folder() / "features"
        self._state: ModelState | None = None
        self._scorer: Scorer | None = None

    @property
    def labels_(self) -> tuple[str, ...]:
        """The labels, in the order of the columns of `predict_proba`."""
        return self._trained_state().labels

    @property
    def thresholds_(self) -> dict[str, float]:
        """The score from which each label is given; infinity for one that is never given."""
        state = self._trained_state()
        return dict(zip(state.labels, state.thresholds.tolist(), strict=True))

    @property
    def state(self) -> ModelState:
        """All that the model is made of, except the encoder."""
        return self._trained_state()

    def with_state(self, state: ModelState) -> EmotionClassifier:
        """Give a model with the same encoder and another state."""
        return EmotionClassifier._from_state(state, self._encoder)

    @property
    def encoder(self) -> Encoder:
        """The frozen encoder."""
        return self._encoder

    @property
    def metrics_(self) -> dict[str, Any]:
        """How well the model did on its held-out validation rows: `overall` and by `languages`."""
        return dict(self._trained_state().metrics)

    def fit(
        self,
        texts: Iterable[str],
        labels: Any,
        validation: tuple[Iterable[str], Any] | None = None,
        *,
        on_features: Progress | None = None,
        on_epoch: Callable[[Epoch], None] = lambda epoch: None,
    ) -> EmotionClassifier:
        """Train on texts with sets of label names, or a 0/1 array or data frame in which NaN means not annotated."""
        labels = given_labels(labels)
        names = self._given_labels or names_of(labels)
        training = to_dataset(texts, labels, names)
        held_out = None
        if validation is not None:
            if not isinstance(validation, tuple) or len(validation) != 2:
                raise DataError(f"validation is a pair (texts, labels), got {type(validation).__name__}")
            held_out = to_dataset(*validation, names)
        return self.fit_datasets(training, held_out, on_features=on_features, on_epoch=on_epoch)

    def fit_datasets(
        self,
        training: Dataset,
        validation: Dataset | None = None,
        *,
        on_features: Progress | None = None,
        on_epoch: Callable[[Epoch], None] = lambda epoch: None,
        checkpoint: Path | None = None,
        start: EmotionClassifier | None = None,
        checkpoint_seconds: float = 300.0,
        chances: NDArray[np.float32] | None = None,
    ) -> EmotionClassifier:
        """Train on datasets; without a validation set, a part of the training rows becomes one.

        A run that was interrupted goes on from `checkpoint`, a file, to the very weights it would have come to. The
        network starts from random weights, or from those of `start`, a model with the same encoder, labels and head.
        `chances` (rows, labels), where a teacher gave them, are learnt in the place of the labels.
        """
        from emoglot.fit import fit_parts, prepare  # torch is needed from here on, not before
        from emoglot.train import find_device

        find_device(self._device)  # before anything is encoded
        base = load_trainable(self._base) if self.config.fine_tune.enabled else self._base
        cache = FeatureCache(self._cache_root, base)
        parts = prepare(base, training, validation, self.config, cache, on_features, chances)
        fitted = fit_parts(
            parts,
            base,
            self.config,
            on_epoch,
            checkpoint,
            start.state if start else None,
            quantize=self._quantize,
            device=self._device,
            checkpoint_seconds=checkpoint_seconds,
        )
        self._use(fitted.state, fitted.encoder)
        return self

    def _use(self, state: ModelState, encoder: Encoder) -> None:
        """Predict from now on with these."""
        self._state, self._encoder = state, encoder
        self._scorer = Scorer(state, encoder)

    def predict_proba(self, texts: Iterable[str]) -> NDArray[np.float32]:
        """Return the scores, float32 (texts, labels); an empty or unreadable text scores 0 throughout."""
        scores = [scored.scores for scored in self._score(texts)]
        return np.concatenate([np.empty((0, len(self.labels_)), np.float32), *scores])

    def predict_outputs(self, texts: Iterable[str]) -> NDArray[np.float32]:
        """Return the scores of everything that the model learnt, float32: its labels, then `state.sentiment`."""
        scores = [np.concatenate([scored.scores, scored.sentiment], axis=1) for scored in self._score(texts)]
        return np.concatenate([np.empty((0, len(self.state.outputs)), np.float32), *scores])

    def predict(
        self,
        texts: Iterable[str],
        language: str | Sequence[str | None] | None = None,
        *,
        precision: float | None = None,
        recall: float | None = None,
    ) -> list[Prediction]:
        """Return the labels of every text, possibly none, with scores, sentiment and language.

        `language` is that of all texts, or one for each, by code or name; where none is given, it is recognised, and
        "any" turns that off. A language's own thresholds are used where the model has them. With `precision=0.8` a
        label is given from the lowest threshold that was right so often on validation data, with `recall=0.8` from the
        highest that found so many.
        """
        analysis = self.analyse(texts, language)
        chosen = self.choose(analysis, precision=precision, recall=recall)
        return list(analysis.predictions(chosen, self.labels_))

    def analyse(self, texts: Iterable[str], language: str | Sequence[str | None] | None = None) -> Analysis:
        """Return scores, sentiment, languages and what could not be read, as arrays: what `predict` is made of."""
        texts = check_texts(texts)
        languages, is_sure = recognise(texts, check_languages(language, len(texts)))
        scored = [Scored.empty(len(self.labels_), len(self.state.sentiment)), *self._score(texts)]
        columns = {name: np.concatenate([getattr(part, name) for part in scored]) for name in Scored.columns()}
        return Analysis(**columns, languages=languages, is_sure=is_sure)

    def choose(
        self, analysis: Analysis, *, precision: float | None = None, recall: float | None = None
    ) -> NDArray[np.bool_]:
        """Choose the labels (texts, labels) that an analysis amounts to."""
        if precision is None and recall is None:
            return self.decide(analysis.scores, analysis.sure_languages())
        thresholds = self.strictness.thresholds(precision, recall)
        return decide(analysis.scores, thresholds, single_label=False)

    @property
    def strictness(self) -> Strictness:
        """The thresholds for a wanted precision or recall."""
        if self.state.config.single_label:
            raise ModelError("this model gives each text its likeliest label: there is no precision to ask for")
        if self.state.strictness is None:
            raise ModelError(
                "this model has no table of precision and recall: `emoglot calibrate --pooled` measures one on data of "
                "yours"
            )
        return self.state.strictness

    def decide(
        self, scores: NDArray[np.float32], language: str | Sequence[str | None] | None = None
    ) -> NDArray[np.bool_]:
        """Choose the labels (texts, labels) that scores amount to in a language, or one for each text, by code."""
        thresholds = self._thresholds_of(language, len(scores))
        return decide(scores, thresholds, single_label=self.config.single_label)

    def explain(self, text: str) -> tuple[TokenWeight, ...]:
        """Give every token of a text with its attention weight; the weights sum to 1."""
        check_texts([text])
        self._trained_state()
        normalised = normalise(text)
        assert self._scorer is not None
        features, weights = self._scorer.attention(normalised.text)
        tokens = []
        for (first, last), weight in zip(own_spans(features.spans(0)).tolist(), weights.tolist(), strict=True):
            start, end = _trim(text, *normalised.original_span(first, last))
            tokens.append(TokenWeight(text[start:end], weight, start, end))
        return tuple(tokens)

    def save(self, folder: Path | str) -> Path:
        """Write the model folder; an existing one of ours is replaced, anything else is left alone."""
        target = Path(folder)
        state = self._trained_state()
        own = self._encoder.folder if state.includes_encoder and isinstance(self._encoder, OnnxEncoder) else None
        persist.write_model(state, target, __version__, own)
        return target

    def _score(self, texts: Iterable[str]) -> Iterator[Scored]:
        texts = check_texts(texts)
        self._trained_state()
        assert self._scorer is not None
        return self._scorer.run(texts)

    def _thresholds_of(self, language: str | Sequence[str | None] | None, count: int) -> NDArray[np.float64]:
        """Give the thresholds for every text (texts, labels)."""
        state = self._trained_state()
        if language is None or isinstance(language, str):
            return np.broadcast_to(state.thresholds_for(language), (count, len(state.labels)))
        by_language = {code: state.thresholds_for(code) for code in set(language)}
        return np.array([by_language[code] for code in language]).reshape(count, len(state.labels))

    def _trained_state(self) -> ModelState:
        if self._state is None:
            raise ModelError("this classifier is not trained yet: call fit, or emoglot.load a trained one")
        return self._state

    @classmethod
    def _from_state(cls, state: ModelState, encoder: Encoder) -> EmotionClassifier:
        classifier = cls.__new__(cls)
        classifier.config, classifier._given_labels = state.config, state.labels
        classifier._quantize, classifier._device = "none", "auto"
        classifier._cache_root = cache_folder() / "features"
        classifier._base = encoder
        classifier._use(state, encoder)
        return classifier


def load(
    folder: Path | str | None = None, *, encoder: str | os.PathLike[str] | Encoder | None = None
) -> EmotionClassifier:
    """Load a trained model, by default the one inside the package; `encoder` says where its encoder is, if it moved."""
    folder = EMBEDDED_MODEL if folder is None else folder
    state = persist.read_model(Path(folder))
    if encoder is None and state.includes_encoder:
        encoder = _included_encoder(Path(folder), state)
    try:
        found = load_encoder(encoder if encoder is not None else state.encoder_name)
    except EncoderError as error:
        if encoder is not None or isinstance(error, MissingExtraError):
            raise
        raise EncoderError(
            f"{folder} needs the encoder {state.encoder_name!r}: {error}; if it lies elsewhere, say where: "
            f"emoglot.load(…, encoder=…) or --encoder"
        ) from error
    if state.encoder_fingerprint not in (found.fingerprint, *extended_fingerprints(found)):
        raise ModelError(
            f"{folder} was trained on the encoder {state.encoder_name!r} with the fingerprint "
            f"{state.encoder_fingerprint}, got {found.name!r} with {found.fingerprint}: its scores would mean nothing"
        )
    return EmotionClassifier._from_state(state, found)


def _included_encoder(folder: Path, state: ModelState) -> Encoder:
    try:
        return OnnxEncoder(folder / persist.ENCODER_FOLDER, state.encoder_name)
    except EncoderError as error:
        raise ModelError(f"the encoder in {folder} was altered or is damaged: copy or train the model again") from error


def _trim(text: str, start: int, end: int) -> tuple[int, int]:
    """Leave out the white space that subword tokens carry at their ends."""
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end
