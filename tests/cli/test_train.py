"""`emoglot train`: from files, from a recipe, with a teacher; what it refuses, and how it continues."""

from __future__ import annotations

import errno
import json
import shutil
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from emoglot import load
from emoglot.data.dataset import Dataset
from emoglot.training.checkpoint import Checkpoint
from tests.cli.harness import MODEL, QUICK, USAGE, Run, check_error, command, shell, write_recipe, write_table


@pytest.mark.filterwarnings("ignore:no row that chooses thresholds")
def test_train_then_predict(run: Run, table: Path, tmp_path: Path) -> None:
    out = tmp_path / "model"
    result = run("train", "--encoder", "tiny", "--train", table, "--out", out, *QUICK, "--seed", 3)
    assert (result.code, result.out) == (0, f"{out}\n")
    assert "epoch 1: loss" in result.err
    assert "epoch 2: loss" in result.err
    model = load(out)
    figures = model.metrics.overall
    assert f"validation: macro-F1 {100 * figures.macro_f1:.1f}" in result.err
    assert (model.config.head.hidden, model.config.training.seed, model.config.wide.enabled) == (8, 3, False)
    assert model.labels == ("anger", "fear", "joy", "love", "sadness")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    (record,) = run("predict", "--model", out, "--json", "so happy").records()
    assert record["scores"] == model.predict(["so happy"])[0].scores


@pytest.mark.filterwarnings("ignore:64 texts are in both")
def test_train_with_all_its_options(run: Run, table: Path, tmp_path: Path) -> None:
    (tmp_path / "quick.toml").write_text("[head]\nhidden = 4\nlayers = 1\n[training]\nmax_epochs = 9", encoding="utf-8")
    settings = ["--config", tmp_path / "quick.toml", "--set", "training.max_epochs=1", "--set", "wide.buckets=64"]
    columns = ["--format", "tsv", "--text-column", "text", "--labels-column", "labels", "--language-column", "language"]
    out = tmp_path / "deep" / "model"
    data = ["--train", table, "--train", table, "--validation", table]
    result = run("train", "--encoder", "tiny", "--wide", *data, "--out", out, *settings, *columns)
    assert result.code == 0, result.err
    config = load(out).config
    assert (config.head.hidden, config.training.max_epochs, config.wide.enabled, config.wide.buckets) == (
        4,
        1,
        True,
        64,
    )
    recorded = json.loads((out / "model.json").read_text(encoding="utf-8"))["training"]["data"]
    assert recorded["training"]["rows"] == 128
    assert recorded["stopping"]["rows"] + recorded["thresholding"]["rows"] == 64


def test_the_cache_is_where_it_is_asked_for(run: Run, table: Path, tmp_path: Path) -> None:
    arguments = ["train", "--encoder", "tiny", "--train", table, *QUICK, "--cache", tmp_path / "vectors"]
    assert run(*arguments, "--out", tmp_path / "model").code == 0
    assert len(list(tmp_path.glob("vectors/tiny-1-n*/*/vectors.npy"))) == 1


def test_an_existing_folder_is_refused_before_any_work(run: Run, model_folder: Path, tmp_path: Path) -> None:
    """Even the data file, which is not there, is not asked for."""
    folder = Path(shutil.copytree(model_folder, tmp_path / "model"))
    arguments = ["train", "--encoder", "nobody/has-this", "--train", tmp_path / "none.tsv", "--out"]
    check_error(run(*arguments, folder), USAGE, "already exists", "--overwrite")
    (folder / "notes.txt").write_text("mine", encoding="utf-8")
    check_error(run(*arguments, folder, "--overwrite"), MODEL, "nothing was overwritten")
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    check_error(run(*arguments, tmp_path / "file", "--overwrite"), MODEL, "nothing was overwritten")
    assert (folder / "notes.txt").read_text(encoding="utf-8") == "mine"


def test_overwriting(run: Run, model_folder: Path, table: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(model_folder, tmp_path / "model"))
    before = (folder / "weights.safetensors").read_bytes()
    result = run("train", "--encoder", "tiny", "--train", table, "--out", folder, "--overwrite", *QUICK)
    assert result.code == 0, result.err
    assert (folder / "weights.safetensors").read_bytes() != before
    assert not load(folder).config.wide.enabled


def test_a_warning_is_one_line(table: Path, tmp_path: Path) -> None:
    labels = "anger,fear,joy,love,sadness,trust"
    arguments = ["--train", table, "--label-columns", labels, "--labels-column", "labels", *QUICK]
    finished = shell("train", "--encoder", "tiny", *arguments, "--out", tmp_path / "model")
    assert finished.returncode == 0, finished.stderr
    warned = [line for line in finished.stderr.decode().splitlines() if "trust" in line]
    assert warned == ["warning: no training row is labelled trust: the model will not predict it"]
    assert load(tmp_path / "model").labels[-1] == "trust"


