"""`emoglot project`: translations in, labelled texts out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from emoglot.cli import options
from emoglot.cli.output import note, warn_of_bad_lines


def project(
    parallel: Annotated[list[Path], typer.Option(help="Translations, LANGUAGE.tsv; or a folder of them.")],
    out: Annotated[Path, typer.Option(help="The CSV file to write.")],
    model: options.Model = None,
    per_language: Annotated[int, typer.Option(min=2, help="At most so many texts of each language.")] = 2000,
    english: Annotated[int, typer.Option(min=0, help="Label so many of the English texts themselves too.")] = 0,
    encoder: options.EncoderOption = None,
    skip_bad: options.SkipBad = False,
) -> None:
    """Label translations by what a model finds in their English, to train on languages without labels."""
    from emoglot.model import load
    from emoglot.parallel import read_parallel
    from emoglot.project import project as label
    from emoglot.project import write_csv

    options.check_new(out)
    pairs = read_parallel(parallel, skip_bad=skip_bad)
    warn_of_bad_lines(pairs.bad_lines, len(pairs))
    training, _ = pairs.split()  # the rest is for measuring, and stays unseen
    data = label(load(model, encoder=encoder), training, per_language, english)
    write_csv(data, out)
    note(f"{len(data):,} texts in {len(set(data.languages))} languages")
    typer.echo(str(out))
