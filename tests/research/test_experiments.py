"""The paper's experiments on a tiny corpus: cells run once, survive a kill, and give the numbers of a slow count."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from emoglot.config import Config
from emoglot.errors import DataError, UsageError
from emoglot.evaluation.metrics import macro_f1
from emoglot.labels import SEMEVAL_LABELS
from emoglot.research.experiments import experiment
from emoglot.research.experiments.bootstrap import Trial, paired_bootstrap
from emoglot.research.experiments.cell import Cell, measured_rows, read_outcome
from emoglot.research.experiments.corpus import read_corpus
from emoglot.research.experiments.experiment import NETWORK, Experiment, Training
from emoglot.research.experiments.reproduce import reproduce
from emoglot.research.experiments.runner import Place, plan, run_cells
from tests.conftest import SENTENCES

SMALL = '{ "head.hidden" = 4, "head.layers" = 1, "training.max_epochs" = 2 }'
TABLE = f"""
title = "Two ways to train"
plot = "groups"
figures = ["macro_f1", "jaccard"]
cuts = ["chosen", "usual"]
against = "all"

[[columns]]
name = "English"
languages = ["en"]

[[columns]]
name = "both"
languages = ["en", "es"]

[[rows]]
name = "all"
train = ["ar", "en", "es"]
set = {SMALL}
paper = {{ English = [50.0, 40.0] }}

[[rows]]
name = "own"
set = {SMALL}

[[rows]]
name = "regression"
method = "logistic"

[[rows]]
name = "nobody"
method = "prior"

[[rows]]
name = "theirs"
method = "quoted"
paper = {{ both = [61.5, 51.5] }}
"""


def write_corpus(folder: Path, parts: tuple[str, ...] = ("train", "dev")) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    header = "\t".join(["ID", "Tweet", *SEMEVAL_LABELS])
    for part, copies in zip(parts, (4, 6, 2), strict=False):
        for language in ("ar", "en", "es"):
            rows = [(text, names) for text, code, names in SENTENCES if code == language]
            lines = [
                "\t".join(
                    [
                        f"{part}-{copy}-{place}",
                        f"{text} {part} no{copy}",
                        *(str(int(n in names)) for n in SEMEVAL_LABELS),
                    ]
                )
                for copy in range(copies)
                for place, (text, names) in enumerate(rows)
            ]
            path = folder / f"2018-E-c-{language.capitalize()}-{part}.txt"
            path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_corpus(tmp_path_factory.mktemp("corpus") / "semeval2018-ec")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Experiment:
    path = tmp_path_factory.mktemp("tables") / "two-ways.toml"
    path.write_text(TABLE, encoding="utf-8")
    return experiment.read_experiment(path)


@pytest.fixture(scope="module")
def results(corpus: Path, table: Experiment, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("results") / "out"
    reproduce([table], corpus, "tiny", out, out.with_name("features"), seeds=2, jobs=2)
    return out


def numbers_of(out: Path) -> dict:
    return json.loads((out / "two-ways.json").read_text(encoding="utf-8"))


def test_the_paper_has_six_experiments_whose_shared_trainings_are_one():
    found = {name: experiment.load_experiment(name) for name in experiment.names()}
    assert set(found) == {"ablation", "comparison", "cross-lingual", "label-rank", "per-class", "weighting"}
    together = {training for table in found.values() for training in table.trainings()}
    assert len(together) < sum(len(table.trainings()) for table in found.values())
    method = Training(NETWORK, ("ar", "en", "es"))
    assert all(method in found[name].trainings() for name in found if name != "label-rank")
    kappas = [row.at for row in found["weighting"].rows if row.curve == "dynamic"]
    assert kappas == pytest.approx(np.linspace(0, 1, 11))


def test_uniform_weighting_is_not_trained_twice(corpus, tmp_path):
    bench = Place(corpus, "tiny", tmp_path / "features", tmp_path / "cells").bench()
    table = experiment.load_experiment("weighting")
    files = plan(bench, [row.training(table.columns[0]) for row in table.rows], 1, tmp_path)
    keys = {row.name: files[Cell(row.training(table.columns[0]), 0)] for row in table.rows}
    assert keys["uniform"] == keys["dynamic, kappa = 0"]  # the same to the last bit, see tests/training/test_loss.py
    assert len(set(keys.values())) == len(keys) - 1


def test_a_report_has_table_plots_and_numbers(results):
    assert {path.name for path in results.glob("two-ways.*")} == {
        f"two-ways{end}" for end in (".md", ".json", ".png", ".svg")
    }
    text = (results / "two-ways.md").read_text(encoding="utf-8")
    assert "| theirs (quoted) | – | – | – | 61.5 / 51.5 | – | – |" in text
    assert "| all, our thresholds | 50.0 / 40.0 |" in text
    assert "cut at 0.5" in text
    assert "2 seeds" in text


def test_numbers_are_those_of_the_decisions(results, corpus, table):
    """Recomputed from the files of the cells and the corpus, with scikit-learn's macro-F1."""
    from sklearn.metrics import f1_score

    read = read_corpus(corpus)
    bench = Place(corpus, "tiny", results.with_name("features"), results / "cells").bench()
    cells = plan(bench, table.trainings(), 2, results / "cells")
    rows = {row["name"]: row for row in numbers_of(results)["rows"]}
    for name, training in (
        ("all", table.rows[0].training(table.columns[0])),
        ("regression", table.rows[2].training(table.columns[0])),
    ):
        for seed in range(2):
            outcome = read_outcome(cells[Cell(training, seed)], Cell(training, seed), len(SEMEVAL_LABELS))
            data = read.validation.select(measured_rows(read, seed))
            english = np.flatnonzero([code == "en" for code in data.languages])
            for cut in ("chosen", "usual"):
                decided = outcome.decisions["validation"][cut][english]
                expected = f1_score(data.targets[english] == 1, decided, average="macro", zero_division=0)
                assert rows[name]["columns"]["English"]["cuts"][cut][seed]["macro_f1"] == pytest.approx(expected)


