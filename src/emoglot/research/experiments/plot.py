"""Plots of experiments in the style of the paper's figures, as PNG and SVG."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from emoglot.errors import needs_extra
from emoglot.research.experiments.corpus import Corpus
from emoglot.research.experiments.experiment import CHOSEN, Column, Row
from emoglot.research.experiments.report import Results

with needs_extra("reproduce", "drawing plots"):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

SUFFIXES = (".png", ".svg")
_PAPER: dict[str, Any] = {"color": "black", "marker": "_", "linestyle": "none", "label": "paper"}
_SYMBOLS = {"dynamic": "κ", "class-balanced": "β"}


def draw(report: Results, corpus: Corpus, path: Path) -> None:
    """Draw the plot of an experiment and write it to `path` with both suffixes."""
    shapes = {"bars": _bars, "groups": _groups, "curves": _curves, "classes": _classes}
    plot = report.experiment.plot
    figure = _rank(report, corpus) if plot == "rank" else shapes[plot](report)
    figure.suptitle(report.experiment.title)
    figure.tight_layout()
    for suffix in SUFFIXES:
        # No date in the file, so that the bytes are reproducible.
        metadata = {"Date": None} if suffix == ".svg" else None
        figure.savefig(path.with_name(path.name + suffix), dpi=120, metadata=metadata)
    pyplot.close(figure)


def _mean_and_spread(report: Results, row: Row, column: Column) -> tuple[float, float]:
    found = report.cells.get((row.name, column.name))
    if found is None:
        return np.nan, 0.0
    values = found.values(CHOSEN, report.experiment.figures[0])
    return float(values.mean()), float(values.std(ddof=1)) if len(values) > 1 else 0.0


def _bars(report: Results) -> Any:
    """Draw one horizontal bar per row."""
    rows, column = report.experiment.rows, report.experiment.columns[0]
    figure, axes = pyplot.subplots(figsize=(7, 0.5 * len(rows) + 1.5))
    numbers = [_mean_and_spread(report, row, column) for row in rows]
    axes.barh([row.name for row in rows], [mean for mean, _ in numbers], xerr=[spread for _, spread in numbers])
    quoted = [(row.paper[column.name][0], place) for place, row in enumerate(rows) if column.name in row.paper]
    if quoted:
        axes.plot(*zip(*quoted, strict=True), **_PAPER | {"marker": "|", "markersize": 14})
        axes.legend(loc="lower right")  # next to the last row, usually the worst
    axes.invert_yaxis()
    axes.set_xlabel("macro-F1")
    axes.set_xlim(left=max(0, np.nanmin([mean for mean, _ in numbers]) - 10))
    return figure


def _groups(report: Results) -> Any:
    """Draw a group of bars per column, a bar per row that was run, and the paper's figure as a dash."""
    columns = report.experiment.columns
    rows = [row for row in report.experiment.rows if row.method != "quoted"]
    figure, axes = pyplot.subplots(figsize=(10, 5))
    width = 0.85 / len(rows)
    for number, row in enumerate(rows):
        places = np.arange(len(columns)) + (number - (len(rows) - 1) / 2) * width
        numbers = [_mean_and_spread(report, row, column) for column in columns]
        means, spreads = zip(*numbers, strict=True)
        axes.bar(places, means, 0.9 * width, yerr=spreads if any(spreads) else None, label=row.name)
        quoted = [row.paper.get(column.name, (np.nan,))[0] for column in columns]
        style = _PAPER | {"markersize": 300 * width / len(columns), "label": None}
        axes.plot(places, quoted, **style)
    if any(row.paper for row in rows):
        axes.plot([], [], **_PAPER)
    axes.set_xticks(range(len(columns)), [column.name for column in columns])
    axes.set_ylabel("macro-F1")
    axes.legend(fontsize=8, ncols=4, loc="upper center", bbox_to_anchor=(0.5, -0.08))  # below the bars
    return figure


def _curves(report: Results) -> Any:
    """Draw a panel per column: a curve per swept setting, and level lines for the other rows."""
    columns, rows = report.experiment.columns, report.experiment.rows
    figure, panels = pyplot.subplots(1, len(columns), figsize=(6 * len(columns), 4.5), squeeze=False)
    curves = list(dict.fromkeys(row.curve for row in rows if row.curve))
    levels = [row for row in rows if row.curve is None and row.name not in curves]
    for axes, column in zip(panels[0], columns, strict=True):
        for number, curve in enumerate(curves):
            points = [(row.at, *_mean_and_spread(report, row, column)) for row in rows if row.curve == curve]
            x, y, spread = zip(*points, strict=True)
            # The first curve uses the lower axis; others, whose values may be close to 1, the steps of an upper one.
            own, places = (axes.twiny(), range(len(x))) if number else (axes, x)
            own.errorbar(places, y, spread if any(spread) else None, marker="o", capsize=2, color=f"C{number}")
            own.set_xticks(places, [f"{value:g}" for value in x])
            own.set_xlabel(f"{_SYMBOLS.get(curve, curve)} of {curve} weighting", color=f"C{number}")
        for number, row in enumerate(levels, start=len(curves)):
            mean, _ = _mean_and_spread(report, row, column)
            axes.axhline(mean, linestyle="--", color=f"C{number}", label=row.name)
        axes.set_title(column.name)
        axes.set_ylabel("macro-F1")
        axes.legend(fontsize=8)
    return figure


def _classes(report: Results) -> Any:
    """Draw one bar per label."""
    row, column = report.experiment.rows[0], report.experiment.columns[0]
    figure, axes = pyplot.subplots(figsize=(9, 4.5))
    found = report.cells.get((row.name, column.name))
    if found:
        seeds = [{name: 100 * each.f1 for name, each in metrics.per_class.items()} for metrics in found.metrics[CHOSEN]]
        values = np.array([[seed[name] for name in seeds[0]] for seed in seeds])
        spreads = values.std(axis=0, ddof=1) if len(seeds) > 1 else None
        axes.bar(
            list(seeds[0]), values.mean(axis=0), yerr=spreads, color=[f"C{place}" for place in range(len(seeds[0]))]
        )
    axes.set_ylabel("F1")
    axes.tick_params(axis="x", rotation=45)
    return figure


def _rank(report: Results, corpus: Corpus) -> Any:
    """Draw a line per language: the frequencies of its labels in descending order."""
    figure, axes = pyplot.subplots(figsize=(7, 4.5))
    for column in report.experiment.columns:
        counts = label_counts(corpus, column)
        ordered = sorted(counts.values(), reverse=True)
        axes.plot(range(1, len(ordered) + 1), ordered, marker="o", label=column.name)
    axes.set_xlabel("rank of the label")
    axes.set_ylabel("texts with the label")
    axes.set_yscale("log")
    axes.legend()
    return figure


def label_counts(corpus: Corpus, column: Column) -> dict[str, int]:
    """Return the number of training texts of a column's languages with each label."""
    rows = np.flatnonzero([code in column.languages for code in corpus.training.languages])
    counts = (corpus.training.targets[rows] == 1).sum(axis=0)
    return dict(zip(corpus.training.labels, counts.tolist(), strict=True))
