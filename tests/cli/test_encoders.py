"""`emoglot encoders`: the list, and what install and export refuse."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from emoglot.encoders.registry import list_encoders
from tests.cli.harness import ENCODER, USAGE, Run, check_error


def test_encoders(run: Run) -> None:
    expected = [asdict(info) for info in list_encoders()]
    assert json.loads(run("encoders", "--json").out) == expected
    shown = run("encoders")
    assert shown.code == 0
    assert all(info["name"] in shown.out for info in expected)


def test_names_and_commands_of_encoders_survive_a_narrow_window(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)  # so that hints name an extra
    shown = run("encoders").out
    assert "…" not in shown
    cells = [line.split("│")[1].strip() for line in shown.splitlines() if line.startswith("│")]
    for info in list_encoders():
        place = cells.index(info.name)
        assert cells[place + 1] == info.hint
    assert "needs pip install 'emoglot[hub]'" in cells


def test_encoders_install_refuses(run: Run, tmp_path: Path) -> None:
    check_error(run("encoders", "install", "xlm-roberta-large"), USAGE, "only e5-small can be installed")
    check_error(run("encoders", "install", "tiny"), USAGE, "got 'tiny'")
    install = ["encoders", "install", "e5-small"]
    check_error(run(*install, "--quantize", "int4"), USAGE, "one of none, int8, got 'int4'")
    source = tmp_path / "some.whl"
    check_error(run(*install, "--from", source), ENCODER, "cannot read", "some.whl")
    source.write_bytes(b"something else")
    check_error(run(*install, "--from", source), ENCODER, "must have 71,622,400 bytes and the sha256")


def test_encoders_export_refuses(run: Run, tmp_path: Path) -> None:
    """An invalid request is refused before the encoder, which is not there, is asked for."""
    export = ["encoders", "export", "nobody/has-this"]
    check_error(run(*export, "--quantize", "int4"), USAGE, "one of none, int8, got 'int4'")
    check_error(run(*export, "--out", tmp_path), USAGE, "already exists")
    check_error(run(*export), ENCODER, "there is no encoder")
    check_error(run("encoders", "export", "tiny"), ENCODER, "already runs without torch")


def test_encoders_export(run: Run, xlmr_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From export, through the cache, to a name that other commands know."""
    monkeypatch.setenv("EMOGLOT_CACHE", str(tmp_path / "cache"))
    result = run("encoders", "export", xlmr_folder, "--quantize", "int8")
    name = f"{xlmr_folder.name}-int8"
    assert (result.code, result.out) == (0, f"{tmp_path / 'cache' / 'encoders' / name}\n")
    assert f"use it as --encoder {name}" in result.err
    listed = {info["name"]: info for info in json.loads(run("encoders", "--json").out)}
    assert listed[name]["installed"]
    check_error(run("encoders", "export", name), ENCODER, "already runs without torch")
    check_error(run("encoders", "export", xlmr_folder, "--quantize", "int8"), USAGE, "already exists")
