"""`emoglot export`: a whole model as ONNX and JSON, for other programming languages to run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from emoglot.cli import options
from emoglot.cli.output import spinner


@options.expanded
def export(
    chosen: options.ModelOptions,
    out: Annotated[Path, options.option("DIR", "Folder to write.")],
    quantize: options.Quantize = "none",
) -> None:
    """Write a model as ONNX graphs and JSON.

    Other programming languages can run the result: the JSON files describe every step outside of the graphs. --quantize
    applies to models whose encoder comes from the Hugging Face hub.
    """
    from emoglot.inference.export import export_model

    model = chosen.load()
    with spinner("writing the model"):
        folder = export_model(model, out, quantize)
    typer.echo(str(folder))
