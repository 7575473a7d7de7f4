"""What commands share when they print."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import TaskID

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
    with progress_bars() as update:
        yield lambda done, total: update(description, done, total)


@contextmanager
def progress_bars(pause: float = 0.0) -> Iterator[Callable[..., None]]:
    """Give a function `update(name, done, total, news)` that shows bars on standard error, each until it is full.

    Where there is no terminal, it prints a line with the news whenever more is done, but not before `pause` seconds.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[news]}"),
    )
    terminal = Console(stderr=True)
    with Progress(*columns, console=terminal, transient=True, disable=not terminal.is_terminal) as bars:
        tasks: dict[str, TaskID] = {}
        reached: dict[str, int] = {}
        told = time.monotonic()

        def update(name: str, done: int, total: int, news: str = "") -> None:
            nonlocal told
            if name not in tasks:
                tasks[name] = bars.add_task(name, news="")
            bars.update(tasks[name], completed=done, total=total, visible=done < total, news=news)
            is_news = news and done > reached.get(name, 0) and time.monotonic() - told >= pause
            if is_news and not terminal.is_terminal:
                note(f"{done} of {total}: {news}")
                told = time.monotonic()
            reached[name] = done

        yield update


@contextmanager
def kept_when_interrupted(what: str) -> Iterator[None]:
    """After Ctrl-C, say what is not lost and how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        note(f"interrupted: {what} is kept, and the same command goes on from there")
        raise
