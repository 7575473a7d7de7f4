"""`emoglot emotions`: what the eleven emotions mean."""

from __future__ import annotations

import json
from dataclasses import asdict

import typer

from emoglot.cli import options
from emoglot.cli.output import console, note


def emotions(as_json: options.AsJson = False) -> None:
    """Explain each emotion, with an example."""
    from emoglot.emotions import EMOTIONS

    if as_json:
        typer.echo(json.dumps([asdict(emotion) for emotion in EMOTIONS], ensure_ascii=False, indent=1))
        return
    from rich.table import Table
    from rich.text import Text

    table = Table("emotion", "what it means", "for example")
    for emotion in EMOTIONS:
        table.add_row(emotion.name, Text(emotion.definition), Text(emotion.examples[0]))
    console().print(table)
    note(
        "https://emoglot.github.io/emoglot/emotions/ has more: near misses, three languages, what a score means, what "
        "not to use it for"
    )
