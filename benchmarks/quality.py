"""Measures the quality of the model in the package, in one table.

    python -m benchmarks.quality --data DIR [--model FOLDER] [--json FILE]

Rows that choose a threshold are never measured with it: each group of rows (a language of E-c or BRIGHTER, or a
dataset) is split in two, and each half is measured with thresholds chosen on the other half or, for "any text", on all
other groups. Plain sentences and translations, which choose no thresholds, get the labels that `predict` gives them.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import emoglot
from benchmarks.calibration import expected_calibration_error
from emoglot.data.dataset import Dataset, concatenate
from emoglot.data.parallel import read_parallel
from emoglot.data.registry import read
from emoglot.data.split import stratified_split
from emoglot.evaluation.language_thresholds import own_weights, steady_thresholds, towards, weights_alike
from emoglot.evaluation.metrics import cohen_kappa, evaluate
from emoglot.inference.folder import LEAST_PRECISION, RECOGNISED_SHARE
from emoglot.inference.thresholds import apply_thresholds
from emoglot.labels import SEMEVAL_LABELS, UNKNOWN
from emoglot.model import Model
from recipes.sentences import TESTED, annotated, posts
from tests.plain_sentences import is_right

TESTS = Path(__file__).parents[1] / "tests"
STABILITY = Path(__file__).with_name("stability.tsv")
ROWS_EACH = 200  # of a dataset of the collection
FLORES_ROWS = 200  # of a language
ANNOTATED_ROWS = 300  # of a language, in which there must be LEAST_ANNOTATED
LEAST_ANNOTATED = 50


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    model = emoglot.load(arguments.model)
    found = Scores(model)
    tweets, brighter, collection, pooled = read_groups(found, arguments.data)
    results: dict[str, object] = {}
    results |= dict(measure_own("E-c", tweets, pooled))
    results |= dict(measure_means("BRIGHTER", brighter, pooled))
    results |= dict(measure_means("collection", collection, pooled))
    thresholds = given_thresholds(pooled)
    results["thresholds"] = dict(zip(SEMEVAL_LABELS, np.round(thresholds, 3).tolist(), strict=True))
    results |= dict(measure_calibration(pooled))
    for name in TESTED:
        results |= dict(measure_sentences(found, name))
    results |= dict(measure_annotated(found, arguments.data))
    results |= dict(measure_posts(found, arguments.data))
    results |= dict(measure_flips(found))
    results |= dict(measure_agreement(found, arguments.data))
    for name, value in results.items():
        print(f"{name}: {value}")
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def read_groups(found: Scores, data: Path) -> tuple[list[Group], list[Group], list[Group], list[Group]]:
    """Read the dev sets of E-c, BRIGHTER and the collection, and list those that choose thresholds for any text."""
    tweets = found.read("ec", sorted((data / "semeval2018-ec").glob("*dev.txt")), None)
    brighter = found.read("brighter", sorted((data / "brighter/dev").glob("*.csv")), None)
    collection = found.read("", sorted((data / "labelled").glob("*.tsv.gz")), "collection-dev")
    # If annotators chose only one label, others may be right as well: such rows choose no thresholds.
    kinds = {row["name"]: row["kind"] for row in table(data / "labelled/INDEX.tsv")}
    multi = [group for group in collection if kinds[group.name.partition("-")[0]] == "multi"]
    return tweets, brighter, collection, [*tweets, *brighter, *multi]


class Group:
    """Rows that share annotators, with their scores."""

    def __init__(self, name: str, data: Dataset, scores: NDArray[np.float32]) -> None:
        self.name, self.scores, self.language = name, scores, data.languages[0]
        self.targets = data.with_labels(SEMEVAL_LABELS).targets
        self.labels = [index for index in range(len(SEMEVAL_LABELS)) if 1 in self.targets[:, index]]

    def halves(self) -> Iterable[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Yield rows that choose thresholds and rows that are measured, twice."""
        first, second = stratified_split(self.targets, 0.5, 0)
        return (first, second), (second, first)

    def figures(self, thresholds: NDArray[np.float64], rows: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return macro-F1, micro-F1 and Jaccard over the annotated labels."""
        chosen = apply_thresholds(self.scores[rows], thresholds)[:, self.labels]
        found = evaluate(self.targets[rows][:, self.labels], chosen, [SEMEVAL_LABELS[index] for index in self.labels])
        return 100 * np.array([found.macro_f1, found.micro_f1, found.jaccard])


class Scores:
    """A model, and its scores for the eleven emotions."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._columns = [model.labels.index(label) for label in SEMEVAL_LABELS]

    def of(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self._model.predict_proba(texts)[:, self._columns]

    def labels_of(self, texts: Sequence[str]) -> NDArray[np.bool_]:
        """Return the labels that `predict` gives by default, as an indicator array."""
        return self._model.choose(self._model.analyse(texts))[:, self._columns]

    def read(self, name: str, paths: Sequence[Path], format_name: str | None) -> list[Group]:
        """Read files, and group their rows by dataset and language."""
        data = concatenate(read(path, format=format_name) for path in paths)
        groups = np.array(
            [f"{name} {code}" if name else s for s, code in zip(data.sources, data.languages, strict=True)]
        )
        order = np.random.default_rng(0).permutation(len(data))  # some files are sorted by label
        most = None if name else ROWS_EACH
        wanted = {group: order[groups[order] == group][:most] for group in np.unique(groups).tolist()}
        chosen = data.select(np.concatenate(list(wanted.values())))
        scores = self.of(chosen.texts)
        ends = np.cumsum([len(rows) for rows in wanted.values()])
        parts = zip(wanted, np.split(np.arange(len(chosen)), ends[:-1]), strict=True)
        found = [Group(group, chosen.select(rows), scores[rows]) for group, rows in parts]
        return [group for group in found if group.labels]


def measure_own(title: str, groups: Sequence[Group], pooled: Sequence[Group]) -> Iterable[tuple[str, object]]:
    """Measure each group with its own thresholds."""
    for group in groups:
        halves, _ = choose(group, pooled)
        figures = [group.figures(thresholds, rows) for thresholds, rows in halves]
        yield f"{title} {group.name}", rounded(np.mean(figures, axis=0))


def measure_means(title: str, groups: Sequence[Group], pooled: Sequence[Group]) -> Iterable[tuple[str, object]]:
    """Measure the mean macro-F1 of groups with their own thresholds, as recognised languages, and as any text."""
    own, anyhow, recognised = {}, {}, {}
    for group in groups:
        halves, given = choose(group, pooled)
        own[group.name] = np.mean([group.figures(thresholds, rows)[0] for thresholds, rows in halves])
        means = [(RECOGNISED_SHARE * thresholds + (1 - RECOGNISED_SHARE) * given, rows) for thresholds, rows in halves]
        recognised[group.name] = np.mean([group.figures(thresholds, rows)[0] for thresholds, rows in means])
        anyhow[group.name] = group.figures(given, np.arange(len(group.targets)))[0]
    yield f"{title}, own thresholds", rounded(np.mean(list(own.values())))
    yield f"{title}, language recognised", rounded(np.mean(list(recognised.values())))
    yield f"{title}, thresholds for any text", rounded(np.mean(list(anyhow.values())))
    yield (
        f"{title} by group",
        {name: [rounded(own[name]), rounded(recognised[name]), rounded(anyhow[name])] for name in own},
    )


def choose(
    group: Group, pooled: Sequence[Group]
) -> tuple[list[tuple[NDArray[np.float64], NDArray[np.intp]]], NDArray[np.float64]]:
    """Choose thresholds as `emoglot thresholds` does for a language, on either half of a group.

    Returns them with the rows of the other half, and the thresholds for any text that all other groups choose.
    """
    others = [other for other in pooled if other is not group]
    anyhow = given_thresholds(others)
    halves = []
    for rows, measured in group.halves():
        scores = np.concatenate([group.scores[rows], *(other.scores for other in others)])
        targets = np.concatenate([group.targets[rows], *(other.targets for other in others)])
        found = steady_thresholds(scores, targets, own_weights(np.arange(len(scores)) < len(rows)))
        halves.append((towards(found, anyhow, len(rows)), measured))
    return halves, anyhow


def given_thresholds(groups: Sequence[Group]) -> NDArray[np.float64]:
    """Choose thresholds for any text, as `emoglot thresholds --pooled` does."""
    scores = np.concatenate([group.scores for group in groups])
    targets = np.concatenate([group.targets for group in groups])
    weights = weights_alike([group.name for group in groups for _ in group.targets])
    return steady_thresholds(scores, targets, weights, LEAST_PRECISION)


def measure_calibration(groups: Sequence[Group]) -> Iterable[tuple[str, object]]:
    scores = np.concatenate([group.scores for group in groups])
    targets = np.concatenate([group.targets for group in groups])
    errors = {}
    for index, label in enumerate(SEMEVAL_LABELS):
        known = targets[:, index] != UNKNOWN
        errors[label] = round(
            float(expected_calibration_error(scores[known][:, [index]], targets[known][:, [index]])), 3
        )
    yield "calibration error", errors


def measure_sentences(found: Scores, name: str) -> Iterable[tuple[str, object]]:
    """Measure a list of sentences like the tests, and list the errors."""
    rows = table(TESTS / name)
    chosen = found.labels_of([row["text"] for row in rows])
    right: dict[str, list[bool]] = {}
    wrong = []
    for row, given_row in zip(rows, chosen, strict=True):
        given = {label for label, is_given in zip(SEMEVAL_LABELS, given_row, strict=True) if is_given}
        answer = is_right(row["kind"], set(row["labels"].split()), given)
        right.setdefault(row["kind"], []).append(answer)
        if not answer:
            wrong.append(
                f"{row['language']} {row['kind']} {row['labels']} got {' '.join(sorted(given))}: {row['text']}"
            )
    yield name, {kind: f"{sum(answers)} of {len(answers)}" for kind, answers in right.items()}
    yield f"{name}, wrong", "\n  " + "\n  ".join(wrong)


def measure_annotated(found: Scores, data: Path) -> Iterable[tuple[str, object]]:
    """Measure annotated sentences that were not trained on, and their translations, which have the same labels."""
    parallel, _ = read_parallel([data / "parallel/train", data / "parallel/more"], skip_bad=True).split()
    pairs, english_targets = annotated(parallel, "measured")
    targets_by_text = dict(zip(pairs.english, english_targets, strict=True))
    pairs = pairs.draw(ANNOTATED_ROWS)
    targets = np.array([targets_by_text[text] for text in pairs.english], dtype=np.int8)[:, : len(SEMEVAL_LABELS)]
    languages, chosen = np.array(pairs.languages), found.labels_of(pairs.texts)
    figures: dict[str, float] = {}
    for code in np.unique(languages).tolist():
        rows = np.flatnonzero(languages == code)
        if len(rows) >= LEAST_ANNOTATED:
            figures[code] = 100 * evaluate(targets[pairs.english_of[rows]], chosen[rows], SEMEVAL_LABELS).micro_f1
    yield from measure_labels("annotated, English", targets, found.labels_of(pairs.english))
    yield from measure_labels("annotated, translations", targets[pairs.english_of], chosen)
    yield f"annotated, mean micro-F1 of {len(figures)} languages", rounded(np.mean(list(figures.values())))
    yield "annotated, micro-F1 by language", {code: rounded(value) for code, value in figures.items()}


def measure_posts(found: Scores, data: Path) -> Iterable[tuple[str, object]]:
    """Measure annotated posts in their own languages; their annotations were not trained on."""
    _, texts, targets = zip(*posts(data, "measured"), strict=True)
    known = np.array(targets, dtype=np.int8)[:, : len(SEMEVAL_LABELS)]
    yield from measure_labels(f"{len(texts)} posts", known, found.labels_of(texts))


def measure_labels(title: str, targets: NDArray[np.int8], chosen: NDArray[np.bool_]) -> Iterable[tuple[str, object]]:
    """Measure F1, and how many texts without emotion get no label."""
    figures = evaluate(targets, chosen, SEMEVAL_LABELS)
    yield f"{title}, macro-F1 and micro-F1", rounded(100 * np.array([figures.macro_f1, figures.micro_f1]))
    is_plain = (targets == 0).all(axis=1)
    yield f"{title}, without emotion, share without a label", rounded(100 * (1 - chosen[is_plain].any(axis=1).mean()))


def measure_flips(found: Scores) -> Iterable[tuple[str, object]]:
    rows = table(STABILITY)
    labels = found.labels_of([row["text"] for row in rows])
    english = {row["group"]: index for index, row in enumerate(rows) if row["language"] == "en"}
    own = [index for index, row in enumerate(rows) if row["language"] != "en"]
    flips = labels[own] != labels[[english[rows[index]["group"]] for index in own]]
    yield "translations with a flipped label", f"{100 * flips.any(axis=1).mean():.0f} %"


def measure_agreement(found: Scores, data: Path) -> Iterable[tuple[str, object]]:
    """Measure Cohen's κ between the labels of translations and those of their English."""
    files = sorted((data / "parallel/flores-dev").glob("*.tsv.gz"))
    by_language: dict[str, float] = {}
    english_labels: dict[str, NDArray[np.bool_]] = {}
    for file in files:
        pairs = read_parallel([file])
        pairs = pairs.select(np.arange(min(FLORES_ROWS, len(pairs))))
        new = [text for text in pairs.english if text not in english_labels]
        english_labels |= dict(zip(new, found.labels_of(new), strict=True))
        english = np.array([english_labels[pairs.english[index]] for index in pairs.english_of])
        by_language[pairs.languages[0]] = cohen_kappa(english, found.labels_of(pairs.texts))
    yield "agreement, mean", round(float(np.mean(list(by_language.values()))), 3)
    yield "agreement", {code: round(value, 2) for code, value in by_language.items()}


def table(path: Path) -> list[Mapping[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def rounded(values: NDArray[np.float64] | np.floating) -> object:
    return np.round(values, 1).tolist()


if __name__ == "__main__":
    main()
