"""What commands share: progress, what is kept after Ctrl-C and on a full disk, and errors of the system."""

from __future__ import annotations

import errno
import io
import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
import rich.console
import rich.progress  # before the console is replaced

from emoglot.cli import output
from emoglot.cli.output import explained_output, kept_when_interrupted, progress_bars, spinner
from emoglot.errors import EmoglotError, UsageError
from tests.cli.harness import DATA, USAGE, Run, check_error, command

FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@dataclass
class Screen:
    """A terminal on standard error that keeps what is drawn."""

    drawn: io.StringIO

    def text(self) -> str:
        return self.drawn.getvalue()


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Screen:
    drawn = io.StringIO()
    real = rich.console.Console
    monkeypatch.setattr(
        "rich.console.Console", lambda **given: real(file=drawn, force_terminal=True, width=100, color_system=None)
    )
    return Screen(drawn)


def test_ctrl_c_says_what_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyboardInterrupt), kept_when_interrupted("every epoch"):
        raise KeyboardInterrupt
    assert capsys.readouterr().err == "interrupted: every epoch is kept, and the same command continues from there\n"
    with pytest.raises(KeyboardInterrupt), kept_when_interrupted("every epoch", lambda: False):
        raise KeyboardInterrupt
    assert capsys.readouterr().err == "interrupted before its state was saved: the same command starts again\n"


def test_ctrl_c_names_the_option_that_continues(run: Run, model_folder: Path, tmp_path: Path) -> None:
    """A real interrupt while the second window is scored; the command that the message names ends the job."""
    with (tmp_path / "in.csv").open("w", encoding="utf-8") as file:
        file.writelines(["text\n", *(f"so happy {row} {'x' * 300}\n" for row in range(40_000))])
    arguments = ["score", "--model", model_folder, "--jobs", 1, tmp_path / "in.csv", tmp_path / "out.csv"]
    child = subprocess.Popen(command(*arguments), stderr=subprocess.PIPE)
    while child.poll() is None and not list(tmp_path.glob("out.csv.parts/*-*-*")):
        time.sleep(0.01)
    child.send_signal(signal.SIGINT)
    told = child.communicate()[1].decode()
    assert "out.csv.parts, is kept, and the same command with --resume continues from there" in told
    check_error(run(*arguments), USAGE, "continue it with --resume")
    assert run(*arguments, "--resume").code == 0


@pytest.mark.parametrize(
    "error", [FULL, OSError("x cannot be written: No space left on device (os error 28)")], ids=str
)
def test_a_full_disk_says_what_is_kept(error: OSError) -> None:
    with (
        pytest.raises(EmoglotError, match=r"the disk is full .*: free some space; every epoch is kept, and the same"),
        kept_when_interrupted("every epoch"),
    ):
        raise error


def test_other_errors_of_the_system_stay_as_they_are() -> None:
    with pytest.raises(PermissionError), kept_when_interrupted("every epoch"):
        raise PermissionError(errno.EACCES, "Permission denied")


@pytest.mark.parametrize("name", ["score", "report"])
def test_an_output_that_can_not_be_written(name: str, run: Run, model_folder: Path, tmp_path: Path) -> None:
    """The name is so long that no file beside it can be created, whoever the user is."""
    long = "x" * 251
    (tmp_path / "in.csv").write_text("text\nso happy\n", encoding="utf-8")
    if name == "score":
        result = run("score", "--model", model_folder, tmp_path / "in.csv", tmp_path / f"{long}.csv")
    else:
        pytest.importorskip("polars")
        run("score", "--model", model_folder, tmp_path / "in.csv", tmp_path / "scored.csv")
        result = run(
            "report", "--model", model_folder, tmp_path / "scored.csv", "--out", tmp_path / f"{long[:-1]}.html"
        )
    check_error(result, USAGE, "cannot be written (File name too long)", "choose another name or folder")


def test_only_errors_of_the_output_are_explained(tmp_path: Path) -> None:
    target = tmp_path / "out.csv"
    for path, kind in ((f"{target}.parts", UsageError), (tmp_path, UsageError), (tmp_path / "in.csv", OSError)):
        with pytest.raises(kind), explained_output(target):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))


def test_a_full_disk_anywhere_else(run: Run, model_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise FULL

    monkeypatch.setattr("emoglot.cli.predict._print_json", fail)
    result = run("predict", "--model", model_folder, "--json", "so happy")
    check_error(result, 1, "No space left on device", "free some space")


def test_a_library_that_can_not_decode_a_file(run: Run, model_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        b"\xff".decode()

    monkeypatch.setattr("emoglot.cli.predict._print_json", fail)
    result = run("predict", "--model", model_folder, "--json", "so happy")
    check_error(result, DATA, "must be UTF-8", "save the file as UTF-8")


def test_a_bar_begins_again_with_every_epoch(screen: Screen) -> None:
    with progress_bars() as update:
        for epoch in (1, 2):
            for step in range(1, 4):
                update("training", step, 4, f"steps of epoch {epoch}")
                time.sleep(0.15)
            update("training", 4, 4)
    assert "steps of epoch 1" in screen.text()
    assert "steps of epoch 2" in screen.text()
    assert "training" in screen.text()


def test_without_a_terminal_news_are_lines_with_pauses(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bars() as update:
        update("training", 1, 4, "steps of epoch 1")
        update("training", 1, 4, "steps of epoch 1")
        update("training", 2, 4)
    assert capsys.readouterr().err == "1 of 4: steps of epoch 1\n"
    with progress_bars(pause=60) as update:
        update("training", 1, 4, "steps of epoch 1")
    assert capsys.readouterr().err == ""


def test_a_spinner_shows_what_takes_long(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "_PATIENCE", 0.05)
    with spinner("scoring 9 texts"):
        time.sleep(0.5)
    assert "scoring 9 texts" in screen.text()


def test_a_spinner_does_not_flash_by(screen: Screen) -> None:
    with spinner("scoring 9 texts"):
        pass
    assert "scoring" not in screen.text()
