"""`emoglot serve`: the model as an HTTP service, with a page."""

from __future__ import annotations

from dataclasses import MISSING, fields
from inspect import Parameter, Signature
from typing import Annotated, Any

import typer

from emoglot.errors import needs_extra
from emoglot.serving.settings import Settings, variable


def serve(**given: Any) -> None:
    """Serve predictions over HTTP.

    A web page is at /. Every option is also an environment variable, such as EMOGLOT_PORT.
    """
    settings = Settings(**given)
    with needs_extra("serve", "the service"):
        import emoglot.serving.app  # noqa: F401 - a missing package is reported here, and not by a worker
        from emoglot.serving.run import run
    run(settings)


def _options() -> list[Parameter]:
    """Return an option for every setting, so that each is defined once."""
    options = []
    for item in fields(Settings):
        assert item.default is not MISSING
        option = typer.Option(help=item.metadata["help"], envvar=variable(item.name))
        kind: Any = Annotated[type(item.default), option]
        options.append(Parameter(item.name, Parameter.KEYWORD_ONLY, default=item.default, annotation=kind))
    return options


serve.__signature__ = Signature(_options())  # type: ignore[attr-defined]
