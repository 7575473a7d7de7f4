"""`emoglot languages`: the languages of a model with their measured quality."""

from __future__ import annotations

import json
from dataclasses import asdict

import typer

from emoglot.cli import options
from emoglot.cli.output import console, note


def languages(model: options.ModelName = None, as_json: options.AsJson = False) -> None:
    """List the languages of a model with their measured quality.

    Quality is macro-F1 on labelled texts, or the agreement (κ) between the labels of translations and those of their
    English. Weak languages are marked.
    """
    from emoglot.encoders.registry import BUNDLED_MODEL
    from emoglot.evaluation.evidence import list_languages
    from emoglot.inference.hub import find_model

    listed = list_languages(find_model(model or BUNDLED_MODEL))
    if as_json:
        typer.echo(json.dumps([asdict(language) for language in listed], ensure_ascii=False))
        return
    from rich.table import Table

    table = Table("code", "language", "macro-F1", "rows", "κ", "pairs", "")
    for language in listed:
        table.add_row(
            language.code,
            language.name,
            "" if language.macro_f1 is None else f"{100 * language.macro_f1:.0f}",
            str(language.labelled_rows or ""),
            "" if language.agreement is None else f"{language.agreement:.2f}",
            str(language.translated_rows or ""),
            "weak" if language.weak else "",
        )
    console().print(table)
    weak = sum(language.weak for language in listed)
    note(
        f"{len(listed)} languages, {weak} of them weak: expect wrong labels there.\n"
        "macro-F1: agreement with annotators, 0 to 100, on this number of labelled rows; the language was not given\n"
        "κ: agreement with the labels of the English translation, 0 (chance) to 1, on this number of pairs"
    )
