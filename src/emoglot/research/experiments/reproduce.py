"""Reproduces experiments: runs their cells and writes the table, plot and numbers of each to a folder.

OUT/
├── run.json           fingerprints of data, normalisation and encoder
├── cells/KEY.json     the decisions of one training; never run twice
└── NAME.md .json .png .svg   an experiment
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from emoglot._version import __version__
from emoglot.encoders.features import Progress, extract_features
from emoglot.errors import UsageError
from emoglot.files import write_whole
from emoglot.research.experiments.cell import Bench, read_outcome
from emoglot.research.experiments.experiment import Experiment, Training
from emoglot.research.experiments.plot import draw, label_counts
from emoglot.research.experiments.report import evaluate_cells, to_json, to_markdown
from emoglot.research.experiments.runner import Done, EpochNews, Place, plan, run_cells
from emoglot.text.normalise import normalise_text

RUN_FILE = "run.json"
CELLS = "cells"


def reproduce(
    experiments: Sequence[Experiment],
    data: Path,
    encoder: str,
    out: Path,
    features: Path,
    *,
    seeds: int = 1,
    jobs: int = 1,
    on_features: Progress | None = None,
    on_cell: Callable[[Done, int, int], None] = lambda done, count, total: None,
    on_news: Callable[[EpochNews], None] = lambda news: None,
) -> list[Path]:
    """Run the remaining cells, write all reports, and return the paths of their tables."""
    _check_names(experiments)
    place = Place(data, encoder, features, out / CELLS)
    bench = place.bench()
    _claim(out, bench)
    _encode(bench, on_features)
    trainings = [training for experiment in experiments for training in experiment.trainings()]
    cells = plan(bench, trainings, seeds, place.cells)
    total = len(set(cells.values()))  # equivalent rows share a file
    missing: dict[Training, str] = {}
    for count, done in enumerate(run_cells(place, cells, jobs, on_news), start=1):
        if done.missing:
            missing[done.cell.training] = done.missing
        on_cell(done, count, total)
    width = len(bench.corpus.validation.labels)
    outcomes = {cell: read_outcome(path, cell, width) for cell, path in cells.items() if path.exists()}
    facts = {"emoglot": __version__, **bench.facts()}
    tables = []
    for experiment in experiments:
        report = evaluate_cells(experiment, bench, outcomes, missing, seeds, facts)
        numbers = to_json(report)
        text = to_markdown(report)
        if not experiment.rows:
            counts = {column.name: label_counts(bench.corpus, column) for column in experiment.columns}
            numbers["counts"] = counts
            text += _counts_table(counts)
        draw(report, bench.corpus, out / experiment.name)
        write_whole(out / f"{experiment.name}.json", json.dumps(numbers, indent=1, ensure_ascii=False))
        write_whole(out / f"{experiment.name}.md", text)
        tables.append(out / f"{experiment.name}.md")
    return tables


def _check_names(experiments: Sequence[Experiment]) -> None:
    """Raise UsageError if experiments would overwrite each other or `run.json`."""
    taken = {Path(RUN_FILE).stem}
    for experiment in experiments:
        if experiment.name in taken:
            raise UsageError(f"the name {experiment.name!r} is already used: rename the file of the experiment")
        taken.add(experiment.name)


def _claim(out: Path, bench: Bench) -> None:
    """Raise UsageError if the folder has cells of other data or another encoder, or other files."""
    mine = bench.facts()
    path = out / RUN_FILE
    if path.exists():
        try:
            theirs = dict(json.loads(path.read_text(encoding="utf-8")))
        except (ValueError, TypeError) as error:
            raise UsageError(f"{path} is damaged: {error}; choose another --out") from error
        if theirs != mine:
            changed = [name for name, value in mine.items() if theirs.get(name) != value]
            raise UsageError(f"{out} contains results with another {' and '.join(changed)}: choose another --out")
    elif out.exists() and any(out.iterdir()):
        raise UsageError(
            f"--out must be a new folder or a folder of experiments, {out} is neither: choose another --out"
        )
    (out / CELLS).mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps(mine))


def _encode(bench: Bench, on_features: Progress | None) -> None:
    """Fill the feature cache before workers start, which would all encode the same texts."""
    corpus = bench.corpus
    parts = [part for part in (corpus.training, corpus.validation, corpus.test) if part]
    texts = [normalise_text(text) for part in parts for text in part.texts]
    extract_features(bench.encoder, texts, bench.cache, on_features)


def _counts_table(counts: dict[str, dict[str, int]]) -> str:
    labels = list(next(iter(counts.values())))
    lines: list[list[Any]] = [["label", *counts], ["---"] * (len(counts) + 1)]
    lines += [[label, *(column[label] for column in counts.values())] for label in labels]
    return "\n" + "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines) + "\n"
