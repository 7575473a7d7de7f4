"""The model: predict, explain, save, load."""

from __future__ import annotations

import io
import os
import tempfile
import zipfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from emoglot._version import __version__
from emoglot.config import Config
from emoglot.encoders.base import Encoder
from emoglot.encoders.description import EncoderDescription
from emoglot.encoders.foreign import foreign_errors
from emoglot.encoders.onnx import OnnxEncoder
from emoglot.encoders.registry import BUNDLED_MODEL, BUNDLED_NAME, extended_fingerprints, is_path, load_encoder
from emoglot.errors import EncoderError, MissingExtraError, ModelError, UsageError
from emoglot.files import made_in_scratch
from emoglot.inference.folder import ENCODER_FOLDER, GRAPH_FILE, ModelState, read_model, write_model
from emoglot.inference.hub import find_model, is_download, model_name, upload_folder
from emoglot.inference.metrics import Evaluation
from emoglot.inference.pipeline import Pipeline
from emoglot.inference.prediction import Analysis, Prediction, Scores, TokenWeight
from emoglot.inference.protocol import Wanted
from emoglot.inference.strictness import Strictness
from emoglot.inference.thresholds import decide
from emoglot.text.arguments import Languages, check_languages, check_texts
from emoglot.text.recognise import recognise_languages


