"""Makes a trained model of datasets: features, splits, head, wide channel, thresholds, held-out metrics."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import warnings
import weakref
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emoglot.calibration import fit_scaling
from emoglot.config import Config, TrainingConfig
from emoglot.data.dataset import Dataset, concatenate
from emoglot.data.split import stratified_split
from emoglot.encoders import Encoder, extended_fingerprints
from emoglot.encoders.onnx import OnnxEncoder
from emoglot.errors import DataError, MissingExtraError, TrainingError, UsageError
from emoglot.features import FeatureCache, Features, Progress, extract_features
from emoglot.labels import UNKNOWN, Targets
from emoglot.metrics import evaluate_languages
from emoglot.persist import ModelState
from emoglot.runtime import HeadRuntime, logits_of, score
from emoglot.strictness import measure_strictness
from emoglot.text import NORMALISATION_VERSION, normalise_text
from emoglot.thresholds import NEVER, choose_thresholds, decide
from emoglot.wide import WideChannel, fit_wide, match_spread

try:
    from emoglot.checkpoint import SECONDS, Checkpoint
    from emoglot.encoders.export import check_exportable, export_encoder
    from emoglot.encoders.hub import HubEncoder
    from emoglot.finetune import FineTuner, read_inputs
    from emoglot.graph import compile_head
    from emoglot.train import Epoch, Trained, train
    from emoglot.trainer import HeadLearner, Inputs, Labelled, Learner
except ImportError as missing:
    raise MissingExtraError(missing.name or "torch", "train", "training") from missing


@dataclass(frozen=True)
class Part:
    """The rows of one split in every form that training needs."""

    data: Dataset
    texts: list[str]  # normalised
    inputs: Inputs  # what the network that is trained reads
    chances: NDArray[np.float32] | None = None  # of every label, where a teacher had a say

    @property
    def features(self) -> Features:
        """The token vectors, where these are what the network reads."""
        assert isinstance(self.inputs, Features)
        return self.inputs

    @property
    def targets(self) -> Targets:
        """What is known of the labels."""
        return self.data.targets

    def labelled(self) -> Labelled:
        """Give what the network is trained and measured on."""
        targets = self.targets if self.chances is None else self.chances
        return Labelled(self.inputs, targets, self.data.sources)

    def select(self, rows: NDArray[np.int64]) -> Part:
        """Take the rows with these indices."""
        chances = None if self.chances is None else self.chances[rows]
        return Part(self.data.select(rows), [self.texts[row] for row in rows], self.inputs.select(rows), chances)

    def with_tokens(self) -> Part:
        """Leave out texts without tokens."""
        return self.select(self.inputs.rows_with_tokens)

    def read_by(self, encoder: Encoder) -> Part:
        """Return the same rows as another encoder reads them."""
        return replace(self, inputs=extract_features(encoder, self.texts))


@dataclass(frozen=True)
class Parts:
    """What a training needs, encoded: no row is in more than one part."""

    training: Part
    stopping: Part
    thresholding: Part

    def all(self) -> tuple[Part, Part, Part]:
        """Give the three in order."""
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
    """Check, split, normalise and encode the data; many trainings can follow.

    `chances` (rows, labels) are learnt in the place of the targets of the training rows.
    """
    if config.fine_tune.enabled:
        assert isinstance(encoder, HubEncoder)
        check_exportable(encoder)
    if chances is None:
        training = training.annotated()
        if len(training) and not (training.targets == 1).any():
            raise TrainingError("no training row has any label: there is nothing to learn; is the right column read?")
    elif chances.shape != training.targets.shape:
        raise DataError(f"chances must have the shape of the labels, {training.targets.shape}, got {chances.shape}")
    elif validation is None:
        raise UsageError("a student is measured on labelled rows that it did not learn from: give validation data")
    training, validation = _check_data(training, validation, config)
    if chances is None:
        _warn_of_absent_labels(training)
    training, chances = _with_sentiment_last(training, chances, config.training.sentiment)
    data = concatenate([training, validation]).with_labels(training.labels)
    texts = [normalise_text(text) for text in data.texts]
    # Both sets at once, so that one progress bar tells the whole truth.
    whole = Part(data, texts, _read_inputs(encoder, texts, config, cache, on_features))
    held_out = whole.select(np.arange(len(training), len(data)))
    settings = config.training
    stopping, thresholding = split_rows(held_out.data, settings.thresholding_fraction, settings)
    learnt = replace(whole.select(np.arange(len(training))), chances=chances)
    return Parts(learnt, held_out.select(stopping), held_out.select(thresholding))


def _read_inputs(
    encoder: Encoder, texts: list[str], config: Config, cache: FeatureCache | None, on_features: Progress | None
) -> Inputs:
    if not config.fine_tune.enabled:
        return extract_features(encoder, texts, cache, on_features)
    assert isinstance(encoder, HubEncoder)
    return read_inputs(encoder, texts, config, cache, on_features)


@dataclass(frozen=True)
class Fitted:
    """A trained model and the encoder that it reads with: the one given, or the one that was trained along."""

    state: ModelState
    encoder: Encoder


def fit_parts(
    parts: Parts,
    encoder: Encoder,
    config: Config,
    on_epoch: Callable[[Epoch], None] = lambda epoch: None,
    checkpoint_file: Path | None = None,
    start: ModelState | None = None,
    *,
    quantize: str = "none",
    device: str = "auto",
    checkpoint_seconds: float = SECONDS,
) -> Fitted:
    """Train a model on prepared parts, from scratch or from the network of another model."""
    if start is not None:
        _check_start(start, parts, encoder, config)
    key = [*_run_key(parts, encoder, config), hashlib.sha256(start.graph).hexdigest() if start else None]
    checkpoint = Checkpoint(checkpoint_file, key, checkpoint_seconds) if checkpoint_file else None
    learner = _make_learner(encoder, config)
    prefix = "head." if config.fine_tune.enabled else ""
    trained = train(
        learner,
        parts.training.labelled(),
        parts.stopping.labelled(),
        parts.thresholding.labelled(),
        config,
        on_epoch,
        checkpoint,
        {f"{prefix}{name}": array for name, array in start.weights.items()} if start else None,
        device,
    )
    channel = _fit_wide(parts.training, config) if config.wide.enabled else None
    if not isinstance(learner, FineTuner):
        return Fitted(_finish(trained, trained.weights, parts, encoder, channel, config), encoder)
    return _finish_tuned(trained, learner, parts, channel, config, quantize)


def _make_learner(encoder: Encoder, config: Config) -> Learner:
    if config.fine_tune.enabled:
        assert isinstance(encoder, HubEncoder)
        return FineTuner(encoder, config)
    return HeadLearner(config, encoder.dim)


def _finish_tuned(
    trained: Trained, learner: FineTuner, parts: Parts, channel: WideChannel | None, config: Config, quantize: str
) -> Fitted:
    """Export the encoder that was trained, and measure the model with what was exported."""
    tuned = learner.tuned_encoder(trained.weights)
    name = f"{tuned.name}, fine-tuned"
    weights = {key.removeprefix("head."): array for key, array in trained.weights.items() if key.startswith("head.")}
    found: dict[str, Fitted] = {}
    for kind in dict.fromkeys(("none", quantize)):
        encoder = _exported(tuned, name, kind)
        held_out = replace(
            parts, stopping=parts.stopping.read_by(encoder), thresholding=parts.thresholding.read_by(encoder)
        )
        found[kind] = Fitted(_finish(trained, weights, held_out, encoder, channel, config), encoder)
    fitted = found[quantize]
    scores = {kind: entry.state.metrics["overall"]["macro_f1"] for kind, entry in found.items()}
    record = dict(fitted.state.training) | ({"macro_f1_by_quantization": scores} if len(scores) > 1 else {})
    return replace(fitted, state=replace(fitted.state, training=record, includes_encoder=True))


def _exported(tuned: HubEncoder, name: str, quantize: str) -> OnnxEncoder:
    """Export an encoder to a temporary folder, which is there as long as the encoder is."""
    scratch = Path(tempfile.mkdtemp(prefix="emoglot-"))
    try:
        encoder = OnnxEncoder(export_encoder(tuned, scratch / "encoder", name, quantize), name)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise
    weakref.finalize(encoder, shutil.rmtree, scratch, ignore_errors=True)
    return encoder


def _finish(
    trained: Trained,
    weights: dict[str, NDArray[np.float32]],
    parts: Parts,
    encoder: Encoder,
    channel: WideChannel | None,
    config: Config,
) -> ModelState:
    """Join the n-grams, calibrate, choose thresholds and measure, all on held-out rows."""
    wide = _in_scale(channel, weights, parts.stopping, config) if channel else None
    thresholding = parts.thresholding.with_tokens()
    weights, wide = _calibrated(weights, wide, thresholding, config)
    graph = compile_head(config.head, weights)
    runtime = HeadRuntime(graph)
    sentiment = tuple(config.training.sentiment)
    labels = tuple(name for name in parts.training.data.labels if name not in sentiment)
    width = len(labels)
    # (rows, labels), without the sentiment behind them
    scores, held_out_scores = (
        score(runtime, wide, part.features, part.texts)[:, :width] for part in (thresholding, parts.stopping)
    )
    thresholds = choose_thresholds(scores, thresholding.targets[:, :width])
    if not config.single_label:
        _warn_of_silent_labels(thresholds, parts.training.data.with_labels(labels))
    chosen = decide(held_out_scores, thresholds, single_label=config.single_label)
    # A row may be annotated with sentiment alone.
    measured = np.flatnonzero((parts.stopping.targets[:, :width] != UNKNOWN).any(axis=1))
    held_out = parts.stopping.data.select(measured).with_labels(labels)
    return ModelState(
        labels=labels,
        thresholds=thresholds,
        config=config,
        encoder_name=encoder.name,
        encoder_fingerprint=encoder.fingerprint,
        weights=weights,
        graph=graph,
        wide=wide,
        training=_training_record(trained, parts),
        metrics=asdict(evaluate_languages(held_out.targets, chosen[measured], labels, held_out.languages)),
        strictness=measure_strictness(scores, thresholding.targets[:, :width]),
    )


def _check_data(training: Dataset, validation: Dataset | None, config: Config) -> tuple[Dataset, Dataset]:
    """Refuse what nothing can be learnt from; cut a validation set from the training rows where none is given."""
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
            raise DataError(f"a single-label task needs at most one label a row, got several in the {name} set")
    if unknown := config.training.unused_choices(set(training.sources)):
        raise UsageError(
            f"training.single_choice names datasets of the training data, got {', '.join(unknown)}, which "
            "is none of them: a file's dataset is its name without the ending"
        )
    shared = len(set(training.texts) & set(validation.texts))
    if shared:
        _warn(f"{shared} texts are in both training and validation: the figures will be too good")
    return training, validation


def _with_sentiment_last(
    training: Dataset, chances: NDArray[np.float32] | None, sentiment: Sequence[str]
) -> tuple[Dataset, NDArray[np.float32] | None]:
    """Reorder the labels, so that those which are given are the first outputs of the network."""
    if missing := [name for name in sentiment if name not in training.labels]:
        raise UsageError(f"training.sentiment names labels of the training data, got {', '.join(missing)}")
    given = [name for name in training.labels if name not in sentiment]
    if not given:
        raise UsageError("training.sentiment must leave a label that is given")
    labels = (*given, *sentiment)
    columns = [training.labels.index(name) for name in labels]
    return training.with_labels(labels), None if chances is None else chances[:, columns]


def _check_start(start: ModelState, parts: Parts, encoder: Encoder, config: Config) -> None:
    """Refuse to go on from a network that reads, says or is built otherwise."""
    if start.encoder_fingerprint not in (encoder.fingerprint, *extended_fingerprints(encoder)):
        raise TrainingError(
            f"training can only start from a model with the same encoder: {encoder.name}, got {start.encoder_name} "
            f"({start.encoder_fingerprint}); where that was fine-tuned, it is the folder `encoder` of the model"
        )
    ours = (parts.training.data.labels, asdict(config.head) | {"dropout": 0})
    theirs = (start.outputs, asdict(start.config.head) | {"dropout": 0})
    for name, wanted, found in zip(("labels", "head"), ours, theirs, strict=True):
        if wanted != found:
            raise TrainingError(f"training can only start from a model with the same {name}: {wanted}, got {found}")


def split_rows(data: Dataset, fraction: float, settings: TrainingConfig) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Split rows in two, stratified by label and language; copies of one text stay on one side."""
    first_row: dict[str, int] = {}
    representative = np.array([first_row.setdefault(text, row) for row, text in enumerate(data.texts)], dtype=np.int64)
    rows = np.unique(representative)
    if len(rows) < 2:
        raise DataError(f"at least 2 different texts with known labels are needed to split a set, got {len(rows)}")
    languages = [data.languages[row] for row in rows]
    _, second = stratified_split(data.targets[rows], fraction, settings.seed, groups=languages)
    in_second = np.isin(representative, rows[second])
    return np.flatnonzero(~in_second), np.flatnonzero(in_second)


