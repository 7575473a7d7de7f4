"""`emoglot project`: labels translations by their English texts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from emoglot.cli import options
from emoglot.cli.inputs import read_translations
from emoglot.cli.output import note, spinner


@options.expanded
def project(
    chosen: options.ModelOptions,
    parallel: options.Translations,
    out: Annotated[Path, options.option("FILE", "CSV file to write.")],
    per_language: Annotated[
        int, options.option("N", "Maximum number of texts per language, half of them with an emotion.", min=2)
    ] = 2000,
    english: Annotated[int, options.option("N", "Maximum number of English texts to add.", min=0)] = 0,
    skip_bad: options.SkipBad = False,
) -> None:
    """Label translations by their English, as training data.

    A model scores the English text. A label of the translation is present from a score of 0.5, absent below 0.15, and
    unknown otherwise. Use the result to train a model for languages without labelled data.
    """
    from emoglot.training.project import project as label
    from emoglot.training.project import write_csv

    options.check_new(out)
    pairs = read_translations(parallel, skip_bad=skip_bad)
    training, _ = pairs.split()  # the rest is held out for evaluation
    model = chosen.load()
    with spinner("scoring the English texts"):
        data = label(model, training, per_language, english)
    write_csv(data, out)
    note(f"{len(data):,} texts in {len(set(data.languages))} languages")
    typer.echo(str(out))
