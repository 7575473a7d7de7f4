"""A study: trials of settings proposed by Optuna, in a storage that several machines can share."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.storages import BaseStorage, JournalStorage, RDBStorage, RetryHeartbeatStaleTrialCallback
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, TrialState

from emoglot.concurrency import results, send_news, worker_pool
from emoglot.config import Config
from emoglot.data.dataset import Dataset
from emoglot.encoders.base import Encoder
from emoglot.encoders.features import FeatureCache, Progress
from emoglot.encoders.registry import load_encoder, load_trainable
from emoglot.errors import TrainingError, UsageError
from emoglot.research.tuning.space import Space
from emoglot.training.fit import fit_parts
from emoglot.training.loop import Epoch
from emoglot.training.parts import Parts, prepare

ENDED = (TrialState.COMPLETE, TrialState.PRUNED)
# A trial whose process sent no heartbeat for SILENCE_SECONDS is retried. Only databases have heartbeats.
HEARTBEAT_SECONDS = 30
SILENCE_SECONDS = 120
# The median pruner starts after this many trials and epochs: trainings with small learning rates start slowly.
FREE_TRIALS = 10
FREE_EPOCHS = 3
IDENTITY = "emoglot"  # the attribute of a study with the identity of its search


@dataclass(frozen=True)
class Search:
    """Everything that the trials of a study have in common. This is all that worker processes need."""

    encoder: str
    cache: Path
    training: Dataset
    validation: Dataset | None
    config: Config
    space: Space
    storage: str  # a database URL or a journal file
    name: str

    def identity(self, encoder: Encoder) -> dict[str, Any]:
        """Return what must not change in a study, by names that users know."""
        return {
            "search space": dict(self.space.content),
            "settings": self.config.to_dict(),
            "data": [_fingerprint(part) for part in (self.training, self.validation) if part],
            "encoder": encoder.fingerprint,
        }

    def study(self) -> optuna.Study:
        """Open or create the study."""
        with experimental():
            return optuna.create_study(
                storage=_open_storage(self.storage),
                study_name=self.name,
                direction="maximize",
                load_if_exists=True,
                pruner=optuna.pruners.MedianPruner(FREE_TRIALS, FREE_EPOCHS),
            )

    def prepare(self, on_features: Progress | None = None) -> TrialBench:
        """Encode the data, except what is cached."""
        encoder = (load_trainable if self.config.fine_tune.enabled else load_encoder)(self.encoder)
        cache = FeatureCache(self.cache, encoder)
        parts = prepare(encoder, self.training, self.validation, self.config, cache, on_features)
        return TrialBench(self, encoder, parts)


@dataclass(frozen=True)
class TrialBench:
    """The state that the trials of one process share."""

    search: Search
    encoder: Encoder
    parts: Parts


@dataclass(frozen=True)
class TrialNews:
    """A finished trial: its macro-F1, or None if it was pruned, and the state of the study."""

    number: int
    macro_f1: float | None
    ended: int
    best: float


def run_study(
    search: Search,
    trials: int,
    jobs: int,
    on_features: Progress | None = None,
    on_news: Callable[[TrialNews], None] = lambda news: None,
) -> optuna.Study:
    """Run trials until the study has this many, and return it; an interruption keeps finished trials."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = _claim(search, search.prepare(on_features).encoder)
    missing = trials - _count_ended(study)
    if missing > 0:
        with worker_pool(min(jobs, missing), on_news, _prepare_quietly, search) as submit:
            for done in results([submit(_run_trial, trials) for _ in range(missing)]):
                done.result()
    if not study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)):
        reasons = [trial.user_attrs.get("reason") for trial in study.get_trials(states=ENDED)]
        raise TrainingError(f"no trial of {len(reasons)} completed; the last: {reasons[-1]}")
    return study


def best_config(study: optuna.Study, search: Search) -> Config:
    """Return all settings of the best trial."""
    return search.config.override(study.best_params)


def _claim(search: Search, encoder: Encoder) -> optuna.Study:
    """Open the study; raise UsageError if its trials have other data, settings or another encoder."""
    study, ours = search.study(), search.identity(encoder)
    theirs = study.user_attrs.get(IDENTITY)
    if theirs is None and study.trials:
        raise UsageError(f"the study {search.name!r} was not created by emoglot: choose another --study")
    if theirs is None:
        study.set_user_attr(IDENTITY, ours)
        return study
    changed = [name for name, value in ours.items() if theirs.get(name) != value]
    if changed:
        raise UsageError(
            f"the trials of a study must be comparable, but {' and '.join(changed)} changed since {search.name!r} was "
            "created: use what it was created with, or create another with --study"
        )
    return study


def _fingerprint(data: Dataset) -> str:
    """Return a hash of the rows with their languages and sources."""
    facts = json.dumps([data.fingerprint, data.languages, data.sources])
    return hashlib.sha256(facts.encode("utf-8", "surrogatepass")).hexdigest()


def _prepare_quietly(search: Search) -> TrialBench:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the parent process has shown them
        return search.prepare()


def _count_ended(study: optuna.Study) -> int:
    return len(study.get_trials(deepcopy=False, states=ENDED))


def _run_trial(bench: TrialBench, trials: int) -> None:
    """Run one trial, unless other machines that share the study have run enough."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = bench.search.study()
    if _count_ended(study) < trials:
        with experimental():
            study.optimize(lambda trial: _objective(trial, bench), n_trials=1, callbacks=[_report])


def _objective(trial: optuna.Trial, bench: TrialBench) -> float:
    search = bench.search
    # The proposal depends on the seed, the trial's number and the trials before, not on the machine.
    seed = np.random.SeedSequence((search.config.training.seed, trial.number)).generate_state(1)[0]
    trial.study.sampler = optuna.samplers.TPESampler(seed=int(seed))
    config = search.config.override(search.space.suggest(trial))

    def on_epoch(epoch: Epoch) -> None:
        trial.report(epoch.macro_f1, epoch.number)
        if trial.should_prune():
            raise optuna.TrialPruned

    try:
        state = fit_parts(bench.parts, bench.encoder, config, on_epoch).state
    except TrainingError as error:  # for example with a high learning rate
        trial.set_user_attr("reason", str(error))
        raise optuna.TrialPruned from error
    return state.metrics.overall.macro_f1


def _report(study: optuna.Study, trial: FrozenTrial) -> None:
    others = study.get_trials(deepcopy=False, states=ENDED)
    values = [other.value for other in others if other.state == TrialState.COMPLETE and other.value is not None]
    found = trial.value if trial.state == TrialState.COMPLETE else None  # a pruned trial has its last score as value
    send_news(TrialNews(trial.number, found, len(others), max(values, default=0.0)))


def _open_storage(name: str) -> BaseStorage:
    if "://" not in name:
        return JournalStorage(JournalFileBackend(name))
    try:
        return RDBStorage(
            name,
            heartbeat_interval=HEARTBEAT_SECONDS,
            grace_period=SILENCE_SECONDS,
            heartbeat_stale_trial_callback=RetryHeartbeatStaleTrialCallback(),
        )
    except Exception as error:  # of SQLAlchemy or of the database driver
        raise UsageError(f"the storage cannot be opened: {error}") from error


@contextmanager
def experimental() -> Iterator[None]:
    """Suppress warnings about heartbeats and plots, which Optuna calls experimental."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        yield
