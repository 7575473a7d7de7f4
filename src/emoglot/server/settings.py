"""The settings of the service, each said once: its option, its environment variable, its default and its range."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from emoglot.errors import UsageError

PREFIX = "EMOGLOT_"


def _setting(default: Any, help: str, low: float = 0, high: float = float("inf")) -> Any:
    return field(default=default, metadata={"help": help, "low": low, "high": high})


@dataclass(frozen=True)
class Settings:
    """Everything that can be set, as `--max-texts 100` or `EMOGLOT_MAX_TEXTS=100`."""

    model: str = _setting("", "A model folder; by default the model in the package.")
    encoder: str = _setting("", "Where the model's encoder is now, if it moved.")
    host: str = _setting("127.0.0.1", "The address to listen on; 0.0.0.0 lets other machines in.")
    port: int = _setting(8000, "The port to listen on; 0 takes a free one.", 0, 65535)
    workers: int = _setting(1, "Processes, each with a model of its own.", 1, 1024)
    tokens: str = _setting("", "Bearer tokens, comma separated; without any, everybody may ask.")
    origins: str = _setting("", "Origins whose pages may ask (CORS), comma separated.")
    access_log: bool = _setting(False, "Write a line for every request; never with its text.")
    log_texts: bool = _setting(False, "Write the texts to the log, too.")
    # A tweet has about 30 tokens, so a batch is some 250 tweets: a tenth of a second of work on two cores.
    batch_tokens: int = _setting(8192, "Tokens scored together, unless one text has more.", 1)
    batch_wait: float = _setting(0.003, "Seconds to wait for more texts while there is a crowd.", 0, 1)
    max_texts: int = _setting(1000, "Texts in one request.", 1)
    max_characters: int = _setting(100_000, "Characters in one text.", 1)
    max_body: int = _setting(8 * 2**20, "Bytes in the body of a request.", 1)
    max_headers: int = _setting(32 * 2**10, "Bytes in the headers of a request.", 1024)
    max_queue: int = _setting(5000, "Texts waiting; when there are more, the answer is 503.", 1)
    max_seconds: float = _setting(30.0, "Seconds for receiving a request, and again for answering it.", 0.01, 86_400)

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            low, high = item.metadata["low"], item.metadata["high"]
            is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if is_number and not low <= value <= high:
                raise UsageError(f"{item.name} must be in [{low:g}, {high:g}], got {value}")
        if not (self.tokens.isascii() and self.tokens.isprintable()):  # headers know no others
            raise UsageError("tokens are made of ASCII characters on one line, got others")
        if self.max_queue < self.max_texts:
            raise UsageError(
                f"max_queue must be at least max_texts, or a full request would never fit: "
                f"got {self.max_queue} and {self.max_texts}"
            )

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Settings:
        """Read the variables that are there; the rest have their defaults."""
        given = {
            item.name: _parse(item.name, environment[variable(item.name)], item.default)
            for item in fields(cls)
            if variable(item.name) in environment
        }
        return cls(**given)

    def to_environment(self) -> dict[str, str]:
        """Write all of them, for worker processes to read."""
        return {variable(item.name): str(getattr(self, item.name)) for item in fields(self)}

    @property
    def model_folder(self) -> Path | None:
        """The folder of the model, or none for the one in the package."""
        return Path(self.model) if self.model else None


def variable(name: str) -> str:
    """Name the environment variable of a setting."""
    return PREFIX + name.upper()


def _parse(name: str, text: str, default: Any) -> Any:
    if isinstance(default, bool):
        if text.lower() not in ("0", "1", "false", "true"):
            raise UsageError(f"{variable(name)} must be true or false, got {text!r}")
        return text.lower() in ("1", "true")
    try:
        return type(default)(text)
    except ValueError as error:
        raise UsageError(f"{variable(name)} must be of type {type(default).__name__}, got {text!r}") from error
