"""The report of an experiment: its numbers as a Markdown table and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emoglot.evaluation.metrics import evaluate
from emoglot.inference.metrics import Metrics
from emoglot.labels import Targets
from emoglot.research.experiments.bootstrap import Difference, Trial, paired_bootstrap
from emoglot.research.experiments.cell import TEST, VALIDATION, Bench, Cell, Outcome, measured_rows
from emoglot.research.experiments.experiment import CHOSEN, USUAL, Column, Experiment, Row, Training

CUT_NAMES = {CHOSEN: "our thresholds", USUAL: "cut at 0.5"}


@dataclass(frozen=True)
class Measured:
    """The results of a row in a column for every seed."""

    metrics: Mapping[str, tuple[Metrics, ...]]  # by cut, one for each seed
    seconds: float
    difference: Difference | None = None  # from the row `against` of the experiment

    def values(self, cut: str, figure: str) -> NDArray[np.float64]:
        """Return one figure of all seeds, in percent."""
        return np.array([100 * getattr(metrics, figure) for metrics in self.metrics[cut]])


@dataclass(frozen=True)
class Results:
    """The results of an experiment, and the rows that could not be run."""

    experiment: Experiment
    part: str  # validation, or test where there is one
    seeds: int
    cells: Mapping[tuple[str, str], Measured]  # by the names of row and column
    missing: Mapping[str, str]  # by row: why it could not be run
    facts: Mapping[str, Any]  # data, encoder, version


def evaluate_cells(
    experiment: Experiment,
    bench: Bench,
    outcomes: Mapping[Cell, Outcome],
    missing: Mapping[Training, str],
    seeds: int,
    facts: Mapping[str, Any],
) -> Results:
    """Evaluate the decisions of all cells of an experiment."""
    part = TEST if bench.corpus.test else VALIDATION
    measurer = _Measurer(bench, outcomes, part, seeds)
    own = next((row for row in experiment.rows if row.name == experiment.against), None)
    cells = {
        (row.name, column.name): found
        for row in experiment.rows
        for column in experiment.columns
        if (found := measurer.measure(row, column, experiment.cuts, own))
    }
    lacking = {
        row.name: missing[training]
        for row in experiment.rows
        for column in experiment.columns
        if (training := row.training(column)) and training in missing
    }
    return Results(experiment, part, seeds, cells, lacking, facts)


class _Measurer:
    """Evaluates decisions."""

    def __init__(self, bench: Bench, outcomes: Mapping[Cell, Outcome], part: str, seeds: int) -> None:
        self._outcomes, self._part, self._seeds = outcomes, part, range(seeds)
        corpus = bench.corpus
        self._data = {
            seed: corpus.test or corpus.validation.select(measured_rows(corpus, seed)) for seed in self._seeds
        }

    def measure(self, row: Row, column: Column, cuts: Sequence[str], against: Row | None) -> Measured | None:
        ours = self._all_seeds(row.training(column))
        if not ours:
            return None
        metrics = {cut: tuple(self._evaluate(outcome, column, cut) for outcome in ours) for cut in cuts}
        difference = None
        theirs = self._all_seeds(against.training(column)) if against and against.name != row.name else []
        if theirs:
            difference = paired_bootstrap(
                [self._trial(our, their, column) for our, their in zip(ours, theirs, strict=True)]
            )
        return Measured(metrics, sum(outcome.seconds for outcome in ours), difference)

    def _all_seeds(self, training: Training | None) -> list[Outcome]:
        """Return the outcomes of a training for all seeds, or nothing if one is missing."""
        found = [self._outcomes.get(Cell(training, seed)) for seed in self._seeds] if training else []
        return [] if None in found else [outcome for outcome in found if outcome]

    def _gold(self, seed: int, column: Column) -> tuple[NDArray[np.int64], Targets]:
        """Return the indices of the column's rows among the evaluation rows, and their targets."""
        data = self._data[seed]
        places = np.flatnonzero([code in column.languages for code in data.languages])
        return places, data.targets[places]

    def _evaluate(self, outcome: Outcome, column: Column, cut: str) -> Metrics:
        places, gold = self._gold(outcome.cell.seed, column)
        return evaluate(gold, outcome.decisions[self._part][cut][places], self._data[outcome.cell.seed].labels)

    def _trial(self, ours: Outcome, theirs: Outcome, column: Column) -> Trial:
        places, gold = self._gold(ours.cell.seed, column)
        decisions = [outcome.decisions[self._part][CHOSEN][places] for outcome in (ours, theirs)]
        return Trial(gold == 1, *decisions)


