"""The settings of the service, each with its option, environment variable, default and range in one place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from math import inf
from pathlib import Path
from typing import Any

from emoglot.errors import UsageError
from emoglot.inference.hub import find_model
from emoglot.schema import Checked, ruled, within

PREFIX = "EMOGLOT_"


def _setting(default: Any, help: str, low: float = 0, high: float = inf) -> Any:
    rule = {} if isinstance(default, str | bool) else ruled(within(low, high))
    return field(default=default, metadata={"help": help, **rule})


@dataclass(frozen=True)
class Settings(Checked):
    """All settings; each is an option, `--max-texts 100`, and an environment variable, `EMOGLOT_MAX_TEXTS=100`."""

    model: str = _setting(
        "", "A model folder, or user/model on the Hugging Face hub; the model in the package by default."
    )
    encoder: str = _setting("", "The folder of the model's encoder, if it was moved.")
    host: str = _setting("127.0.0.1", "The address to listen on; 0.0.0.0 accepts other machines.")
    port: int = _setting(8000, "The port to listen on; 0 chooses a free one.", 0, 65535)
    workers: int = _setting(1, "Number of processes, each with its own copy of the model.", 1, 1024)
    tokens: str = _setting("", "Accepted bearer tokens, separated by commas; by default, no token is required.")
    origins: str = _setting("", "Origins whose pages may send requests (CORS), separated by commas.")
    access_log: bool = _setting(False, "Log every request, without its text.")
    log_texts: bool = _setting(False, "Also log the texts of requests.")
    # About 250 tweets of 30 tokens, which two idle cores score in a tenth of a second.
    batch_tokens: int = _setting(8192, "Maximum number of tokens scored together, estimated from the texts.", 1)
    batch_wait: float = _setting(0.003, "Seconds to wait for more texts while several requests wait.", 0, 1)
    max_texts: int = _setting(1000, "Maximum number of texts in a request.", 1)
    max_characters: int = _setting(100_000, "Maximum number of characters in a text.", 1)
    max_body: int = _setting(8 * 2**20, "Maximum size of the body of a request, in bytes.", 1)
    max_headers: int = _setting(32 * 2**10, "Maximum size of the headers of a request, in bytes.", 1024)
    max_queue: int = _setting(5000, "Maximum number of waiting texts; beyond it, requests are answered with 503.", 1)
    max_seconds: float = _setting(
        30.0, "Maximum number of seconds for receiving a request, and for answering it.", 0.01, 86_400
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (self.tokens.isascii() and self.tokens.isprintable()):  # other characters are not allowed in headers
            raise UsageError("tokens must be ASCII characters on one line, got others: choose another token")
        if self.tokens and not self.tokens.strip(" ,"):  # for example from unset variables: no token would be required
            raise UsageError(
                f"tokens must be separated by commas, got no token in {self.tokens!r}: set a token, or leave it empty"
            )
        if self.max_queue < self.max_texts:
            raise UsageError(
                f"max_queue must be at least max_texts, else a full request is never accepted: "
                f"got {self.max_queue} and {self.max_texts}"
            )

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Settings:
        """Return the settings of the environment; the rest have their defaults."""
        given = {
            item.name: _parse(item.name, environment[variable(item.name)], item.default)
            for item in fields(cls)
            if variable(item.name) in environment
        }
        return cls(**given)

    def to_environment(self) -> dict[str, str]:
        """Return all settings as environment variables, for worker processes."""
        return {variable(item.name): str(getattr(self, item.name)) for item in fields(self)}

    @cached_property
    def model_folder(self) -> Path | None:
        """The folder of the model, downloaded if it is on the hub; None for the model in the package."""
        return find_model(self.model) if self.model else None


def variable(name: str) -> str:
    """Return the environment variable of a setting."""
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
