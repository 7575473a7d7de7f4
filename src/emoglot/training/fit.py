"""Fits a model to prepared data: head, wide channel, calibration, thresholds, held-out metrics."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emoglot.config import Config
from emoglot.data.dataset import Dataset
from emoglot.encoders.base import Encoder
from emoglot.encoders.features import Progress
from emoglot.encoders.onnx import OnnxEncoder
from emoglot.encoders.registry import extended_fingerprints
from emoglot.errors import TrainingError, needs_extra
from emoglot.evaluation.metrics import evaluate_languages
from emoglot.files import made_in_scratch
from emoglot.inference.folder import ModelState, under
from emoglot.inference.head import HeadRuntime, logits_of, score_features
from emoglot.inference.ngrams import WideChannel
from emoglot.inference.strictness import measure_strictness
from emoglot.inference.thresholds import NEVER, choose_thresholds, decide
from emoglot.labels import UNKNOWN
from emoglot.text.normalise import NORMALISATION_VERSION
from emoglot.training.calibration import fit_scaling
from emoglot.training.ngrams import fit_wide, match_spread

with needs_extra("train", "training"):
    from emoglot.encoders.export import export_encoder
    from emoglot.encoders.hub import HubEncoder
    from emoglot.training.checkpoint import Checkpoint
    from emoglot.training.finetune import FineTuner
    from emoglot.training.loop import Epoch, Trained, train
    from emoglot.training.part import Part
    from emoglot.training.parts import Parts
    from emoglot.training.to_onnx import compile_head
    from emoglot.training.trainer import HeadLearner, Learner

Weights = dict[str, NDArray[np.float32]]


@dataclass(frozen=True)
class Fitted:
    """A trained model with its encoder, either the given one or its fine-tuned copy."""

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
    on_step: Progress = lambda done, total: None,
) -> Fitted:
    """Train a model on prepared parts, starting from random weights or from those of another model."""
    if start is not None:
        _check_start(start, parts, encoder, config)
    key = [*_run_key(parts, encoder, config), hashlib.sha256(start.graph).hexdigest() if start else None]
    checkpoint = Checkpoint(checkpoint_file, key) if checkpoint_file else None
    learner = _make_learner(encoder, config)
    prefix = "head." if config.fine_tune.enabled else ""
    trained = train(
        learner,
        *parts.all(),
        config,
        on_epoch,
        checkpoint,
        {f"{prefix}{name}": array for name, array in start.weights.items()} if start else None,
        device,
        on_step,
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
    """Export the fine-tuned encoder and evaluate the model with the exported encoder."""
    tuned = learner.tuned_encoder(trained.weights)
    name = f"{tuned.name}, fine-tuned"
    weights = under("head.", trained.weights)
    found: dict[str, Fitted] = {}
    for kind in dict.fromkeys(("none", quantize)):
        encoder = _exported(tuned, name, kind)
        held_out = replace(
            parts, stopping=parts.stopping.read_by(encoder), thresholding=parts.thresholding.read_by(encoder)
        )
        found[kind] = Fitted(_finish(trained, weights, held_out, encoder, channel, config), encoder)
    fitted = found[quantize]
    scores = {kind: entry.state.metrics.overall.macro_f1 for kind, entry in found.items()}
    record = dict(fitted.state.training) | ({"macro_f1_by_quantization": scores} if len(scores) > 1 else {})
    return replace(fitted, state=replace(fitted.state, training=record, includes_encoder=True))


def _exported(tuned: HubEncoder, name: str, quantize: str) -> OnnxEncoder:
    return made_in_scratch(
        lambda scratch: OnnxEncoder(export_encoder(tuned, scratch / "encoder", name, quantize), name)
    )


def _finish(
    trained: Trained,
    weights: Weights,
    parts: Parts,
    encoder: Encoder,
    channel: WideChannel | None,
    config: Config,
) -> ModelState:
    """Scale the n-grams, calibrate, choose thresholds and evaluate, all on held-out rows."""
    stopping, thresholding = parts.stopping.with_tokens(), parts.thresholding.with_tokens()
    runtime = HeadRuntime(compile_head(config.head, weights))
    wide = match_spread(channel, stopping.texts, runtime.logits(stopping.features)) if channel else None
    weights, wide = _calibrated(runtime, weights, wide, thresholding, config)
    graph = compile_head(config.head, weights)
    runtime = HeadRuntime(graph)
    sentiment = tuple(config.training.sentiment)
    labels = tuple(name for name in parts.training.data.labels if name not in sentiment)
    width = len(labels)
    # (rows, labels), without the sentiment outputs
    scores, held_out_scores = (
        score_features(runtime, wide, part.features, part.texts)[:, :width] for part in (thresholding, parts.stopping)
    )
    thresholds = choose_thresholds(scores, thresholding.targets[:, :width])
    if not config.single_label:
        _warn_of_silent_labels(thresholds, parts.training.data.with_labels(labels))
    is_read = parts.stopping.features.lengths > 0
    chosen = decide(held_out_scores, thresholds, is_read, single_label=config.single_label)
    # Some rows are annotated with sentiment only.
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
        metrics=evaluate_languages(held_out.targets, chosen[measured], labels, held_out.languages),
        strictness=measure_strictness(scores, thresholding.targets[:, :width]),
    )


def _check_start(start: ModelState, parts: Parts, encoder: Encoder, config: Config) -> None:
    """Raise TrainingError if the model to start from has another encoder, other labels or another head."""
    if start.encoder_fingerprint not in (encoder.fingerprint, *extended_fingerprints(encoder)):
        raise TrainingError(
            f"training can only start from a model with the same encoder: {encoder.name}, got {start.encoder_name} "
            f"({start.encoder_fingerprint}); if that was fine-tuned, it is the folder `encoder` of the model"
        )
    ours = (parts.training.data.labels, asdict(config.head) | {"dropout": 0})
    theirs = (start.outputs, asdict(start.config.head) | {"dropout": 0})
    for name, wanted, found in zip(("labels", "head"), ours, theirs, strict=True):
        if wanted != found:
            raise TrainingError(f"training can only start from a model with the same {name}: {wanted}, got {found}")


def _fit_wide(training: Part, config: Config) -> WideChannel:
    """Fit the n-grams on the annotated rows."""
    rows = training.select(np.flatnonzero((training.targets != UNKNOWN).any(axis=1)))
    return fit_wide(rows.texts, rows.targets, rows.data.sources, config.wide, config.training.zero_weight)


def _calibrated(
    runtime: HeadRuntime, weights: Weights, wide: WideChannel | None, held_out: Part, config: Config
) -> tuple[Weights, WideChannel | None]:
    """Return weights and n-grams calibrated on held-out rows; the order of scores does not change."""
    logits = logits_of(runtime, wide, held_out.features, held_out.texts)
    line = fit_scaling(logits, held_out.targets, compete=config.single_label)
    scaled = {
        "output.weight": weights["output.weight"] * line.slope[:, None],
        "output.bias": weights["output.bias"] * line.slope + line.shift,
    }
    return weights | scaled, wide.rescaled(line.slope, line.shift) if wide else None


def _warn_of_silent_labels(thresholds: NDArray[np.float64], training: Dataset) -> None:
    """Warn of labels that were trained but have no row to choose a threshold by."""
    columns = zip(training.labels, thresholds, training.targets.T, strict=True)
    silent = [name for name, threshold, column in columns if threshold == NEVER and 1 in column]
    if silent:
        warnings.warn(
            f"no row that chooses thresholds is labelled {', '.join(silent)}, so the model will never predict it: "
            "use more validation rows, or raise training.thresholding_fraction",
            stacklevel=2,
        )


def _run_key(parts: Parts, encoder: Encoder, config: Config) -> Any:
    """Return everything that the weights depend on."""
    data = [[part.data.fingerprint, part.data.sources] for part in parts.all()]
    chances = parts.training.chances
    taught = [] if chances is None else [hashlib.sha256(np.ascontiguousarray(chances).data).hexdigest()]
    return [encoder.fingerprint, NORMALISATION_VERSION, data, config.to_dict(), *taught]


def _training_record(trained: Trained, parts: Parts) -> dict[str, Any]:
    return {
        "data": {name: part.data.summary() for name, part in vars(parts).items()},
        "best_epoch": trained.best_epoch,
        "epochs": len(trained.history),
        "history": [asdict(epoch) for epoch in trained.history],
    }
