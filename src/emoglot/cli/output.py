"""How commands print: results on standard output; messages, warnings and progress on standard error."""

from __future__ import annotations

import errno
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import typer

from emoglot.errors import EmoglotError, UsageError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import TaskID

    from emoglot.data.lines import BadLine
    from emoglot.encoders.features import Progress
    from emoglot.model import Model

# Number of dropped lines that are shown; the rest are only counted.
_SHOWN_BAD_LINES = 5
# A spinner for a shorter wait would only flicker.
_PATIENCE = 2.0
CLOSED_PIPE = 141  # the exit code of a command that SIGPIPE ends, as after `| head -1`
_FULL = (errno.ENOSPC, errno.EDQUOT)
_REFUSED = (
    errno.EROFS, errno.EACCES, errno.EPERM, errno.ENAMETOOLONG, errno.ENOENT, errno.ENOTDIR, errno.EEXIST
)  # fmt: skip


def warn(message: str) -> None:
    """Print a warning on standard error."""
    typer.secho(f"warning: {message}", err=True, fg=typer.colors.YELLOW)


def warn_of_bad_lines(bad_lines: Sequence[BadLine], kept: int) -> None:
    """Print how many lines were dropped, and the first of them."""
    if not bad_lines:
        return
    warn(f"dropped {len(bad_lines)} malformed lines of {kept + len(bad_lines)}:")
    for bad in bad_lines[:_SHOWN_BAD_LINES]:
        warn(f"  {bad}")


def note(message: str) -> None:
    """Print a message on standard error."""
    typer.echo(message, err=True)


def note_never_given(model: Model, precision: float | None, recall: float | None) -> None:
    """Print the labels that do not reach the requested precision or recall at any threshold."""
    if precision is None and recall is None:
        return
    if never := model.strictness.never_given(model.labels, precision, recall):
        wanted = f"a precision of {precision:g}" if recall is None else f"a recall of {recall:g}"
        note(f"never predicted, because no threshold reached {wanted} on validation data: {', '.join(never)}")


class _Printed(logging.Handler):
    """Prints messages of the library to standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print a message."""
        (warn if record.levelno >= logging.WARNING else note)(record.getMessage())


def show_messages() -> None:
    """Print what the library logs while it works, such as what it recognised in a file."""
    logger = logging.getLogger("emoglot")
    if not any(isinstance(handler, _Printed) for handler in logger.handlers):
        logger.addHandler(_Printed())
        logger.setLevel(logging.INFO)


def console() -> Console:
    """Return a console for tables on standard output."""
    from rich.console import Console

    class Closable(Console):
        def on_broken_pipe(self) -> None:
            _end_closed()

    return Closable()


@contextmanager
def closable_output() -> Iterator[None]:
    """End the command quietly, with the exit code of SIGPIPE, if the reader of standard output has gone."""
    try:
        yield
    except BrokenPipeError:
        _end_closed()


def _end_closed() -> NoReturn:
    # What is still buffered has no reader either: Python must not fail when it writes that at the end.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(CLOSED_PIPE)


def ask(question: str) -> bool:
    """Ask a question in a terminal; without one, return False."""
    is_terminal = all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))
    return is_terminal and typer.confirm(question, err=True)


@contextmanager
def progress_bar(description: str) -> Iterator[Progress]:
    """Show a progress bar on standard error while the block runs, and yield the function that updates it."""
    with progress_bars() as update:
        yield lambda done, total: update(description, done, total)


@contextmanager
def progress_bars(pause: float = 0.0) -> Iterator[Callable[..., None]]:
    """Yield a function `update(name, done, total, news)` that shows bars on standard error, each until it is full.

    Without a terminal, it prints a line with the news whenever more is done, at most one every `pause` seconds.
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
        printed = time.monotonic()

        def update(name: str, done: int, total: int, news: str = "") -> None:
            nonlocal printed
            if name not in tasks:
                tasks[name] = bars.add_task(name, news="")
            if done < reached.get(name, 0):  # it starts again, as in every epoch
                bars.reset(tasks[name])
                reached[name] = 0
            bars.update(tasks[name], completed=done, total=total, visible=done < total, news=news)
            is_news = news and done > reached.get(name, 0) and time.monotonic() - printed >= pause
            if is_news and not terminal.is_terminal:
                note(f"{done} of {total}: {news}")
                printed = time.monotonic()
            reached[name] = done

        yield update


@contextmanager
def spinner(description: str) -> Iterator[None]:
    """Show a spinner with the elapsed time once the block has run for two seconds; only in a terminal."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    terminal = Console(stderr=True)
    if not terminal.is_terminal:
        yield
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    progress = Progress(*columns, console=terminal, transient=True)
    progress.add_task(description, total=None)
    timer = threading.Timer(_PATIENCE, progress.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        progress.stop()


@contextmanager
def kept_when_interrupted(
    what: str, is_kept: Callable[[], bool] = lambda: True, command: str = "the same command"
) -> Iterator[None]:
    """Print, after Ctrl-C or on a full disk, what is kept and which command continues from it."""
    try:
        yield
    except KeyboardInterrupt:
        if is_kept():
            note(f"interrupted: {what} is kept, and {command} continues from there")
        else:
            note("interrupted before its state was saved: the same command starts again")
        raise
    except OSError as error:
        if not is_disk_full(error):
            raise
        way_out = f"{what} is kept, and {command} continues from there" if is_kept() else "run the command again"
        raise EmoglotError(f"the disk is full ({error}): free some space; {way_out}") from error


@contextmanager
def explained_output(target: Path) -> Iterator[None]:
    """Raise UsageError if the output, or a file beside it with its name, cannot be written."""
    try:
        yield
    except OSError as error:
        named = Path(os.fsdecode(error.filename)) if isinstance(error.filename, (str, bytes, Path)) else None
        is_ours = named is not None and (str(named).startswith(str(target)) or named in target.parents)
        if error.errno not in _REFUSED or not is_ours:
            raise
        raise UsageError(
            f"the output must be in a folder where files can be created, {target} cannot be written "
            f"({error.strerror}): choose another name or folder, or check its permissions"
        ) from error


def is_refused(error: OSError) -> bool:
    """Return whether an error means that a file or folder of the user cannot be opened or created."""
    return error.errno in _REFUSED and isinstance(error.filename, (str, bytes))


def is_disk_full(error: OSError) -> bool:
    """Return whether an error means that a disk or a disk quota is full."""
    # If another library wrote the file, only its message is available.
    return error.errno in _FULL or "No space left on device" in str(error)
