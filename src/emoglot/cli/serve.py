"""`emoglot serve`: the model behind HTTP, with a page."""

from __future__ import annotations

from dataclasses import MISSING, fields
from inspect import Parameter, Signature
from typing import Annotated, Any

import typer

from emoglot.errors import MissingExtraError
from emoglot.server.settings import Settings, variable


def serve(**given: Any) -> None:
    """Answer over HTTP, and show a page at /; every option is also an environment variable, such as EMOGLOT_PORT."""
    settings = Settings(**given)
    try:
        import emoglot.server.app  # noqa: F401 - what is missing is told here, and not by a worker
        from emoglot.server.run import run
    except ImportError as missing:
        raise MissingExtraError(missing.name or "fastapi", "serve", "the service") from missing
    run(settings)


def _options() -> list[Parameter]:
    """Make an option of every setting, so that each is said once."""
    options = []
    for item in fields(Settings):
        assert item.default is not MISSING
        option = typer.Option(help=item.metadata["help"], envvar=variable(item.name))
        kind: Any = Annotated[type(item.default), option]
        options.append(Parameter(item.name, Parameter.KEYWORD_ONLY, default=item.default, annotation=kind))
    return options


serve.__signature__ = Signature(_options())  # type: ignore[attr-defined]
