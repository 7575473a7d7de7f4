"""Label projection: the predictions for English texts become the labels of their translations."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from emoglot.data.dataset import Dataset
from emoglot.data.parallel import Parallel, as_they_are, join
from emoglot.errors import DataError
from emoglot.files import write_whole
from emoglot.labels import UNKNOWN
from emoglot.model import Model
from emoglot.text.language_names import ANY

SOURCE = "projected"
ENGLISH = "en"
# Scores are calibrated: from 0.5 on a label is taken as present, below 0.15 as absent, else as unknown.
PRESENT_FROM = 0.5
ABSENT_BELOW = 0.15
# Pairs scored per pair wanted, to find enough with an emotion: one plain sentence in four has one.
CANDIDATES = 4
SENTENCE_WORDS = 3  # with fewer, a text is a word or a phrase, used only if there are too few sentences
_CELLS = {1: "1", 0: "0", UNKNOWN: ""}


def project(teacher: Model, parallel: Parallel, per_language: int, english: int = 0, seed: int = 0) -> Dataset:
    """Label up to `per_language` texts of each language, half of them with an emotion and at most as many without.

    `english` is the number of English texts to label.
    """
    rng = np.random.default_rng(seed)
    wanted = dict.fromkeys(sorted(set(parallel.languages)), per_language)
    if english:
        parallel = join([parallel, as_they_are(parallel.english, [ENGLISH] * len(parallel.english))])
        wanted[ENGLISH] = english
    parallel = parallel.select(_candidates(parallel, wanted, rng))
    analysis = teacher.analyse(parallel.english, ANY)
    scores = analysis.scores
    english_targets = np.where(scores >= PRESENT_FROM, 1, np.where(scores < ABSENT_BELOW, 0, UNKNOWN))
    english_targets[~analysis.is_read] = UNKNOWN
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
    pairs = parallel.select(rows)
    return Dataset(pairs.texts, targets[rows], teacher.labels, pairs.languages, (SOURCE,) * len(rows))


def _candidates(parallel: Parallel, wanted: Mapping[str, int], rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw pairs of each language, sentences before words."""
    is_word = np.array([len(text.split()) < SENTENCE_WORDS for text in parallel.english])[parallel.english_of]
    order = rng.permutation(len(parallel))
    order = order[np.argsort(is_word[order], kind="stable")]
    languages = np.array(parallel.languages)[order]
    drawn = [order[languages == language][: CANDIDATES * count] for language, count in wanted.items()]
    if not drawn:
        raise DataError("no pair is left to project: all of these few translations are held out for evaluation")
    return np.sort(np.concatenate(drawn))


def write_csv(data: Dataset, path: Path) -> None:
    """Write a table that `emoglot train` reads, atomically; an empty cell is an unknown label."""
    content = io.StringIO(newline="")
    writer = csv.writer(content, lineterminator="\n")
    writer.writerow(["text", "language", *data.labels])
    for text, language, row in zip(data.texts, data.languages, data.targets.tolist(), strict=True):
        writer.writerow([text, language, *(_CELLS[value] for value in row)])
    write_whole(path, content.getvalue())
