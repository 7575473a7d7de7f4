"""`emoglot report`: summarises a scored file as an HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from emoglot.cli import options
from emoglot.cli.output import explained_output, note, progress_bar


def report(
    source: Annotated[Path, typer.Argument(metavar="SCORED", help="File that `emoglot score` wrote.")],
    out: Annotated[Path, options.option("FILE", "HTML file to write.")],
    time: Annotated[
        str | None, options.option("NAME", "Column with dates or times, to show changes over time.")
    ] = None,
    date_format: Annotated[
        str | None,
        options.option("FORMAT", "Format of the dates, such as '%d/%m/%Y %H:%M'. Default: recognised."),
    ] = None,
    group: Annotated[str | None, options.option("NAME", "Column with the groups to compare, such as a source.")] = None,
    cluster: Annotated[
        str | None,
        options.option("NAME", "Column whose rows are not independent, such as the author; widens the intervals."),
    ] = None,
    text_column: Annotated[
        str | None, options.option("NAME", "Column with the text. Default: found by its name.")
    ] = None,
    language_column: Annotated[
        str | None, options.option("NAME", "Column with the language. Default: language, if it exists.")
    ] = None,
    no_texts: Annotated[bool, options.flag("--no-texts", "Leave out all texts and words.")] = False,
    prefix: Annotated[
        str | None, options.option("TEXT", "The --prefix given to `emoglot score`. Default: recognised.")
    ] = None,
    title: Annotated[str | None, options.option("TEXT", "Title of the page.")] = None,
    overwrite: Annotated[bool, options.flag("--overwrite", "Replace the HTML file if it exists.")] = False,
    model: Annotated[
        Path | None,
        options.option("NAME", "The --model given to `emoglot score`. Default: the model in the package."),
    ] = None,
) -> None:
    """Summarise a scored file as an HTML page.

    The page has the share of each emotion with its confidence interval, changes over time, differences between groups,
    typical words and examples.
    """
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
        date_format=date_format,
    )
    with explained_output(out), progress_bar("texts") as on_texts:
        made = write_report(source, out, chosen, overwrite=overwrite, on_texts=on_texts)
    left_out = made.summary.rows.total - made.summary.rows.readable
    note(f"{out}: {made.summary.rows.readable} texts, {left_out} rows left out")
