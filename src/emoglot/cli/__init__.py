"""The command line: it parses, calls a plain function and prints; an error is one sentence and an exit code."""

from __future__ import annotations

import io
import sys
import warnings
from typing import Annotated

import typer

from emoglot import __version__
from emoglot.cli import (
    calibrate,
    distill,
    emotions,
    encoders,
    evaluate,
    export,
    languages,
    predict,
    project,
    report,
    reproduce,
    score,
    serve,
    train,
    tune,
)
from emoglot.cli.output import warn
from emoglot.errors import EmoglotError

app = typer.Typer(
    name="emoglot",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("predict")(predict.predict)
app.command("score")(score.score)
app.command("report")(report.report)
app.command("train")(train.train)
app.command("evaluate")(evaluate.evaluate)
app.command("calibrate")(calibrate.calibrate)
app.command("distill")(distill.distill)
app.command("project")(project.project)
app.command("export")(export.export)
app.command("languages")(languages.languages)
app.command("emotions")(emotions.emotions)
app.command("reproduce")(reproduce.reproduce)
app.command("tune")(tune.tune)
app.command("serve")(serve.serve)
app.add_typer(encoders.app, name="encoders")


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True),
    ] = False,
) -> None:
    """Which emotions does a text carry? Train, predict, evaluate."""


def main() -> None:
    """Run a command and turn what went wrong into a message and an exit code; typer sees to Ctrl-C and closed pipes."""
    warnings.showwarning = lambda message, *_, **__: warn(str(message))
    if isinstance(sys.stdout, io.TextIOWrapper):
        # As on standard error: a character that the terminal can't show must not end the command.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        app()
    except EmoglotError as error:
        _fail(str(error), error.exit_code)
    except OSError as error:  # a full disk, a folder that may not be written
        _fail(str(error), EmoglotError.exit_code)


def _fail(message: str, exit_code: int) -> None:
    typer.secho(f"error: {message}", err=True, fg=typer.colors.RED)
    sys.exit(exit_code)
