"""`emoglot doctor`: prints information for bug reports, and how to fix what is broken."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from emoglot.cli import options
from emoglot.cli.output import console, note, spinner

if TYPE_CHECKING:
    from emoglot.doctor import Finding


def doctor(model: options.ModelName = None, as_json: options.AsJson = False) -> None:
    """Check the installation and print information for bug reports.

    Lists versions, extras, encoders, caches, threads, telemetry and a test prediction, with the time of each check.
    Nothing is sent anywhere. The exit code is 0 if everything works, else 1.
    """
    from emoglot.doctor import OK, examine, is_healthy

    with spinner("examining"):
        findings = examine(model)
    healthy = is_healthy(findings)
    if as_json:
        content = {"healthy": healthy, "findings": [asdict(finding) for finding in findings]}
        typer.echo(json.dumps(content, ensure_ascii=False, indent=1))
    else:
        _print_table(findings)
        for finding in findings:
            if finding.status != OK:
                note(f"{finding.name}: {finding.found}" + (f"\n  {finding.advice}" if finding.advice else ""))
        note("everything works" if healthy else "something is broken: see above")
    if not healthy:
        raise typer.Exit(1)


def _print_table(findings: list[Finding]) -> None:
    from rich.box import SIMPLE
    from rich.table import Column, Table
    from rich.text import Text

    headings = (
        Column("checked", no_wrap=True),
        Column("found", overflow="fold"),
        Column("seconds", justify="right", no_wrap=True),
        Column("status", no_wrap=True),
    )
    table = Table(*headings, box=SIMPLE)
    for finding in findings:
        # As Text, since rich would interpret "[hub]" as markup.
        table.add_row(finding.name, Text(finding.found), f"{finding.seconds:.2f}", finding.status)
    console().print(table)