def test_a_baseline_that_is_not_installed_is_told_and_the_rest_is_run(corpus, tmp_path, monkeypatch):
    (tmp_path / "fasttext.py").write_text("raise ImportError")
    monkeypatch.syspath_prepend(tmp_path)  # which worker processes take over
    content = TABLE.replace('method = "logistic"', 'method = "fasttext"').replace(
        'against = "all"', 'against = "regression"'
    )
    (tmp_path / "two-ways.toml").write_text(content, encoding="utf-8")
    reproduce(
        [experiment.read_experiment(tmp_path / "two-ways.toml")],
        corpus,
        "tiny",
        tmp_path / "out",
        tmp_path / "features",
    )
    rows = {row["name"]: row for row in numbers_of(tmp_path / "out")["rows"]}
    assert "pip install 'emoglot[baselines]'" in rows["regression"]["not run"]
    assert rows["nobody"]["columns"]["both"]["cuts"]["chosen"]
    assert rows["own"]["columns"]["both"]["difference"] is None


def test_counting_labels_trains_nothing(corpus, tmp_path):
    reproduce([experiment.load_experiment("label-rank")], corpus, "tiny", tmp_path / "out", tmp_path / "features")
    text = (tmp_path / "out" / "label-rank.md").read_text(encoding="utf-8")
    assert "| joy | 4 | 4 | 4 |" in text  # four copies of one sentence in each language
    assert "macro-F1" not in text
    assert not list((tmp_path / "out" / "cells").iterdir())


def test_what_is_done_is_not_run_again(results, corpus, table):
    before = {path: path.stat().st_mtime_ns for path in (results / "cells").iterdir()}
    assert len(before) == 2 * len(table.trainings())
    reproduce([table], corpus, "tiny", results, results.with_name("features"), seeds=2, jobs=2)
    assert {path: path.stat().st_mtime_ns for path in (results / "cells").iterdir()} == before


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "emoglot", "reproduce", *map(str, arguments)]


def test_a_killed_run_goes_on_where_it_was(corpus, tmp_path):
    """Killed with -9 once a cell is done: that one stays, no worker survives, and the end is as without."""
    arguments = ["cross-lingual", "--root", corpus, "--encoder", "tiny", "--jobs", "2", "--out"]
    process = subprocess.Popen(
        command(*arguments, tmp_path / "killed"), stderr=subprocess.DEVNULL, start_new_session=True
    )
    cells = tmp_path / "killed" / "cells"
    deadline = time.monotonic() + 120
    while not (done := list(cells.glob("*.json"))):
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    kept = {path.name: path.read_bytes() for path in done}
    while _survivors(process.pid):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    for out in ("killed", "whole"):
        subprocess.run(command(*arguments, tmp_path / out), check=True, capture_output=True)
    assert {name: (cells / name).read_bytes() for name in kept} == kept
    reports = [json.loads((tmp_path / out / "cross-lingual.json").read_text()) for out in ("killed", "whole")]
    first, second = map(_without_times, reports)
    assert first == second


def _survivors(session: int) -> list[int]:
    return [int(path.name) for path in Path("/proc").glob("[0-9]*") if _session_of(path) == session]


def _session_of(process: Path) -> int | None:
    try:
        return os.getsid(int(process.name))
    except (ProcessLookupError, PermissionError):
        return None