def _fit_wide(training: Part, config: Config) -> WideChannel:
    """Fit the n-grams apart from the network, on what annotators said alone."""
    rows = training.select(np.flatnonzero((training.targets != UNKNOWN).any(axis=1)))
    return fit_wide(rows.texts, rows.targets, rows.data.sources, config.wide, config.training.zero_weight)


def _in_scale(
    channel: WideChannel, weights: dict[str, NDArray[np.float32]], held_out: Part, config: Config
) -> WideChannel:
    """Bring the n-grams to the network's scale on held-out rows."""
    held_out = held_out.with_tokens()
    network = HeadRuntime(compile_head(config.head, weights)).logits(held_out.features)
    return match_spread(channel, held_out.texts, network)


def _calibrated(
    weights: dict[str, NDArray[np.float32]], wide: WideChannel | None, held_out: Part, config: Config
) -> tuple[dict[str, NDArray[np.float32]], WideChannel | None]:
    """Make scores mean what they say on held-out rows; order, and so F1 at the best threshold, stays as it is."""
    runtime = HeadRuntime(compile_head(config.head, weights))
    logits = logits_of(runtime, wide, held_out.features, held_out.texts)
    line = fit_scaling(logits, held_out.targets, compete=config.single_label)
    scaled = {
        "output.weight": weights["output.weight"] * line.slope[:, None],
        "output.bias": weights["output.bias"] * line.slope + line.shift,
    }
    return weights | scaled, wide.rescaled(line.slope, line.shift) if wide else None


