"""The exceptions of emoglot, and the exit code of a command that ends with one.

    EmoglotError                 1   the base class of all others
    ├── UsageError               2   an invalid option or argument
    ├── DataError                3   invalid texts, labels or data files
    ├── EncoderError             4   an unknown, missing or damaged encoder
    │   └── MissingExtraError    4   an optional dependency that is not installed
    ├── ModelError               5   an invalid model folder
    ├── TrainingError            6   a training that cannot succeed
    ├── RejectedRowsError        7   some rows of a file were not scored
    └── WorkerError              8   a worker process that died

Every message states the rule, the value it got and how to fix it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

SHOWN_CHARACTERS = 60  # of a value in a message
LONGEST_REASON = 160  # characters
PACKAGES = {"sklearn": "scikit-learn", "python_calamine": "python-calamine"}  # modules whose package has another name


class EmoglotError(Exception):
    """The base class of all exceptions of emoglot."""

    exit_code = 1


class UsageError(EmoglotError):
    """An invalid option or argument."""

    exit_code = 2


class DataError(EmoglotError):
    """An invalid text, label or data file."""

    exit_code = 3


class EncoderError(EmoglotError):
    """An encoder that is unknown, not installed or damaged."""

    exit_code = 4


class MissingExtraError(EncoderError):
    """An optional dependency that is not installed."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(package, extra, purpose)  # as arguments, so that it can be pickled

    def __str__(self) -> str:
        package, extra, purpose = self.args
        return f"{purpose} needs {package!r}, which is not installed: pip install 'emoglot[{extra}]'"


class ModelError(EmoglotError):
    """A model folder that is incomplete, altered, newer or not of emoglot."""

    exit_code = 5


class TrainingError(EmoglotError):
    """A training that cannot succeed with these data and settings."""

    exit_code = 6


class RejectedRowsError(EmoglotError):
    """Some rows of a file could not be scored; all others were scored."""

    exit_code = 7


class WorkerError(EmoglotError):
    """A worker process died before its work was done."""

    exit_code = 8


@contextmanager
def needs_extra(extra: str, purpose: str) -> Iterator[None]:
    """Raise MissingExtraError if an import in the block fails."""
    try:
        yield
    except ImportError as error:
        module = (error.name or extra).partition(".")[0]
        raise MissingExtraError(PACKAGES.get(module, module), extra, purpose) from error


def reason_of(error: BaseException) -> str:
    """Return the first line of another library's message, truncated."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)[:LONGEST_REASON]


def shown(value: object) -> str:
    """Return a value for a message, truncated to a readable length."""
    text = repr(value)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…"
