"""Projects labels: what a model finds in English is taken as the labels of its translations."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from emoglot.data.dataset import Dataset
from emoglot.errors import DataError
from emoglot.labels import UNKNOWN
from emoglot.model import EmotionClassifier
from emoglot.parallel import Parallel, as_they_are, join

SOURCE = "projected"
ENGLISH = "en"
# Scores are shares of right answers: from one in two on a label is taken for true, below one in seven for absent.
PRESENT_FROM = 0.5
ABSENT_BELOW = 0.15
# So many times more pairs than wanted are judged, to find enough with an emotion: one plain sentence in four has one.
CANDIDATES = 4
SENTENCE_WORDS = 3  # with fewer, an English text is a word or a phrase, taken only where sentences are lacking
_CELLS = {1: "1", 0: "0", UNKNOWN: ""}


def project(
    judge: EmotionClassifier, parallel: Parallel, per_language: int, english: int = 0, seed: int = 0
) -> Dataset:
    """Label up to `per_language` texts of each language, as many with an emotion as without where there are so many.

    `english` is how many of the English texts themselves to label.
    """
    rng = np.random.default_rng(seed)
    wanted = dict.fromkeys(sorted(set(parallel.languages)), per_language)
    if english:
        parallel = join([parallel, as_they_are(parallel.english, [ENGLISH] * len(parallel.english))])
        wanted[ENGLISH] = english
    parallel = parallel.select(_candidates(parallel, wanted, rng))
    scores = judge.predict_proba(parallel.english)
    english_targets = np.where(scores >= PRESENT_FROM, 1, np.where(scores < ABSENT_BELOW, 0, UNKNOWN))
    english_targets[~scores.any(axis=1)] = UNKNOWN  # of what the judge can't read, it says nothing
    targets = english_targets.astype(np.int8)[parallel.english_of]
    is_emotional = (targets == 1).any(axis=1)
    is_neutral = (targets == 0).all(axis=1)
    order = rng.permutation(len(parallel))
    languages = np.array(parallel.languages)
    chosen = []
    for language, count in wanted.items():
        own = order[languages[order] == language]
        emotional = own[is_emotional[own]][: count // 2]
        chosen += [emotional, own[is_neutral[own]][: len(emotional)]]
    rows = np.sort(np.concatenate(chosen))
    return Dataset(
        tuple(parallel.texts[row] for row in rows.tolist()),
        targets[rows],
        judge.labels_,
        tuple(parallel.languages[row] for row in rows.tolist()),
        (SOURCE,) * len(rows),
    )


def _candidates(parallel: Parallel, wanted: Mapping[str, int], rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw pairs of each language, sentences before words."""
    is_word = np.array([len(text.split()) < SENTENCE_WORDS for text in parallel.english])[parallel.english_of]
    order = rng.permutation(len(parallel))
    order = order[np.argsort(is_word[order], kind="stable")]
    languages = np.array(parallel.languages)[order]
    drawn = [order[languages == language][: CANDIDATES * count] for language, count in wanted.items()]
    if not drawn:
        raise DataError("no pair is left to project: so few translations are all held out for measuring")
    return np.sort(np.concatenate(drawn))


def write_csv(data: Dataset, path: Path) -> None:
    """Write a table that `emoglot train` reads, whole or not at all; an empty cell is an unknown label."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}-{os.getpid()}")
    with draft.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "language", *data.labels])
        for text, language, row in zip(data.texts, data.languages, data.targets.tolist(), strict=True):
            writer.writerow([text, language, *(_CELLS[value] for value in row)])
    draft.replace(path)
