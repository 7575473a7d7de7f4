"""Everything that emoglot raises on purpose, and the exit code each ends a command with.

    EmoglotError                 1   anything below; catch this to catch them all
    ├── UsageError               2   an option or argument that can't be meant
    ├── DataError                3   a file or a label that breaks a rule
    ├── EncoderError             4   an encoder that is unknown, missing or broken
    │   └── MissingExtraError    4   an optional dependency that is not installed
    ├── ModelError               5   a model folder that can't be read or trusted
    ├── TrainingError            6   training data from which nothing can be learnt
    ├── RejectedRowsError        7   all is done, but for some rows of a file
    └── WorkerError              8   a worker process that died

Every message states the rule, the value it got and the way out.
"""

from __future__ import annotations


class EmoglotError(Exception):
    """The root of the tree: one clear sentence for the user."""

    exit_code = 1


class UsageError(EmoglotError):
    """An option or argument that can't be meant."""

    exit_code = 2


class DataError(EmoglotError):
    """A text, a label or a data file that breaks a rule."""

    exit_code = 3


class EncoderError(EmoglotError):
    """An encoder that is unknown, not installed or broken."""

    exit_code = 4


class MissingExtraError(EncoderError):
    """An optional dependency that is not installed."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(package, extra, purpose)  # from which another process can make it again

    def __str__(self) -> str:
        package, extra, purpose = self.args
        return f"{purpose} needs {package!r}, which is not installed: pip install 'emoglot[{extra}]'"


class ModelError(EmoglotError):
    """A model folder that is truncated, foreign, newer or altered."""

    exit_code = 5


class TrainingError(EmoglotError):
    """Training data from which nothing can be learnt."""

    exit_code = 6


class RejectedRowsError(EmoglotError):
    """Some rows of a file could not be scored; all others were."""

    exit_code = 7


class WorkerError(EmoglotError):
    """A worker process died, and what it was doing is not done."""

    exit_code = 8
