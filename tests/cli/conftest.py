"""Fixtures of the tests of commands: a way to run one, a table of labelled texts, and translations."""

from __future__ import annotations

import io
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import pytest

from emoglot.cli import main
from emoglot.data.dataset import Dataset
from tests.cli.harness import Result, Run, write_table


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command in this process, through the very function that the installed script calls."""
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)  # which a command changes

    def run_main(*arguments: object, stdin: bytes = b"") -> Result:
        monkeypatch.setattr(sys, "argv", ["emoglot", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capsys.readouterr()
        try:
            main()
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
        return Result(code, *capsys.readouterr())

    return run_main


@pytest.fixture(scope="session")
def table(dataset: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_table(tmp_path_factory.mktemp("data") / "ours.tsv", dataset)


@pytest.fixture
def held_out(dataset: Dataset, tmp_path: Path) -> Path:
    return write_table(
        tmp_path / "held_out.tsv", replace(dataset, texts=tuple(f"well {text}" for text in dataset.texts))
    )


@pytest.fixture
def translations(tmp_path: Path, dataset: Dataset) -> Path:
    """Our English sentences, and the same in letters of another script."""
    folder = tmp_path / "translations"
    folder.mkdir()
    english = [text for text, code in zip(dataset.texts, dataset.languages, strict=True) if code == "en"]
    georgian = {letter: chr(0x10D0 + number) for number, letter in enumerate("abcdefghijklmnopqrstuvwxyz")}
    lines = [f"{text}\t{''.join(georgian.get(letter, letter) for letter in text.lower())}" for text in english]
    (folder / "xg.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder
