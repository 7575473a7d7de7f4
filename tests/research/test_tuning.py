"""The search for settings: a tiny real study, resumed, killed, shared, and refused when something changed."""

from __future__ import annotations

import csv
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import optuna
import pytest
from typer.testing import CliRunner

from emoglot.cli import app
from emoglot.concurrency import results, worker_pool
from emoglot.config import Config
from emoglot.errors import TrainingError, UsageError, WorkerError
from emoglot.research.tuning.space import PAPER, read_space
from emoglot.research.tuning.study import ENDED, Search, best_config, run_study
from emoglot.research.tuning.summary import write_summary
from tests.conftest import QUICK, make_dataset, train

SPACE = """
"head.hidden" = [4, 8]
"training.learning_rate" = { low = 1e-3, high = 1e-1, log = true }
"head.layers" = { low = 1, high = 2 }
"""


def space_file(folder: Path, content: str = SPACE) -> Path:
    path = folder / "space.toml"
    path.write_text(content, encoding="utf-8")
    return path


def make_search(folder: Path, storage: str | None = None, space: str = SPACE) -> Search:
    return Search(
        encoder="tiny",
        cache=folder / "features",
        training=make_dataset(),
        validation=make_dataset(copies=7).select(range(64, 112)),
        config=QUICK,
        space=read_space(space_file(folder, space), QUICK),
        storage=storage or f"sqlite:///{folder / 'study.db'}",
        name="ours",
    )


def ended(study: optuna.Study) -> list[tuple]:
    return [(trial.number, trial.params, trial.value) for trial in study.get_trials(states=ENDED)]


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> tuple[Search, optuna.Study, Path]:
    folder = tmp_path_factory.mktemp("search")
    search = make_search(folder)
    study = run_study(search, trials=4, jobs=1)
    write_summary(study, search, folder)
    return search, study, folder


def test_the_default_space_is_the_papers():
    found = read_space(PAPER, Config()).distributions
    ranges = {name: (values.low, values.high, values.log) for name, values in found.items() if hasattr(values, "low")}
    assert ranges == {
        "training.learning_rate": (1e-5, 1e-1, True),
        "training.weight_decay": (1e-8, 1e-4, True),
        "head.dropout": (0.0, 0.7, False),
        "loss.kappa": (0.0, 1.0, False),
        "head.layers": (1, 2, False),
    }
    assert {name: values.choices for name, values in found.items() if name not in ranges} == {
        "head.hidden": (64, 128, 256),
        "training.batch_size": (32, 64, 128, 256),
        "loss.gamma": (0.5, 1.0, 2.0, 4.0),
    }


def test_the_best_config_trains_to_the_score_of_its_trial(searched):
    """The file is read as `emoglot train --config` does; the same data and seed give the same macro-F1."""
    search, study, folder = searched
    config = Config.from_toml(folder / "best.toml")
    assert config == best_config(study, search)
    model = train("tiny", search.training, search.validation, config=config, cache=search.cache)
    assert model.metrics.overall.macro_f1 == study.best_value


def test_the_summary_lists_every_trial_and_has_plots(searched):
    _, study, folder = searched
    rows = list(csv.DictReader((folder / "trials.csv").read_text(encoding="utf-8").splitlines()))
    assert [int(row["trial"]) for row in rows] == [trial.number for trial in study.trials]
    assert [float(row["head.hidden"]) for row in rows] == [trial.params["head.hidden"] for trial in study.trials]
    for name in ("history", "importances", "slices"):
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_a_study_goes_on_and_its_proposals_follow_from_the_seed(searched, tmp_path):
    _, study, _ = searched
    first = make_search(tmp_path, storage=str(tmp_path / "journal.log"))
    part = ended(run_study(first, trials=2, jobs=1))
    assert part == ended(study)[:2]
    assert ended(run_study(first, trials=4, jobs=1)) == ended(study)
    again = run_study(first, trials=3, jobs=1)  # it has them: nothing is run
    assert ended(again) == ended(study)


def test_two_processes_share_a_study(tmp_path):
    study = run_study(make_search(tmp_path), trials=3, jobs=2)
    assert len(study.trials) == 3  # not four, though two run side by side
    assert len({trial.params["training.learning_rate"] for trial in study.trials}) == len(study.trials)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"config": QUICK.override({"head.dropout": 0.5})}, "settings changed"),
        ({"training": make_dataset(copies=3)}, "data changed"),
        ({"training": replace(make_dataset(), languages=("en",) * len(make_dataset()))}, "data changed"),
    ],
)
def test_a_study_that_changed_is_refused(searched, change, message):
    search, study, _ = searched
    before = ended(study)
    with pytest.raises(UsageError, match=message):
        run_study(replace(search, **change), trials=9, jobs=1)
    assert ended(study) == before


def test_another_space_is_refused(searched, tmp_path):
    search, _, _ = searched
    other = read_space(space_file(tmp_path, SPACE.replace("8", "16")), QUICK)
    with pytest.raises(UsageError, match="search space changed"):
        run_study(replace(search, space=other), trials=9, jobs=1)