def _warn_of_absent_labels(training: Dataset) -> None:
    """Name the labels that nothing can be learnt of."""
    absent = [name for name, column in zip(training.labels, training.targets.T, strict=True) if 1 not in column]
    if absent:
        _warn(f"no training row is labelled {', '.join(absent)}: expect no such prediction")


def _warn_of_silent_labels(thresholds: NDArray[np.float64], training: Dataset) -> None:
    """Name the labels that were learnt but will never be given, for want of a row to choose their threshold."""
    columns = zip(training.labels, thresholds, training.targets.T, strict=True)
    silent = [name for name, threshold, column in columns if threshold == NEVER and 1 in column]
    if silent:
        _warn(
            f"no row that chooses thresholds is labelled {', '.join(silent)}, so the model will never say so: "
            "give more validation rows, or raise training.thresholding_fraction"
        )


def _run_key(parts: Parts, encoder: Encoder, config: Config) -> Any:
    """Name everything that the weights depend on."""
    data = [[part.data.fingerprint, part.data.sources] for part in parts.all()]
    chances = parts.training.chances
    taught = [] if chances is None else [hashlib.sha256(np.ascontiguousarray(chances).data).hexdigest()]
    return [encoder.fingerprint, NORMALISATION_VERSION, data, config.to_dict(), *taught]


def _training_record(trained: Trained, parts: Parts) -> dict[str, Any]:
    names = ("training", "stopping", "thresholding")
    return {
        "data": {name: part.data.summary() for name, part in zip(names, parts.all(), strict=True)},
        "best_epoch": trained.best_epoch,
        "epochs": len(trained.history),
        "history": [asdict(epoch) for epoch in trained.history],
    }


def _warn(message: str) -> None:
    warnings.warn(message, stacklevel=2)
