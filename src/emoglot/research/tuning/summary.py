"""The summary of a study: the best settings for `emoglot train`, a table of all trials, and plots."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import optuna
from optuna.trial import FrozenTrial, TrialState

from emoglot.errors import needs_extra
from emoglot.files import write_whole
from emoglot.research.tuning.study import ENDED, Search, best_config, experimental

with needs_extra("tune", "drawing plots"):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from optuna.visualization import matplotlib as plots

BEST, TRIALS = "best.toml", "trials.csv"
_FEW = 2  # completed trials that the plots need


def write_summary(study: optuna.Study, search: Search, out: Path) -> list[Path]:
    """Write all files and return their paths."""
    best = study.best_trial
    head = f"# trial {best.number} of the study {study.study_name}: macro-F1 {100 * study.best_value:.2f}\n"
    write_whole(out / BEST, head + best_config(study, search).to_toml())
    write_whole(out / TRIALS, _table(study, list(search.space.distributions)))
    return [out / BEST, out / TRIALS, *_draw(study, list(search.space.distributions), out)]


def _table(study: optuna.Study, settings: list[str]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["trial", "state", "macro_f1", "epochs", "seconds", *settings])
    for trial in study.get_trials(states=ENDED):
        seconds = trial.duration.total_seconds() if trial.duration else 0.0
        epochs = max(trial.intermediate_values, default=0)
        values = [trial.params.get(name) for name in settings]
        score = f"{_score(trial):.4f}"
        writer.writerow([trial.number, trial.state.name.lower(), score, epochs, f"{seconds:.1f}", *values])
    return text.getvalue()


def _score(trial: FrozenTrial) -> float:
    """Return the score of a trial, or the best intermediate one of a pruned trial."""
    if trial.state == TrialState.COMPLETE and trial.value is not None:
        return trial.value
    return max(trial.intermediate_values.values(), default=0.0)


def _draw(study: optuna.Study, settings: list[str], out: Path) -> list[Path]:
    if len(study.get_trials(states=(TrialState.COMPLETE,))) < _FEW:
        return []
    with experimental():
        drawn = {
            "history": plots.plot_optimization_history(study, target_name="macro-F1"),
            "importances": plots.plot_param_importances(study, target_name="macro-F1"),
            "slices": plots.plot_slice(study, params=settings, target_name="macro-F1"),
        }
    return [_save(axes, out / f"{name}.png") for name, axes in drawn.items()]


def _save(axes: Any, path: Path) -> Path:
    figure: Any = (axes if isinstance(axes, matplotlib.axes.Axes) else axes.flat[0]).figure
    figure.savefig(path, dpi=110, bbox_inches="tight")
    pyplot.close(figure)
    return path