def to_json(report: Results) -> dict[str, Any]:
    """Return all numbers, with settings, seeds and fingerprints."""
    experiment = report.experiment
    rows = []
    for row in experiment.rows:
        columns = {}
        for column in experiment.columns:
            found = report.cells.get((row.name, column.name))
            columns[column.name] = {"paper": list(row.paper.get(column.name, ()))} | (_numbers(found) if found else {})
        rows.append(
            {"name": row.name, "method": row.method, "settings": dict(row.settings), "trained on": list(row.train)}
            | ({"not run": report.missing[row.name]} if row.name in report.missing else {})
            | {"columns": columns}
        )
    return {
        "experiment": experiment.name,
        "title": experiment.title,
        "measured on": report.part,
        "seeds": list(range(report.seeds)),
        **report.facts,
        "rows": rows,
    }


def _numbers(measured: Measured) -> dict[str, Any]:
    return {
        "cuts": {cut: [asdict(metrics) for metrics in seeds] for cut, seeds in measured.metrics.items()},
        "seconds": measured.seconds,
        "difference": asdict(measured.difference) if measured.difference else None,
    }


def to_markdown(report: Results) -> str:
    """Return the table, with the paper's figures next to ours."""
    experiment = report.experiment
    if not experiment.rows:  # counts only, no training
        return f"# {experiment.title}\n\n{experiment.note}\n"
    has_difference = any(measured.difference for measured in report.cells.values())
    header = ["method"]
    for column in experiment.columns:
        header += [f"{column.name}: paper", "ours", *(["difference"] if has_difference else [])]
    lines = [header, ["---"] * len(header)]
    for row in experiment.rows:
        for cut in experiment.cuts if row.method != "quoted" else (CHOSEN,):
            lines.append(_line(report, row, cut, has_difference))
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    about = [f"# {experiment.title}", " / ".join(_FIGURE_NAMES[name] for name in experiment.figures) + ", in percent."]
    about += [experiment.note] if experiment.note else []
    about += [_how_measured(report), table]
    about += [_class_table(report)] if experiment.plot == "classes" else []
    about += [f"{name}: not run, {reason}" for name, reason in report.missing.items()]
    return "\n\n".join(about) + "\n"


def _class_table(report: Results) -> str:
    """Return a table of the F1 of each label."""
    lines = []
    for (name, column), measured in report.cells.items():
        seeds = measured.metrics[CHOSEN]
        found = {
            label: np.array([100 * metrics.per_class[label].f1 for metrics in seeds]) for label in seeds[0].per_class
        }
        lines += [f"| label | {name}, {column} |", "| --- | --- |"]
        lines += [f"| {label} | {_number(values)} |" for label, values in found.items()]
    return "\n".join(lines)


_FIGURE_NAMES = {"macro_f1": "macro-F1", "micro_f1": "micro-F1", "jaccard": "Jaccard"}


def _how_measured(report: Results) -> str:
    where = (
        "the test files"
        if report.part == TEST
        else "the validation rows that choose no threshold; they choose the epoch, so figures are slightly optimistic"
    )
    seeds = f"mean ± standard deviation of {report.seeds} seeds" if report.seeds > 1 else "one seed"
    text = f"Ours: {seeds}, measured on {where}. Encoder: `{report.facts['encoder']['name']}`."
    if any(measured.difference for measured in report.cells.values()):
        text += (
            f" Difference: to `{report.experiment.against}`, with the middle 95 % of a paired bootstrap over rows; "
            "where that contains 0, the difference may be chance."
        )
    return text


def _line(report: Results, row: Row, cut: str, has_difference: bool) -> list[str]:
    name = row.name + (f", {CUT_NAMES[cut]}" if len(report.experiment.cuts) > 1 and row.method != "quoted" else "")
    cells = [f"{name} (quoted)" if row.method == "quoted" else name]
    for column in report.experiment.columns:
        paper = " / ".join(f"{value:.1f}" for value in row.paper.get(column.name, ()))
        found = report.cells.get((row.name, column.name))
        ours = " / ".join(_number(found.values(cut, figure)) for figure in report.experiment.figures) if found else ""
        cells += [(paper if cut == CHOSEN else "") or "–", ours or "–"]
        if has_difference:
            cells.append(_difference(found.difference) if found and found.difference else "–")
    return cells


def _number(values: NDArray[np.float64]) -> str:
    spread = f" ± {values.std(ddof=1):.1f}" if len(values) > 1 else ""
    return f"{values.mean():.1f}{spread}"


def _difference(difference: Difference) -> str:
    return f"{100 * difference.mean:+.1f} ({100 * difference.low:+.1f} to {100 * difference.high:+.1f})"