def test_a_study_of_another_program_is_refused(tmp_path):
    search = make_search(tmp_path)
    other = optuna.create_study(storage=search.storage, study_name="ours", direction="maximize")
    other.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=1)
    with pytest.raises(UsageError, match="not created by emoglot"):
        run_study(search, trials=2, jobs=1)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "must list settings"),
        ('"head.hiden" = [1]', "there is no setting"),
        ('"head.hidden" = [64, 0]', "must be in"),
        ('"head.hidden" = []', "a list or a range"),
        ('"head.hidden" = 64', "a list or a range"),
        ('"head.hidden" = { low = 64 }', "a list or a range"),
        ('"head.hidden" = { low = 1, high = 2, most = 3 }', "a list or a range"),
        ('"head.hidden" = { low = 9, high = 2 }', "head.hidden"),
        ('"head.dropout" = { low = 0.0, high = 0.5, log = true }', "head.dropout"),
        ('"head.dropout" = { low = 0.0, high = 2.0 }', "must be in"),
        ('"training.seed" = [1, 2]', "evaluated in the same way"),
        ('"task" = ["multi-label"]', "evaluated in the same way"),
        ("[head", "is not TOML"),
    ],
)
def test_a_bad_space_is_refused(tmp_path, content, message):
    with pytest.raises(UsageError, match=message):
        read_space(space_file(tmp_path, content), Config())


def test_a_storage_that_cannot_be_opened_is_refused(tmp_path):
    with pytest.raises(UsageError, match="cannot be opened"):
        run_study(make_search(tmp_path, storage=f"sqlite:///{tmp_path}/no/such/folder.db"), trials=1, jobs=1)


def test_when_every_trial_fails_the_reason_is_told(tmp_path):
    search = make_search(tmp_path)
    broken = replace(search.training, texts=tuple(" " for _ in search.training.texts))
    with pytest.raises(TrainingError, match=r"no trial of 1 completed; the last: .* must have a token"):
        run_study(replace(search, training=broken), trials=1, jobs=1)


def write_tables(folder: Path) -> list[str]:
    arguments = []
    for name, data in (("train", make_dataset()), ("validation", make_dataset(copies=7).select(range(64, 112)))):
        lines = ["text\tlabels"]
        for text, row in zip(data.texts, data.targets, strict=True):
            names = [label for label, value in zip(data.labels, row, strict=True) if value == 1]
            lines.append(f"{text}\t{','.join(names)}")
        (folder / f"{name}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
        arguments += [f"--{name}", str(folder / f"{name}.tsv")]
    return arguments


def start(folder: Path, trials: int) -> subprocess.Popen:
    arguments = ["tune", "--encoder", "tiny", "--out", folder / "out", "--trials", trials, "--jobs", 1]
    arguments += ["--space", space_file(folder), "--set", "training.max_epochs=30", *write_tables(folder)]
    with (folder / "log").open("w") as log:
        return subprocess.Popen([sys.executable, "-m", "emoglot", *map(str, arguments)], stderr=log, stdout=log)


def wait_for_a_trial(process: subprocess.Popen, folder: Path) -> None:
    deadline = time.monotonic() + 120
    while "1 of 50" not in (folder / "log").read_text():
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.02)


def read_trials(folder: Path) -> list[tuple]:
    study = optuna.load_study(study_name="emoglot", storage=f"sqlite:///{folder / 'out' / 'study.db'}")
    return ended(study)


def test_a_killed_search_loses_no_trial(tmp_path):
    process = start(tmp_path, trials=50)
    wait_for_a_trial(process, tmp_path)
    process.send_signal(signal.SIGKILL)
    process.wait()
    kept = read_trials(tmp_path)
    assert 1 <= len(kept) < 50
    assert start(tmp_path, trials=len(kept) + 2).wait(timeout=120) == 0
    found = read_trials(tmp_path)
    assert found[: len(kept)] == kept
    assert len(found) == len(kept) + 2
    assert (tmp_path / "out" / "best.toml").exists()


def test_an_interrupted_search_says_how_to_go_on(tmp_path):
    process = start(tmp_path, trials=50)
    wait_for_a_trial(process, tmp_path)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 130
    told = (tmp_path / "log").read_text()
    assert "every finished trial is kept, and the same command continues from there" in told
    assert "Traceback" not in told
    assert read_trials(tmp_path)


def test_the_space_can_be_printed_and_given_back(tmp_path):
    shown = CliRunner().invoke(app, ["tune", "--show-space"])
    path = space_file(tmp_path, shown.output)
    assert read_space(path, Config()) == read_space(PAPER, Config())


def test_a_folder_of_other_things_is_refused(tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    result = CliRunner().invoke(app, ["tune", "--encoder", "tiny", "--out", str(tmp_path), *write_tables(tmp_path)])
    assert isinstance(result.exception, UsageError)
    assert "choose another --out" in str(result.exception)


def test_the_journal_may_lie_in_the_folder_of_results(tmp_path):
    arguments = ["--encoder", "tiny", "--out", tmp_path / "out", "--storage", tmp_path / "out" / "journal", "--jobs", 1]
    arguments += ["--space", space_file(tmp_path), "--set", "training.max_epochs=1", *write_tables(tmp_path)]
    for trials in (1, 2):
        (tmp_path / "out" / "best.toml").unlink(missing_ok=True)  # as if it had been interrupted
        command = [sys.executable, "-m", "emoglot", "tune", *arguments, "--trials", trials]
        subprocess.run([str(part) for part in command], check=True, capture_output=True)


def end_without_a_word(prepared: object) -> None:
    os._exit(9)


def test_that_a_worker_was_killed_is_told():
    with (
        worker_pool(1, print, dict) as submit,
        pytest.raises(WorkerError, match="died, probably out of memory: use --jobs 1"),
    ):
        list(results([submit(end_without_a_word)]))


def test_a_search_without_an_out_is_refused():
    result = CliRunner().invoke(app, ["tune"])
    assert "needs --out" in str(result.exception)
