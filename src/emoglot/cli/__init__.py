"""The command line: each command parses, calls a function and prints; an error is one sentence and an exit code."""

from __future__ import annotations

import io
import os
import signal
import sys
import warnings
from types import FrameType
from typing import Annotated

import typer

from emoglot import __version__
from emoglot.cli import (
    distill,
    doctor,
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
    thresholds,
    train,
    tune,
)
from emoglot.cli.commands import Group, TextsCommand, register
from emoglot.cli.output import is_disk_full, is_refused, warn
from emoglot.errors import DataError, EmoglotError, UsageError

NAME = "emoglot"

app = typer.Typer(
    name=NAME,
    cls=Group,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain text: in rich's tables, 80 columns leave 20 for the help of an option
    context_settings={"help_option_names": ["-h", "--help"]},
)
register(app, "predict", predict.predict, TextsCommand)
register(app, "score", score.score)
register(app, "report", report.report)
register(app, "train", train.train)
register(app, "evaluate", evaluate.evaluate)
register(app, "thresholds", thresholds.thresholds)
register(app, "distill", distill.distill)
register(app, "project", project.project)
register(app, "export", export.export)
register(app, "languages", languages.languages)
register(app, "emotions", emotions.emotions)
register(app, "reproduce", reproduce.reproduce)
register(app, "tune", tune.tune)
register(app, "serve", serve.serve)
app.add_typer(encoders.app, name="encoders")
register(app, "doctor", doctor.doctor)


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
    """Find the emotions in texts.

    Start with: emoglot predict "I can't wait for tomorrow!"
    """


def main() -> None:
    """Run a command; an error ends it with one sentence and an exit code. typer handles Ctrl-C and closed pipes."""
    signal.signal(signal.SIGTERM, _end)
    warnings.showwarning = lambda message, *_, **__: warn(str(message))
    if isinstance(sys.stdout, io.TextIOWrapper):
        # As on standard error: a character that the terminal cannot show must not cause an error.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        app(prog_name=NAME)  # also for `python -m emoglot`: completion needs it
    except EmoglotError as error:
        _fail(str(error), error.exit_code)
    except UnicodeError as error:  # raised by a library for a file in another encoding
        _fail(f"files must be UTF-8, got another encoding ({error}): save the file as UTF-8", DataError.exit_code)
    except OSError as error:  # such as a folder without write permission
        if is_disk_full(error):
            _fail(f"{error}: free some space, then run the command again", EmoglotError.exit_code)
        if is_refused(error):
            place = os.fsdecode(error.filename)
            _fail(
                f"{place} cannot be read or written ({error.strerror}): choose another place, or check its permissions",
                UsageError.exit_code,
            )
        _fail(str(error), EmoglotError.exit_code)


def _end(number: int, frame: FrameType | None) -> None:
    """End the command like an error, so that its temporary folders are removed; a second signal ends it immediately."""
    signal.signal(number, signal.SIG_DFL)
    sys.exit(128 + number)  # the exit code that shells use


def _fail(message: str, exit_code: int) -> None:
    typer.secho(f"error: {message}", err=True, fg=typer.colors.RED)
    sys.exit(exit_code)