def test_an_interruption(table: Path, tmp_path: Path) -> None:
    """Ctrl-C in the middle of training ends with 130, no traceback and no half model."""
    arguments = ["--train", table, "--out", tmp_path / "model", "--set", "training.max_epochs=100000"]
    patient = ["--set", "training.patience=100000", "--set", "head.hidden=8"]
    child = subprocess.Popen(
        command("train", "--encoder", "tiny", *arguments, *patient), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert child.stderr is not None
    seen = b""
    deadline = time.monotonic() + 60
    while b"epoch 2" not in seen and time.monotonic() < deadline:
        seen += child.stderr.readline()
    child.send_signal(signal.SIGINT)
    out, rest = child.communicate(timeout=60)
    assert b"epoch 2" in seen
    assert (child.returncode, out) == (130, b"")
    assert b"Traceback" not in rest
    assert not (tmp_path / "model").exists()
    kept = (
        f"interrupted: the state in {tmp_path / 'model.checkpoint'} is kept, and the same command continues from there"
    )
    assert kept in rest.decode()


@pytest.mark.filterwarnings("ignore:no row that chooses thresholds")
def test_train_by_a_recipe(run: Run, table: Path, held_out: Path, tmp_path: Path) -> None:
    shutil.copy(held_out, table.parent)
    entries = [
        f'[[data.train]]\npath = "{table.name}"\nrows = 48',
        f'[[data.validation]]\npath = "{held_out.name}"\nrows = 16',
    ]
    recipe = write_recipe(tmp_path / "recipe.toml", *entries, "[head]", "hidden = 4")
    out = tmp_path / "model"
    arguments = ["train", "--encoder", "tiny", "--config", recipe, "--out", out, "--set", "training.max_epochs=1"]
    result = run(*arguments, "--root", table.parent)
    assert (result.code, result.out) == (0, f"{out}\n"), result.err
    assert load(out).config.head.hidden == 4
    recorded = json.loads((out / "model.json").read_text(encoding="utf-8"))["training"]["data"]
    assert recorded["training"]["rows"] == 48
    assert recorded["stopping"]["rows"] + recorded["thresholding"]["rows"] == 16


@pytest.mark.filterwarnings("ignore:no row that chooses thresholds")
def test_train_with_a_teacher_and_translations(
    run: Run, model_folder: Path, table: Path, held_out: Path, translations: Path, tmp_path: Path
) -> None:
    out = tmp_path / "student"
    data = ["--train", table, "--validation", held_out, "--parallel", translations]
    arguments = ["train", "--encoder", "tiny", "--teacher", model_folder, *data, "--out", out, *QUICK]
    result = run(*arguments)
    assert (result.code, result.out) == (0, f"{out}\n"), result.err
    recorded = json.loads((out / "model.json").read_text(encoding="utf-8"))["training"]["data"]["training"]
    assert recorded["rows"] > 64  # translations, beside what is labelled
    assert list(tmp_path.glob("student.lessons/*/*.npy"))


@pytest.mark.filterwarnings("ignore:no row that chooses thresholds")
def test_train_on_permissive_data(run: Run, table: Path, dataset: Dataset, tmp_path: Path) -> None:
    write_table(tmp_path / "free.tsv", replace(dataset, texts=tuple(f"free {text}" for text in dataset.texts)))
    shutil.copy(table, tmp_path / "bound.tsv")
    entries = [
        '[[data.train]]\npath = "free.tsv"\npermissive = true\n[[data.train]]\npath = "bound.tsv"',
        "[training]\nmax_epochs = 1\n[training.single_choice]\nbound = 0.5\n[head]\nhidden = 4",
    ]
    recipe = write_recipe(tmp_path / "recipe.toml", *entries)
    arguments = ["train", "--encoder", "tiny", "--root", tmp_path, "--out", tmp_path / "model", "--permissive"]
    result = run(*arguments, "--config", recipe)
    assert result.code == 0, result.err
    data = json.loads((tmp_path / "model" / "model.json").read_text(encoding="utf-8"))["training"]["data"]
    assert sum(part["rows"] for part in data.values()) == 64
    check_error(run(*arguments, "--overwrite", "--train", table), USAGE, "--permissive needs a --config")


def test_a_full_disk_says_how_to_go_on(run: Run, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first checkpoint is written, the second finds no space; with space again, the same command ends well."""
    real, calls = Checkpoint.write, []

    def write(*given: Any) -> None:
        calls.append(given)
        if len(calls) == 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(*given)

    monkeypatch.setattr(Checkpoint, "write", write)
    arguments = ["train", "--encoder", "tiny", "--train", table, "--out", tmp_path / "model", *QUICK]
    result = run(*arguments)
    assert result.code == 1
    assert "the disk is full" in result.err
    assert f"the state in {tmp_path / 'model.checkpoint'} is kept, and the same command continues" in result.err
    again = run(*arguments)
    assert again.code == 0, again.err
    assert "epoch 1" not in again.err
    assert "epoch 2" in again.err


def test_every_step_is_shown(run: Run, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("emoglot.cli.train._PAUSE", 0.0)
    arguments = ["--train", table, "--out", tmp_path / "model", *QUICK, "--set", "training.batch_size=16"]
    shown = run("train", "--encoder", "tiny", *arguments).err.splitlines()
    steps = [line for line in shown if "steps of this epoch" in line]
    count = len(steps) // 2
    assert count > 1
    assert steps == [f"{step} of {count}: steps of this epoch" for step in range(1, count + 1)] * 2
