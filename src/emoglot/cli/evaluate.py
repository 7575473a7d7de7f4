"""`emoglot evaluate`: measures a model on labelled data."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from emoglot.cli import options
from emoglot.cli.inputs import read_labelled
from emoglot.cli.output import console, spinner, warn

if TYPE_CHECKING:
    from emoglot.inference.metrics import Evaluation


@options.expanded
def evaluate(
    *,
    chosen: options.ModelOptions,
    data: options.DataFiles,
    domain: Annotated[
        str | None,
        options.option(
            "NAME",
            "Kind of text whose thresholds are used, as in `emoglot thresholds --domain`. Default: the dataset's name.",
        ),
    ] = None,
    as_json: options.AsJson = False,
    reading: options.ReadingOptions,
) -> None:
    """Measure a model on labelled data.

    Prints macro-F1, micro-F1 and Jaccard for each language, and precision, recall and F1 for each label.
    """
    from emoglot.evaluation.evaluate import evaluate_model

    model = chosen.load()
    rows = read_labelled(data, reading, model.labels)
    with spinner(f"scoring {len(rows):,} texts"):
        result = evaluate_model(model, rows, domain)
    if absent := [name for name, metrics in result.overall.per_class.items() if not metrics.support]:
        warn(
            f"no row has {', '.join(absent)}, so they count as absent in all rows; if they were not annotated, "
            "list the annotated labels with --label-columns"
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