def _without_times(value):
    if isinstance(value, dict):
        return {name: _without_times(item) for name, item in value.items() if name != "seconds"}
    return [_without_times(item) for item in value] if isinstance(value, list) else value


def test_a_bootstrap_tells_a_gain_from_noise():
    rng = np.random.default_rng(0)
    gold = rng.random((400, 3)) < 0.4
    good, poor = (gold ^ (rng.random(gold.shape) < share) for share in (0.05, 0.3))
    gain = paired_bootstrap([Trial(gold, good, poor)])
    expected = macro_f1(gold.astype(np.int8), good) - macro_f1(gold.astype(np.int8), poor)
    assert gain.mean == pytest.approx(expected)
    assert 0 < gain.low < gain.mean < gain.high
    assert gain.p == 0
    same = paired_bootstrap([Trial(gold, poor, poor)])
    assert (same.mean, same.low, same.high, same.p) == (0, 0, 0, 1)
    other = gold ^ (rng.random(gold.shape) < 0.3)
    noise = paired_bootstrap([Trial(gold, other, poor)])
    assert noise.low < 0 < noise.high
    assert noise.p > 0.05


def test_the_bootstrap_is_that_of_a_slow_loop():
    rng = np.random.default_rng(1)
    gold, ours, theirs = (rng.random((30, 2)) < 0.5 for _ in range(3))
    found = paired_bootstrap([Trial(gold, ours, theirs)], resamples=4000)
    drawn = [rng.integers(0, 30, 30) for _ in range(4000)]
    slow = [
        macro_f1(gold[rows].astype(np.int8), ours[rows]) - macro_f1(gold[rows].astype(np.int8), theirs[rows])
        for rows in drawn
    ]
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(slow, [0.025, 0.975])), abs=0.02)


def test_test_files_are_used_where_there_are_any(tmp_path, table):
    folder = write_corpus(tmp_path / "with-test", ("train", "dev", "test-gold"))
    assert len(read_corpus(folder).test) == 2 * len(SENTENCES)
    reproduce([table], folder, "tiny", tmp_path / "out", tmp_path / "features", jobs=1)
    assert numbers_of(tmp_path / "out")["measured on"] == "test"
    (folder / "2018-E-c-Es-test-gold.txt").unlink()
    with pytest.raises(DataError, match=r"lacks 2018-E-c-Es-test-gold\.txt"):
        read_corpus(folder)


def test_a_folder_of_other_results_is_refused(results, table, tmp_path):
    other = write_corpus(tmp_path / "other", ("dev", "train"))
    with pytest.raises(UsageError, match="results with another data: choose"):
        reproduce([table], other, "tiny", results, tmp_path / "features")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years")
    with pytest.raises(UsageError, match="must be a new folder or a folder of experiments"):
        reproduce([table], other, "tiny", tmp_path / "mine", tmp_path / "features")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.txt"]


def test_a_missing_or_foreign_file_is_named(tmp_path):
    folder = write_corpus(tmp_path / "corpus")
    path = folder / "2018-E-c-En-dev.txt"
    path.write_text(path.read_text().replace("anger\tanticipation", "anticipation\tanger"), encoding="utf-8")
    with pytest.raises(DataError, match=r"2018-E-c-En-dev\.txt"):
        read_corpus(folder)
    path.unlink()
    with pytest.raises(DataError, match=r"lacks 2018-E-c-En-dev\.txt"):
        read_corpus(folder)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (('plot = "groups"', 'plot = "pie"'), "plot must be one of"),
        (('against = "all"', 'against = "none"'), "is not the name of a row"),
        (('method = "prior"', 'method = "oracle"'), "method must be one of"),
        (('"macro_f1", "jaccard"', '"accuracy"'), "each of figures must be one of"),
        (('["chosen", "usual"]', '["sharp"]'), "each of cuts must be one of"),
        (("[50.0, 40.0]", "50.0"), "must fit the columns"),
        (('"head.hidden" = 4', '"head.hiden" = 4'), "there is no setting"),
        (('title = "Two ways to train"', ""), "does not describe an experiment"),
        (('name = "own"', 'name = "own"\ncolour = "red"'), "does not describe an experiment"),
        (('["chosen", "usual"]', '["usual"]'), "cuts must include chosen"),
        (('plot = "groups"', 'plot = "bars"'), "has one column, got 2"),
        (('name = "own"', 'name = "all"'), "unique names"),
        (('name = "both"', 'name = "English"'), "unique names"),
        (('["ar", "en", "es"]', '["ar", "en", "sp"]'), "languages are some of ar, en, es, got ar, en, sp"),
        (('languages = ["en", "es"]', 'languages = ["sp"]'), "languages are some of"),
        (('languages = ["en", "es"]', "languages = []"), "got none"),
        (('"head.hidden" = 4', '"training.seed" = 4'), r"training\.seed cannot be set"),
        (('"head.hidden" = 4', "head.hidden = 4"), "a name in quotes"),
        (('name = "own"', 'name = "own"\nsweep = "head.kind"\nover = ["gru"]'), r"each of rows\.over must be a number"),
    ],
)
def test_a_file_that_can_not_work_is_refused_at_once(tmp_path, damage, message):
    assert damage[0] in TABLE
    (tmp_path / "bad.toml").write_text(TABLE.replace(*damage), encoding="utf-8")
    with pytest.raises(UsageError, match=message):
        experiment.read_experiment(tmp_path / "bad.toml")


