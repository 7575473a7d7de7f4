"""`emoglot languages`: what the model in the package reads, and how well."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from emoglot.cli import options
from emoglot.cli.output import console, note


def languages(
    model: options.Model = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list.")] = False,
) -> None:
    """List the languages of the model in the package, each with the evidence for it."""
    from emoglot.encoders import EMBEDDED_MODEL
    from emoglot.languages import list_languages

    listed = list_languages(model or EMBEDDED_MODEL)
    if as_json:
        typer.echo(json.dumps([asdict(language) for language in listed], ensure_ascii=False))
        return
    from rich.table import Table

    table = Table("code", "language", "macro-F1", "rows", "κ", "pairs", "")
    for language in listed:
        table.add_row(
            language.code,
            language.name,
            _percent(language.macro_f1),
            str(language.labelled_rows or ""),
            "" if language.agreement is None else f"{language.agreement:.2f}",
            str(language.translated_rows or ""),
            "weak" if language.weak else "",
        )
    console().print(table)
    weak = sum(language.weak for language in listed)
    note(
        f"{len(listed)} languages, {weak} of them weak: expect wrong labels there.\n"
        "macro-F1: how well labels match those of annotators, 0 to 100, on so many rows; nobody names the language\n"
        "κ: how far labels agree with those of the English translation, 0 (chance) to 1 (always), on so many pairs"
    )


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.0f}"
