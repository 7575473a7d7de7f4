"""`emoglot calibrate`: a model and labelled data in, a model with thresholds that fit the data out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from emoglot.cli import options
from emoglot.cli.output import note
from emoglot.errors import UsageError


def calibrate(
    out: Annotated[Path, typer.Option(help="The model folder to write.")],
    data: Annotated[list[Path] | None, typer.Option(help="Labelled data; give it several times.")] = None,
    model: options.Model = None,
    recipe: Annotated[Path | None, typer.Option(help="A TOML file that lists data in tables data.calibration.")] = None,
    root: Annotated[Path, typer.Option(help="Where the files that the recipe names are.")] = Path(),
    pooled: Annotated[bool, typer.Option(help="Choose the thresholds for any text, not those of languages.")] = False,
    domain: Annotated[
        str | None,
        typer.Option(help="Choose thresholds for texts like these alone: those of the language en-x-DOMAIN."),
    ] = None,
    least_precision: Annotated[
        float, typer.Option(min=0, max=1, help="Give a label only where it is right this often, such as 0.33.")
    ] = 0.0,
    encoder: options.EncoderOption = None,
    format_: options.Format = None,
    skip_bad: options.SkipBad = False,
    text_column: options.TextColumn = None,
    label_columns: options.LabelColumns = None,
    labels_column: options.LabelsColumn = None,
    language_column: options.LanguageColumn = None,
) -> None:
    """Fit a model's thresholds to your own data, without training; languages not in it keep theirs."""
    from emoglot.calibrate import calibrate as choose
    from emoglot.data.dataset import NO_LANGUAGE
    from emoglot.model import load
    from emoglot.persist import check_target
    from emoglot.recipe import Recipe

    options.check_new(out)
    check_target(out)
    classifier = load(model, encoder=encoder)
    reading = options.Reading(format_, skip_bad, text_column, label_columns, labels_column, language_column)
    if data:
        rows = options.read_labelled(data, reading, classifier.labels_)
    else:
        found = options.read_recipe(Recipe.from_toml(recipe), "calibration", root) if recipe else None
        if found is None:
            raise UsageError("no data: give --data, or a --recipe that lists some as [[data.calibration]]")
        rows = found
    choose(classifier, rows, pooled=pooled, domain=domain, least_precision=least_precision).save(out)
    languages = {NO_LANGUAGE} if pooled else set(rows.languages)
    names = ", ".join("any language" if code == NO_LANGUAGE else code for code in sorted(languages))
    note(f"thresholds for {names}{f' of {domain}' if domain else ''}, chosen on {len(rows):,} rows")
    typer.echo(str(out))
