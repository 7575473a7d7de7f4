"""A study: trials of settings, proposed by Optuna from those before, in a storage that several machines can share."""

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

from emoglot.config import Config
from emoglot.data.dataset import Dataset
from emoglot.encoders import Encoder, load_encoder, load_trainable
from emoglot.errors import TrainingError, UsageError
from emoglot.features import FeatureCache, Progress
from emoglot.fit import Parts, fit_parts, prepare
from emoglot.train import Epoch
from emoglot.tuning.space import Space
from emoglot.workers import results, tell, worker_pool

ENDED = (TrialState.COMPLETE, TrialState.PRUNED)
# A trial whose process has been silent for so long is given to another. Heartbeats are for databases only.
HEARTBEAT_SECONDS = 30
SILENCE_SECONDS = 120
# Trials before the first is judged by the median of the others, as many as are drawn at random; and epochs that a trial
# has before it is: a small learning rate begins slowly.
FREE_TRIALS = 10
FREE_EPOCHS = 3
IDENTITY = "emoglot"  # the attribute of a study that says what its trials have in common


@dataclass(frozen=True)
class Search:
    """All that the trials of a study have in common: enough for another process to run some."""

    encoder: str
    cache: Path
    training: Dataset
    validation: Dataset | None
    config: Config
    space: Space
    storage: str  # a database URL, or the file of a journal
    name: str

    def identity(self, encoder: Encoder) -> dict[str, Any]:
        """Say what must not change in a study, under the names by which a user knows it."""
        return {
            "search space": dict(self.space.content),
            "settings": self.config.to_dict(),
            "data": [_fingerprint(part) for part in (self.training, self.validation) if part],
            "encoder": encoder.fingerprint,
        }

    def study(self) -> optuna.Study:
        """Open the study, or begin it."""
        with _experimental():
            return optuna.create_study(
                storage=_open_storage(self.storage),
                study_name=self.name,
                direction="maximize",
                load_if_exists=True,
                pruner=optuna.pruners.MedianPruner(FREE_TRIALS, FREE_EPOCHS),
            )

    def prepare(self, on_features: Progress | None = None) -> Bench:
        """Encode the data; what is in the cache is not encoded again."""
        encoder = (load_trainable if self.config.fine_tune.enabled else load_encoder)(self.encoder)
        cache = FeatureCache(self.cache, encoder)
        parts = prepare(encoder, self.training, self.validation, self.config, cache, on_features)
        return Bench(self, encoder, parts)


@dataclass(frozen=True)
class Bench:
    """What the trials of one process share."""

    search: Search
    encoder: Encoder
    parts: Parts


@dataclass(frozen=True)
class News:
    """A trial that ended: its macro-F1, or none if it was stopped early; and how the study stands."""

    number: int
    macro_f1: float | None
    ended: int
    best: float


def run_study(
    search: Search,
    trials: int,
    jobs: int,
    on_features: Progress | None = None,
    on_news: Callable[[News], None] = lambda news: None,
) -> optuna.Study:
    """Go on with a study until it has so many trials, and give it. Interrupted, all trials that ended are kept."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = _claim(search, search.prepare(on_features).encoder)
    if len(study.get_trials(deepcopy=False, states=ENDED)) < trials:
        with worker_pool(jobs, on_news, _prepare_quietly, search) as submit:
            for done in results([submit(_work, trials) for _ in range(jobs)]):
                done.result()
    if not study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)):
        reasons = [trial.user_attrs.get("reason") for trial in study.get_trials(states=ENDED)]
        raise TrainingError(f"no trial of {len(reasons)} came to an end; the last: {reasons[-1]}")
    return study


def best_config(study: optuna.Study, search: Search) -> Config:
    """Give all settings of the best trial."""
    return search.config.override(study.best_params)


def _claim(search: Search, encoder: Encoder) -> optuna.Study:
    """Open the study, refusing one whose trials can't be compared with ours."""
    study, ours = search.study(), search.identity(encoder)
    theirs = study.user_attrs.get(IDENTITY)
    if theirs is None and study.trials:
        raise UsageError(f"the study {search.name!r} is not one of emoglot: give another --study")
    if theirs is None:
        study.set_user_attr(IDENTITY, ours)
        return study
    changed = [name for name, value in ours.items() if theirs.get(name) != value]
    if changed:
        raise UsageError(
            f"trials of a study must be alike, and since {search.name!r} was begun, {' and '.join(changed)} changed: "
            "give what it was begun with, or begin another with --study"
        )
    return study


def _fingerprint(data: Dataset) -> str:
    """Name the data with what it is split and trained by, besides its rows: languages and sources."""
    facts = json.dumps([data.fingerprint, data.languages, data.sources])
    return hashlib.sha256(facts.encode("utf-8", "surrogatepass")).hexdigest()


def _prepare_quietly(search: Search) -> Bench:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the process that started this one has said it all
        return search.prepare()


def _work(bench: Bench, trials: int) -> None:
    """Run trials until the study, to which others add too, has enough."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = bench.search.study()
    with _experimental():
        while len(study.get_trials(deepcopy=False, states=ENDED)) < trials:
            study.optimize(lambda trial: _objective(trial, bench), n_trials=1, callbacks=[_report])


def _objective(trial: optuna.Trial, bench: Bench) -> float:
    search = bench.search
    # What is proposed follows from the seed, the trial's number and the trials before, on whichever machine it runs.
    seed = np.random.SeedSequence((search.config.training.seed, trial.number)).generate_state(1)[0]
    trial.study.sampler = optuna.samplers.TPESampler(seed=int(seed))
    config = search.config.override(search.space.suggest(trial))

    def on_epoch(epoch: Epoch) -> None:
        trial.report(epoch.macro_f1, epoch.number)
        if trial.should_prune():
            raise optuna.TrialPruned

    try:
        state = fit_parts(bench.parts, bench.encoder, config, on_epoch).state
    except TrainingError as error:  # a learning rate may be too high
        trial.set_user_attr("reason", str(error))
        raise optuna.TrialPruned from error
    return float(state.metrics["overall"]["macro_f1"])


def _report(study: optuna.Study, trial: FrozenTrial) -> None:
    others = study.get_trials(deepcopy=False, states=ENDED)
    values = [other.value for other in others if other.state == TrialState.COMPLETE and other.value is not None]
    found = trial.value if trial.state == TrialState.COMPLETE else None  # Optuna gives one stopped early its last score
    tell(News(trial.number, found, len(others), max(values, default=0.0)))


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
    except Exception as error:  # of SQLAlchemy or of the database's own driver
        raise UsageError(f"the storage can't be opened: {error}") from error


@contextmanager
def _experimental() -> Iterator[None]:
    """Use what Optuna calls experimental: heartbeats."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        yield
