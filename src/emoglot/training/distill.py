"""Distillation: the scores of teachers, of texts and their translations, as targets of a student."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from emoglot.config import Config
from emoglot.data.dataset import Dataset, concatenate
from emoglot.data.parallel import Parallel
from emoglot.encoders.features import Progress
from emoglot.errors import UsageError
from emoglot.files import draft
from emoglot.labels import UNKNOWN
from emoglot.model import Model
from emoglot.text.language_names import ANY

SOURCE = "parallel"
ENGLISH = "en"
# Texts scored between two writes: an interruption loses some minutes at most.
CHUNK = 8192

Answers = tuple[NDArray[np.float16], NDArray[np.bool_]]  # scores (texts, labels), and which texts were read (texts,)


@dataclass(frozen=True, eq=False)
class Lessons:
    """Rows to train on, with the probability of every label."""

    data: Dataset
    chances: NDArray[np.float32]  # (rows, labels)


def make_lessons(
    teachers: Sequence[Model],
    data: Dataset,
    parallel: Parallel | None,
    config: Config,
    work: Path,
    on_progress: Progress | None = None,
) -> Lessons:
    """Return labelled texts and translations with the scores of teachers, which are kept in the folder `work`.

    A translation gets the scores of its English.
    """
    labels = data.labels
    for teacher in teachers:
        if missing := set(labels) - set(teacher.state.outputs):
            raise UsageError(
                f"a teacher must know all labels of the data, it lacks {', '.join(sorted(missing))}: train it on data "
                "that has them, or exclude them with --label-columns"
            )
    pairs = draw_pairs(parallel, config) if parallel else None
    asked_rows = np.flatnonzero(_is_asked(data, config))
    taught_data = data.select(asked_rows)
    # Each distinct text once.
    texts = dict.fromkeys((*taught_data.texts, *(pairs.english if pairs else ())))
    place = {text: index for index, text in enumerate(texts)}
    scores, is_read = _mean([_ask(teacher, labels, tuple(place), work, on_progress) for teacher in teachers])
    chances = data.targets.astype(np.float32)
    places = [place[text] for text in taught_data.texts]
    chances[asked_rows] = mix(taught_data, scores[places], is_read[places], config)
    if pairs is None:
        return Lessons(data, chances)
    # As many texts of English itself as of two other languages.
    drawn = np.random.default_rng(config.training.seed).permutation(len(pairs.english))[: 2 * config.teaching.pairs]
    own = tuple(pairs.english[index] for index in drawn.tolist())
    translations = Dataset(
        (*pairs.texts, *own),
        np.full((len(pairs) + len(own), len(labels)), UNKNOWN, dtype=np.int8),
        labels,
        (*pairs.languages, *[ENGLISH] * len(own)),
        (SOURCE,) * (len(pairs) + len(own)),
    )
    both = concatenate([data, translations])
    assert both.labels == labels
    asked = [pairs.english[index] for index in pairs.english_of.tolist()]
    places = [place[text] for text in (*asked, *own)]
    taught = np.where(is_read[places, None], scores[places], UNKNOWN)
    return Lessons(both, np.concatenate([chances, taught]).astype(np.float32))


def _is_asked(data: Dataset, config: Config) -> NDArray[np.bool_]:
    """Return which rows teachers score: all, or those without annotated emotions."""
    if config.teaching.labelled:
        return np.ones(len(data), dtype=np.bool_)
    emotions = [column for column, name in enumerate(data.labels) if name not in config.training.sentiment]
    return np.asarray((data.targets[:, emotions] == UNKNOWN).all(axis=1))


def mix(data: Dataset, scores: NDArray[np.float32], is_read: NDArray[np.bool_], config: Config) -> NDArray[np.float32]:
    """Return the weighted mean of targets and teachers' scores; unknown targets are replaced by the scores.

    A row that no teacher could read (`is_read`) keeps its targets.
    """
    targets = data.targets
    is_doubtful = (targets == 0) & (targets == 1).any(axis=1, keepdims=True)
    zero_weights = np.array([config.training.zero_weight(source) for source in data.sources])
    weight = config.teaching.annotators * np.where(is_doubtful, zero_weights[:, None], 1.0)
    mixed = np.where(targets == UNKNOWN, scores, weight * (targets == 1) + (1 - weight) * scores)
    return np.where(is_read[:, None], mixed, targets).astype(np.float32)


def _mean(answers: Sequence[Answers]) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Return the mean scores of the teachers that could read each text, and whether any could."""
    total = np.sum([scores * is_read[:, None] for scores, is_read in answers], axis=0, dtype=np.float32)
    readers = np.sum([is_read for _, is_read in answers], axis=0)
    return np.asarray(total / np.maximum(readers, 1)[:, None], dtype=np.float32), readers > 0


def draw_pairs(parallel: Parallel, config: Config) -> Parallel:
    """Draw translations of each language, weighted by source."""
    settings = config.teaching
    rng = np.random.default_rng(config.training.seed)
    training, _ = parallel.split()
    weights = np.array([settings.sources.get(source, 1.0) for source in training.sources])
    training, weights = training.select(np.flatnonzero(weights > 0)), weights[weights > 0]
    # The largest of u^(1/w), with u uniform, are a weighted sample without replacement (Efraimidis and Spirakis).
    keys = np.log(rng.random(len(training))) / weights
    languages = np.array(training.languages)
    chosen = []
    for language in np.unique(languages):
        own = np.flatnonzero(languages == language)
        chosen.append(own[np.argsort(-keys[own], kind="stable")[: settings.pairs]])
    return training.select(np.sort(np.concatenate(chosen)))


def _ask(
    teacher: Model, labels: Sequence[str], texts: Sequence[str], work: Path, on_progress: Progress | None
) -> Answers:
    """Return a teacher's scores of the labels (texts, labels), computed or read from files of one chunk each."""
    folder = work / f"{teacher.state.fingerprint()[:16]}-{teacher.encoder.fingerprint}"
    folder.mkdir(parents=True, exist_ok=True)
    outputs = teacher.state.outputs
    result = np.empty((len(texts), 1 + len(outputs)), dtype=np.float16)  # whether it was read, then the scores
    for start in range(0, len(texts), CHUNK):
        chunk = list(texts[start : start + CHUNK])
        path = folder / f"{hashlib.sha256(chr(0).join(chunk).encode('utf-8', 'surrogatepass')).hexdigest()[:32]}.npy"
        answers = _read_array(path)
        if answers is None:
            found = teacher.analyse(chunk, ANY)
            answers = np.column_stack([found.is_read, found.scores, found.sentiment]).astype(np.float16)
            with draft(path) as made, made.open("wb") as file:
                np.save(file, answers)
        result[start : start + len(chunk)] = answers
        if on_progress:
            on_progress(start + len(chunk), len(texts))
    return result[:, [1 + outputs.index(label) for label in labels]], result[:, 0] > 0


def _read_array(path: Path) -> NDArray[np.float16] | None:
    """Read an array, or return None if the file is missing or incomplete."""
    try:
        return np.asarray(np.load(path))
    except (OSError, ValueError, EOFError):
        return None
