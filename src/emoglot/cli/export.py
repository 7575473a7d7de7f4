"""`emoglot export`: a whole model as ONNX and JSON, for other languages to run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from emoglot.cli import options


def export(
    out: Annotated[Path, typer.Option(help="The folder to write.")],
    model: options.Model = None,
    encoder: options.EncoderOption = None,
    quantize: Annotated[str, typer.Option(help="none or int8, for an encoder of the hub.")] = "none",
) -> None:
    """Write a model as ONNX graphs, with every other step described in JSON."""
    from emoglot.export import export_model
    from emoglot.model import load

    typer.echo(str(export_model(load(model, encoder=encoder), out, quantize)))
