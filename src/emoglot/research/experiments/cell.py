"""A cell: one training of an experiment with one seed, and its decisions."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emoglot.config import Config, FineTuneConfig, TrainingConfig
from emoglot.encoders.base import Encoder
from emoglot.encoders.features import FeatureCache, extract_features
from emoglot.encoders.registry import load_trainable
from emoglot.errors import DataError
from emoglot.files import write_whole
from emoglot.inference.head import HeadRuntime, score_features
from emoglot.inference.thresholds import apply_thresholds, choose_thresholds
from emoglot.research.experiments.baselines import fit_baseline
from emoglot.research.experiments.corpus import Corpus
from emoglot.research.experiments.experiment import CHOSEN, NETWORK, USUAL, Training
from emoglot.text.normalise import NORMALISATION_VERSION, normalise_text
from emoglot.training.fit import fit_parts
from emoglot.training.loop import Epoch
from emoglot.training.part import Part
from emoglot.training.parts import Parts, prepare, split_held_out

FORMAT_VERSION = 2
USUAL_CUT = 0.5
VALIDATION, TEST = "validation", "test"


@dataclass(frozen=True)
class Cell:
    """A training with a seed, which determines the initial weights, the order of rows and the split."""

    training: Training
    seed: int

    def config(self) -> Config:
        """Return all settings."""
        return self.training.config().override({"training.seed": self.seed})


@dataclass(frozen=True)
class Outcome:
    """The decisions of a cell on the evaluation rows, by part (validation or test) and cut."""

    cell: Cell
    decisions: Mapping[str, Mapping[str, NDArray[np.bool_]]]  # (rows, labels)
    seconds: float


@dataclass
class Bench:
    """The state that all cells share: corpus, encoder and features."""

    corpus: Corpus
    encoder: Encoder
    cache: FeatureCache
    _parts: dict[tuple[int, FineTuneConfig], Parts] = field(default_factory=dict)

    def key(self, cell: Cell) -> str:
        """Return a hash of everything that the outcome of a cell depends on; experiments may share cells."""
        training = cell.training
        facts: list[Any] = [FORMAT_VERSION, training.method, training.languages, cell.seed, self.corpus.fingerprint]
        if training.method == NETWORK:
            # Only differences from the defaults: settings added by a later version leave cells valid.
            facts += [_told_apart(cell.config()).differences(), self.encoder.fingerprint]
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:24]

    def encoder_for(self, config: Config) -> Encoder:
        """Return the encoder, or its trainable form if it is fine-tuned."""
        return self._trainable if config.fine_tune.enabled else self.encoder

    @cached_property
    def _trainable(self) -> Encoder:
        return load_trainable(self.encoder)

    def parts(self, cell: Cell) -> Parts:
        """Return the corpus, split and encoded; the parts of the last seed are cached."""
        config = cell.config()
        key = (cell.seed, config.fine_tune)
        if key not in self._parts:
            usual = replace(Config(), training=replace(TrainingConfig(), seed=cell.seed), fine_tune=config.fine_tune)
            encoder = self.encoder_for(config)
            parts = prepare(encoder, self.corpus.training, self.corpus.validation, usual, self.cache)
            self._parts = {key: parts}
        return self._parts[key]

    def measured(self, cell: Cell) -> dict[str, Part]:
        """Return the evaluation rows: those of validation that choose no threshold, and any test set."""
        found = {VALIDATION: self.parts(cell).stopping}
        return found | ({TEST: self._test} if self._test else {})

    @cached_property
    def _test(self) -> Part | None:
        if self.corpus.test is None:
            return None
        texts = [normalise_text(text) for text in self.corpus.test.texts]
        return Part(self.corpus.test, texts, extract_features(self.encoder, texts, self.cache))

    def facts(self) -> dict[str, Any]:
        """Return the fingerprints of data, normalisation and encoder."""
        encoder = {"name": self.encoder.name, "fingerprint": self.encoder.fingerprint}
        return {"data": self.corpus.fingerprint, "normalisation": NORMALISATION_VERSION, "encoder": encoder}


def _told_apart(config: Config) -> Config:
    """Return the settings without the name of one that trains the same: κ = 0 is uniform weighting to the last bit."""
    if config.loss.weighting == "dynamic" and config.loss.kappa == 0:
        return config.override({"loss.weighting": "uniform", "loss.kappa": Config().loss.kappa})
    return config


def measured_rows(corpus: Corpus, seed: int) -> NDArray[np.int64]:
    """Return the validation rows that evaluate the cells of a seed."""
    settings = Config().override({"training.seed": seed}).training
    stopping, _ = split_held_out(corpus.validation, settings)
    return stopping


def run_cell(bench: Bench, cell: Cell, path: Path, on_epoch: Callable[[Epoch], None] = lambda epoch: None) -> None:
    """Train a cell and write its decisions; an interrupted network resumes from its checkpoint."""
    began = time.perf_counter()
    own = Parts(*(_in_languages(part, cell.training.languages) for part in bench.parts(cell).all()))
    record: dict[str, Any] = {}
    if cell.training.method == NETWORK:
        config, checkpoint = cell.config(), path.with_suffix(".checkpoint")
        fitted = fit_parts(own, bench.encoder_for(config), config, on_epoch, checkpoint)
        state, runtime, thresholds = fitted.state, HeadRuntime(fitted.state.graph), fitted.state.thresholds
        record = {name: state.training[name] for name in ("epochs", "best_epoch", "history")}

        def scores_of(part: Part) -> NDArray[np.float32]:
            read = part.read_by(fitted.encoder) if config.fine_tune.enabled else part
            return score_features(runtime, state.wide, read.features, read.texts)
    else:
        tuning = (own.stopping.texts, own.stopping.targets)
        baseline = fit_baseline(cell.training.method, own.training.texts, own.training.targets, tuning, cell.seed)
        thresholds = choose_thresholds(baseline(own.thresholding.texts), own.thresholding.targets)

        def scores_of(part: Part) -> NDArray[np.float32]:
            return baseline(part.texts)

    decisions = {}
    for name, part in bench.measured(cell).items():
        scores = scores_of(part)
        cuts = {CHOSEN: thresholds, USUAL: np.full(scores.shape[1], USUAL_CUT)}
        decisions[name] = {cut: _pack(apply_thresholds(scores, values)) for cut, values in cuts.items()}
    seconds = sum(epoch["seconds"] for epoch in record["history"]) if record else time.perf_counter() - began
    content = _describe(bench, cell) | record | {"seconds": seconds, "decisions": decisions}
    write_whole(path, json.dumps(content, ensure_ascii=False))  # a cell that has a file is done
    path.with_suffix(".checkpoint").unlink(missing_ok=True)


def read_outcome(path: Path, cell: Cell, width: int) -> Outcome:
    """Read the decisions of a cell."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        decisions = {
            part: {cut: _unpack(rows, width) for cut, rows in cuts.items()}
            for part, cuts in content["decisions"].items()
        }
        return Outcome(cell, decisions, content["seconds"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{path} is damaged ({error!r}): delete it to run the cell again") from error


def _describe(bench: Bench, cell: Cell) -> dict[str, Any]:
    return {
        "version": FORMAT_VERSION,
        "training": asdict(cell.training),
        "seed": cell.seed,
        **bench.facts(),
        "config": cell.config().to_dict() if cell.training.method == NETWORK else None,
    }


def _in_languages(part: Part, languages: tuple[str, ...]) -> Part:
    return part.select(np.flatnonzero([code in languages for code in part.data.languages]))


def _pack(decisions: NDArray[np.bool_]) -> list[int]:
    """Return each row as a number whose bits are the labels: 1,505 rows take 10 kB."""
    return [int(value) for value in decisions @ (1 << np.arange(decisions.shape[1]))]


def _unpack(rows: list[int], width: int) -> NDArray[np.bool_]:
    return np.asarray(np.array(rows, dtype=np.int64)[:, None] >> np.arange(width) & 1, dtype=np.bool_)
