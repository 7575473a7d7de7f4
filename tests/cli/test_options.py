"""Options that are declared once, as the fields of a dataclass."""

from __future__ import annotations

from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from emoglot.cli import evaluate, options, train, tune
from emoglot.cli.thresholds import thresholds

READING = ("format", "skip_bad", "text_column", "label_columns", "labels_column", "language_column")


@dataclass(frozen=True)
class Size:
    """A group with one option that must be given."""

    width: Annotated[int, typer.Option(help="Width.")]
    depth: Annotated[int, typer.Option(help="Depth.")] = 3


def test_a_dataclass_is_a_group_of_options() -> None:
    got: list[object] = []

    @options.expanded
    def measure(
        name: Annotated[str, typer.Argument()], size: Size, root: Annotated[Path, typer.Option()] = Path()
    ) -> None:
        """Measure."""
        got.extend([name, size, root])

    app = typer.Typer()
    app.command()(measure)
    assert CliRunner().invoke(app, ["box", "--width", "2", "--root", "x"]).exit_code == 0
    assert got == ["box", Size(2, 3), Path("x")]
    assert CliRunner().invoke(app, ["box"]).exit_code == 2  # without --width


@pytest.mark.parametrize("command", [train.train, tune.tune, evaluate.evaluate, thresholds])
def test_commands_that_read_labelled_files_take_the_same_options(command: object) -> None:
    assert set(READING) <= set(signature(command).parameters)  # type: ignore[arg-type]


def test_reading_becomes_the_arguments_of_read() -> None:
    assert options.ReadingOptions(label_columns="joy, fear").arguments() == {
        "format": None,
        "skip_bad": False,
        "text_column": None,
        "label_columns": ["joy", "fear"],
        "labels_column": None,
        "language_column": None,
        "encoding": None,
        "delimiter": None,
    }
