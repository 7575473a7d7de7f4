"""`emoglot evaluate`: a model and labelled data in, figures out."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from emoglot.cli import options
from emoglot.cli.output import console, warn

if TYPE_CHECKING:
    from emoglot.metrics import Evaluation


def evaluate(
    data: Annotated[list[Path], typer.Option(help="Labelled data; give it several times to combine files.")],
    model: options.Model = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print all figures as one JSON object.")] = False,
    domain: Annotated[
        str | None, typer.Option(help="Use the thresholds of this domain; by default of the dataset, if there are any.")
    ] = None,
    encoder: options.EncoderOption = None,
    format_: options.Format = None,
    skip_bad: options.SkipBad = False,
    text_column: options.TextColumn = None,
    label_columns: options.LabelColumns = None,
    labels_column: options.LabelsColumn = None,
    language_column: options.LanguageColumn = None,
) -> None:
    """Measure a model: macro-F1, micro-F1 and Jaccard, for each label and language."""
    from emoglot.evaluate import evaluate_model
    from emoglot.model import load

    classifier = load(model, encoder=encoder)
    reading = options.Reading(format_, skip_bad, text_column, label_columns, labels_column, language_column)
    result = evaluate_model(classifier, options.read_labelled(data, reading, classifier.labels_), domain)
    if absent := [name for name, metrics in result.overall.per_class.items() if not metrics.support]:
        warn(
            f"no row has {', '.join(absent)}, which counts as an answer; if nobody looked for them, "
            "name the labels that are annotated with --label-columns"
        )
    if as_json:
        typer.echo(json.dumps(asdict(result)))
    else:
        _print_tables(result)


def _print_tables(result: Evaluation) -> None:
    from rich.table import Table

    languages = Table("language", "rows", "macro-F1", "micro-F1", "Jaccard")
    for name, metrics in {**result.languages, "all": result.overall}.items():
        figures = (metrics.macro_f1, metrics.micro_f1, metrics.jaccard)
        languages.add_row(name, str(metrics.rows), *(f"{100 * figure:.1f}" for figure in figures))
    labels = Table("label", "rows", "precision", "recall", "F1")
    for name, entry in result.overall.per_class.items():
        figures = (entry.precision, entry.recall, entry.f1)
        labels.add_row(name, str(entry.support), *(f"{100 * figure:.1f}" for figure in figures))
    console().print(languages, labels)