def test_an_experiment_that_is_not_there_is_told():
    with pytest.raises(UsageError, match="there is no experiment 'abolition': choose one of ablation"):
        experiment.load_experiment("abolition")


def test_an_experiment_of_ones_own_is_a_file(tmp_path):
    path = tmp_path / "two-ways.toml"
    path.write_text(TABLE, encoding="utf-8")
    assert experiment.load_experiment(str(path)) == experiment.read_experiment(path)
    with pytest.raises(UsageError, match="cannot read"):
        experiment.load_experiment(str(tmp_path / "away.toml"))


def test_an_experiment_of_ones_own_is_not_written_over_one_of_the_paper(tmp_path):
    path = tmp_path / "ablation.toml"
    path.write_text(TABLE, encoding="utf-8")
    with pytest.raises(UsageError, match=r"the paper's ablation: choose another name"):
        experiment.load_experiment(str(path))


def test_what_would_be_written_over_each_other_is_refused(corpus, table, tmp_path):
    for tables in ([table, table], [replace(table, name="run")]):
        with pytest.raises(UsageError, match="is already used"):
            reproduce(tables, corpus, "tiny", tmp_path / "out", tmp_path / "features")
    assert not (tmp_path / "out").exists()


def test_a_name_may_have_dots(corpus, tmp_path):
    counted = replace(experiment.load_experiment("label-rank"), name="rank-0.5")
    reproduce([counted], corpus, "tiny", tmp_path / "out", tmp_path / "features")
    written = {path.name for path in (tmp_path / "out").glob("rank*")}
    assert written == {f"rank-0.5{end}" for end in (".md", ".json", ".png", ".svg")}


def test_rows_that_say_the_same_in_other_words_are_one_training(corpus, results, table):
    """The method's own κ written out is no other setting."""
    told = replace(table.rows[1], name="told", settings=(*table.rows[1].settings, ("loss.kappa", Config().loss.kappa)))
    bench = Place(corpus, "tiny", results.with_name("features"), results / "cells").bench()
    cells = plan(bench, replace(table, rows=(table.rows[1], told)).trainings(), 2, results / "cells")
    assert len(cells) == 2 * len(set(cells.values()))
    assert len(list(run_cells(Place(corpus, "tiny", results, results / "cells"), cells, jobs=1))) == len(cells) / 2


def test_the_example_asks_for_trainings_of_the_paper():
    """So that a folder with the paper's results has its first seed already."""
    example = experiment.load_experiment(str(Path(__file__).parents[2] / "examples" / "weighting-seeds.toml"))
    assert set(example.trainings()) <= set(experiment.load_experiment("weighting").trainings())


def test_a_row_may_fine_tune_the_encoder_where_that_can_be_trained(corpus, xlmr_folder, tmp_path):
    path = tmp_path / "tuned.toml"
    row = '\n[[rows]]\nname = "tuned"\nset = { "fine_tune.enabled" = true, "training.max_epochs" = 1 }\n'
    head, _, _ = TABLE.partition('[[rows]]\nname = "own"')
    path.write_text(head + row, encoding="utf-8")
    tuned = experiment.read_experiment(path)
    assert tuned.rows[1].training(tuned.columns[0]).config().head.kind == "attention"
    for encoder, is_run in ((str(xlmr_folder), True), ("tiny", False)):
        out = tmp_path / encoder.replace("/", "-")
        reproduce([tuned], corpus, encoder, out, tmp_path / "features")
        rows = {row["name"]: row for row in json.loads((out / "tuned.json").read_text(encoding="utf-8"))["rows"]}
        assert rows["all"]["columns"]["both"]["seconds"] > 0
        assert ("cuts" in rows["tuned"]["columns"]["both"]) == is_run
        assert ("cannot be trained" in rows["tuned"].get("not run", "")) != is_run
