"""`emoglot report`: a scored file in, one page of HTML out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from emoglot.cli import options
from emoglot.cli.output import note, progress_bar


def report(
    source: Annotated[Path, typer.Argument(metavar="SCORED", help="A file that `emoglot score` wrote.")],
    out: Annotated[Path, typer.Option(help="The HTML file to write.")],
    time: Annotated[str | None, typer.Option(help="The column with dates or times.")] = None,
    group: Annotated[str | None, typer.Option(help="The column to compare by, such as a source or a party.")] = None,
    cluster: Annotated[
        str | None, typer.Option(help="The column of what makes texts depend on one another, such as the author.")
    ] = None,
    text_column: Annotated[str, typer.Option(help="The column with the text.")] = "text",
    language_column: Annotated[
        str | None, typer.Option(help="The column with the language; by default `language`, if there is one.")
    ] = None,
    no_texts: Annotated[bool, typer.Option("--no-texts", help="Show no texts and no words from them.")] = False,
    prefix: Annotated[
        str | None, typer.Option(help="The --prefix given to `emoglot score`; found if left out.")
    ] = None,
    title: Annotated[str | None, typer.Option(help="The title of the page.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the HTML file if it exists.")] = False,
    model: options.Model = None,
) -> None:
    """Sum up a scored file in one page: shares with intervals, over time, by group, words, examples."""
    from emoglot.report.options import Options
    from emoglot.report.write import write_report

    chosen = Options(
        text=text_column,
        time=time,
        group=group,
        cluster=cluster,
        language=language_column,
        prefix=prefix,
        with_texts=not no_texts,
        title=title,
        model=model,
    )
    with progress_bar("texts") as on_texts:
        made = write_report(source, out, chosen, overwrite=overwrite, on_texts=on_texts)
    left_out = made.summary.rows.total - made.summary.rows.readable
    note(f"{out}: {made.summary.rows.readable} texts, {left_out} rows left out")