class Model:
    """A trained model: an encoder, a network on top of it, and one threshold for each label.

    `emoglot.load` returns a model, and `EmotionClassifier` trains one. A model is immutable, can be pickled, and can be
    used from several threads.
    """

    def __init__(self, state: ModelState, encoder: Encoder) -> None:
        """Combine a trained state with the encoder that it was trained on."""
        self.state, self.encoder = state, encoder
        self._pipeline = Pipeline(state, encoder)

    def __repr__(self) -> str:
        return f"Model({len(self.labels)} labels, encoder {self.encoder.name!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        if self.state.includes_encoder:  # its files may not exist where the copy is loaded
            return _from_archive, (self._archive(),)
        is_bundled = self.encoder.name == BUNDLED_NAME  # its path differs between environments
        return _rejoin, (self.state, BUNDLED_NAME if is_bundled else self.encoder)

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels, in the order of the columns of `predict_proba`."""
        return self.state.labels

    @property
    def thresholds(self) -> dict[str, float]:
        """The score from which each label is predicted; infinity for one that is never predicted."""
        return dict(zip(self.labels, self.state.thresholds.tolist(), strict=True))

    @property
    def config(self) -> Config:
        """The settings that the model was trained with."""
        return self.state.config

    @property
    def metrics(self) -> Evaluation:
        """The metrics on held-out validation rows: `overall` and by `languages`."""
        return self.state.metrics

    def with_state(self, state: ModelState) -> Model:
        """Return a model with the same encoder and another state."""
        return Model(state, self.encoder)

    def predict_proba(self, texts: Iterable[str]) -> NDArray[np.float32]:
        """Return the scores of texts, float32 (texts, labels), with columns in the order of `labels`.

        All scores of an empty or unreadable text are 0.
        """
        return self._score(check_texts(texts)).scores

    @overload  # a string is also an iterable of strings
    def predict(  # type: ignore[overload-overlap]
        self, texts: str, language: str | None = None, *, precision: Wanted = None, recall: Wanted = None
    ) -> Prediction: ...

    @overload
    def predict(
        self, texts: Iterable[str], language: Languages = None, *, precision: Wanted = None, recall: Wanted = None
    ) -> list[Prediction]: ...

    def predict(
        self, texts: str | Iterable[str], language: Languages = None, *, precision: Wanted = None, recall: Wanted = None
    ) -> Prediction | list[Prediction]:
        """Return the prediction for a text, or for each text of a list: labels, scores, sentiment and language.

        `language` is one language for all texts, or one for each, by code or name. If the model has thresholds for a
        given language, they are used. By default the language is recognised, and its thresholds are averaged with those
        for any text; "any" turns recognition off. With `precision=0.8`, a label is predicted from the lowest score at
        which it was right 8 times in 10 on validation data; with `recall=0.8`, from the highest score that found 8 in
        10 of its texts. At most one of the two can be given; they replace the thresholds of a language.
        """
        if isinstance(texts, str):
            return self.predict([texts], language, precision=precision, recall=recall)[0]
        analysis = self.analyse(texts, language)
        chosen = self.choose(analysis, precision=precision, recall=recall)
        return list(analysis.predictions(chosen, self.labels))

    def analyse(self, texts: Iterable[str], language: Languages = None) -> Analysis:
        """Return scores, sentiment, languages and flags as arrays, which `predict` converts to predictions."""
        texts = check_texts(texts)
        languages, is_named, is_sure = recognise_languages(texts, check_languages(language, len(texts)))
        return Analysis(**vars(self._score(texts)), languages=languages, is_named=is_named, is_sure=is_sure)

    def choose(self, analysis: Analysis, *, precision: Wanted = None, recall: Wanted = None) -> NDArray[np.bool_]:
        """Return which labels (texts, labels) are predicted for an analysis."""
        if precision is None and recall is None:
            chosen = self.decide(analysis.scores, analysis.sure_languages(), analysis.is_named)
            return chosen & analysis.is_read[:, None]
        thresholds = self.strictness.thresholds(precision, recall)
        return decide(analysis.scores, thresholds, analysis.is_read, single_label=False)

    @property
    def strictness(self) -> Strictness:
        """The thresholds for a requested precision or recall."""
        if self.config.single_label:
            raise ModelError("a precision or recall needs a multi-label model, got a single-label one: leave it out")
        if self.state.strictness is None:
            raise ModelError(
                "this model has no table of precision and recall: measure one on your own data with "
                "`emoglot thresholds --pooled`"
            )
        return self.state.strictness

    def decide(
        self,
        scores: NDArray[np.float32],
        language: Languages = None,
        is_named: NDArray[np.bool_] | None = None,
    ) -> NDArray[np.bool_]:
        """Return which labels (texts, labels) are predicted for scores; `language` is a code, or one for each text.

        `is_named` (texts,) is false if a language was recognised instead of given; by default all are given.
        """
        languages = [language] * len(scores) if language is None or isinstance(language, str) else language
        named = [True] * len(scores) if is_named is None else is_named.tolist()
        return decide(scores, self.state.thresholds_of(languages, named), single_label=self.config.single_label)

    def explain(self, text: str) -> tuple[TokenWeight, ...]:
        """Return every token of a text, as far as it is read, with its attention weight; the weights sum to 1.

        If the network has an attention for each label, as in the model of the package, a weight is the mean over them.
        """
        check_texts([text])
        return self._pipeline.explain(text)

    def save(self, folder: Path | str) -> Path:
        """Write the model to a folder and return its path; `emoglot.load` reads it.

        A folder that contains a model is replaced. Any other existing file or folder raises an error.
        """
        return self._write(Path(folder))

    def push_to_hub(
        self,
        name: str,
        *,
        private: bool | None = None,
        token: str | bool | None = None,
        revision: str | None = None,
        message: str = "Upload an emoglot model",
    ) -> str:
        """Upload the model to the Hugging Face hub as `name` ("user/model"), and return the URL of the commit.

        A missing repository is created, public or `private`. `revision` is a branch, which is created if it is missing;
        by default it is main. `token` is an access token of the hub, by default that of `hf auth login`.
        """
        if not self.state.includes_encoder and is_path(self.encoder.name):
            raise UsageError(
                f"only models with a public or included encoder can be uploaded, this one needs the folder "
                f"{self.encoder.name!r}: train with a named encoder, or with fine_tune.enabled, which includes it"
            )
        with tempfile.TemporaryDirectory(prefix="emoglot-") as scratch:
            folder = self._write(Path(scratch) / "model", hub_name=name)
            return upload_folder(folder, name, private=private, token=token, revision=revision, message=message)

    def _write(self, folder: Path, hub_name: str | None = None) -> Path:
        write_model(self.state, folder, __version__, self._included_folder(), hub_name)
        return folder

    def _included_folder(self) -> Path | None:
        """Return the folder of the encoder that is part of this model; raise an error if its files have changed."""
        if not self.state.includes_encoder:
            return None
        folder: Path | None = getattr(self.encoder, "folder", None)
        with suppress(EncoderError):
            found = EncoderDescription.read(folder) if folder else None
            if found and self.state.encoder_fingerprint in (found.fingerprint, *found.extends):
                return folder
        raise ModelError(
            f"the encoder of this model in {folder} was removed or replaced after it was loaded: load the model again"
        )

    def _score(self, texts: Sequence[str]) -> Scores:
        return Scores.join(self._pipeline.run(texts), len(self.labels), len(self.state.sentiment))

    def _archive(self) -> bytes:
        """Return the model folder as a zip file."""
        with tempfile.TemporaryDirectory(prefix="emoglot-") as scratch:
            folder = self.save(Path(scratch) / "model")
            buffer = io.BytesIO()
            with zipfile.ZipFile(buffer, "w") as packed:
                for path in sorted(path for path in folder.rglob("*") if path.is_file()):
                    packed.write(path, path.relative_to(folder))
        return buffer.getvalue()


def load(
    name: str | os.PathLike[str] | None = None,
    *,
    revision: str | None = None,
    token: str | bool | None = None,
    encoder: str | os.PathLike[str] | Encoder | None = None,
) -> Model:
    """Load a trained model: a folder, a model of the Hugging Face hub, or by default the model in the package.

    Parameters
    ----------
    name
        A model folder, or "user/model" on the hub; a local folder takes precedence.
    revision
        A branch, tag or commit of the hub.
    token
        An access token of the hub, for private models.
    encoder
        The name or folder of the model's encoder, if it was moved or exported.
    """
    folder = find_model(BUNDLED_MODEL if name is None else name, revision=revision, token=token)
    state = read_model(folder)
    if is_download(folder):
        _check_published(state, model_name(folder))
    found = _own_encoder(folder, state) if encoder is None else load_encoder(encoder)
    _check_encoder(state, found, str(folder))
    with foreign_errors(folder / GRAPH_FILE, ModelError, "cannot be used", "copy or train the model again"):
        return Model(state, found)


def _check_encoder(state: ModelState, found: Encoder, model: str) -> None:
    """Raise ModelError for an encoder other than the one that the model was trained on."""
    if state.encoder_fingerprint not in (found.fingerprint, *extended_fingerprints(found)):
        raise ModelError(
            f"{model} was trained on the encoder {state.encoder_name!r} with the fingerprint "
            f"{state.encoder_fingerprint}, got {found.name!r} with {found.fingerprint}: use the original encoder"
        )


def _check_published(state: ModelState, name: str) -> None:
    """Raise ModelError for a model of the hub that refers to a local folder."""
    if not state.includes_encoder and is_path(state.encoder_name):
        raise ModelError(
            f"{name} on the Hugging Face hub refers to its encoder by a local path, {state.encoder_name!r}: "
            "ask its author for a model that includes its encoder"
        )


def _own_encoder(folder: Path, state: ModelState) -> Encoder:
    """Load the encoder in the folder, or the one that the folder refers to."""
    if state.includes_encoder:
        return _included_encoder(folder, state)
    try:
        return load_encoder(state.encoder_name)
    except MissingExtraError:
        raise
    except EncoderError as error:
        raise EncoderError(
            f"{folder} needs the encoder {state.encoder_name!r}: {error}; if it was moved, set its folder with "
            f"emoglot.load(…, encoder=…) or --encoder"
        ) from error


def _rejoin(state: ModelState, encoder: str | Encoder) -> Model:
    """Combine a pickled state with its encoder, whose files may have changed since."""
    found = load_encoder(encoder)
    _check_encoder(state, found, "the pickled model")
    return Model(state, found)


def _from_archive(packed: bytes) -> Model:
    """Load a model from the zip file of `Model._archive`; its files are kept as long as its encoder exists."""

    def load_unpacked(scratch: Path) -> Model:
        with zipfile.ZipFile(io.BytesIO(packed)) as archive:
            archive.extractall(scratch)
        return load(scratch)

    return made_in_scratch(load_unpacked, owner=lambda model: model.encoder)


def _included_encoder(folder: Path, state: ModelState) -> Encoder:
    try:
        return OnnxEncoder(folder / ENCODER_FOLDER, state.encoder_name)
    except EncoderError as error:
        raise ModelError(
            f"the encoder in {folder} has changed or is damaged: {error}; copy or train the model again"
        ) from error
