"""What commands share when they print."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from emoglot.data.lines import BadLine
    from emoglot.features import Progress

# How many dropped lines are shown one by one; the rest are counted.
_SHOWN_BAD_LINES = 5


def warn(message: str) -> None:
    """Print a warning where it does not mix with results."""
    typer.secho(f"warning: {message}", err=True, fg=typer.colors.YELLOW)


def warn_of_bad_lines(bad_lines: Sequence[BadLine], kept: int) -> None:
    """Say how many lines were dropped, and show the first."""
    if not bad_lines:
        return
    warn(f"dropped {len(bad_lines)} malformed lines of {kept + len(bad_lines)}:")
    for bad in bad_lines[:_SHOWN_BAD_LINES]:
        warn(f"  {bad}")


def note(message: str) -> None:
    """Print a remark where it does not mix with results."""
    typer.echo(message, err=True)


def console() -> Console:
    """Make a console for tables on standard output."""
    from rich.console import Console

    return Console()


@contextmanager
def progress_bar(description: str) -> Iterator[Progress]:
    """Show a bar on standard error while the block runs; gone when done."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    terminal = Console(stderr=True)
    with Progress(*columns, console=terminal, transient=True, disable=not terminal.is_terminal) as bar:
        task = bar.add_task(description, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
