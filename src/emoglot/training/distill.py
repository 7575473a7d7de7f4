"""Distillation: the scores of teachers, of texts and their translations, as targets of a student."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from emoglot.config import Config
from emoglot.data.dataset import Dataset, concatenate
from emoglot.data.parallel import Parallel
from emoglot.encoders.features import Progress
from emoglot.errors import UsageError
from emoglot.files import draft
from emoglot.inference.head import logit, sigmoid
from emoglot.labels import UNKNOWN
from emoglot.model import Model
from emoglot.text.language_names import ANY

SOURCE = "parallel"
ENGLISH = "en"
# Texts scored between two writes: an interruption loses some minutes at most.
CHUNK = 8192
# Scores are kept in half precision, which rounds more extreme ones to 0 and 1.
SCORES_BETWEEN = (1e-4, 1 - 1e-3)
# Added to the strongest emotion of a sentence, so that sentences without any are drawn as well.
LEAST_STRENGTH = 0.05
# Translations of a sentence that are scored beside its English; more add little to their mean.
VOTERS = 2

Answers = tuple[NDArray[np.float16], NDArray[np.bool_]]  # scores (texts, labels), and which texts were read (texts,)
Ask = Callable[[Sequence[str]], tuple[NDArray[np.float32], NDArray[np.bool_]]]  # the same, of all teachers


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
                f"a teacher must know all labels of the data, {', '.join(sorted(missing))} is missing: train it on "
                "data with these labels, or exclude them with --label-columns"
            )

    def ask(texts: Sequence[str]) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        places = {text: index for index, text in enumerate(dict.fromkeys(texts))}
        scores, is_read = _mean([_ask(teacher, labels, tuple(places), work, on_progress) for teacher in teachers])
        rows = [places[text] for text in texts]
        return scores[rows], is_read[rows]

    chances = data.targets.astype(np.float32)
    asked_rows = np.flatnonzero(_is_asked(data, config))
    taught_data = data.select(asked_rows)
    chances[asked_rows] = mix(taught_data, *ask(taught_data.texts), config)
    if parallel is None:
        return Lessons(data, chances)
    translations, taught = _teach_translations(parallel, ask, thresholds_of(teachers, labels), labels, config)
    both = concatenate([data, translations])
    assert both.labels == labels
    return Lessons(both, np.concatenate([chances, taught]))


def _teach_translations(
    parallel: Parallel, ask: Ask, thresholds: NDArray[np.float32], labels: tuple[str, ...], config: Config
) -> tuple[Dataset, NDArray[np.float32]]:
    """Return translations, and some of their English, with the scores that they are to learn."""
    rng = np.random.default_rng(config.training.seed)
    training, _ = parallel.split()
    pairs = _draw_by_source(training, config, rng)
    scores, is_read = ask(pairs.english)
    if config.teaching.pool > 1:
        strength = scores[:, _emotions(labels, config)].max(axis=1)[pairs.english_of]
        drawn = _draw(pairs.languages, LEAST_STRENGTH + strength, config.teaching.pairs, rng)
        kept = np.unique(pairs.english_of[drawn])
        pairs, scores, is_read = pairs.select(drawn), scores[kept], is_read[kept]
    voters = _find_voters(training, pairs.english, config.teaching.voters, rng)
    scores = sharpen(vote(scores, *ask(voters.texts), voters.english_of), thresholds, config.teaching.sharpness)
    own = rng.permutation(len(pairs.english))[: config.teaching.english * config.teaching.pairs]
    places = np.concatenate([pairs.english_of, own])
    translations = Dataset(
        (*pairs.texts, *(pairs.english[index] for index in own.tolist())),
        np.full((len(places), len(labels)), UNKNOWN, dtype=np.int8),
        labels,
        (*pairs.languages, *[ENGLISH] * len(own)),
        (SOURCE,) * len(places),
    )
    return translations, np.where(is_read[places, None], scores[places], UNKNOWN).astype(np.float32)


def vote(
    english: NDArray[np.float32],
    translated: NDArray[np.float32],
    is_read: NDArray[np.bool_],
    english_of: NDArray[np.int64],
) -> NDArray[np.float32]:
    """Return the mean scores of the English and the translations of each sentence; both parts have the same weight.

    Means are of logits. A sentence without translations that could be read keeps the scores of its English.
    """
    total = np.zeros_like(english)
    np.add.at(total, english_of[is_read], logit(translated[is_read], *SCORES_BETWEEN))
    count = np.bincount(english_of[is_read], minlength=len(english))[:, None]
    logits = (logit(english, *SCORES_BETWEEN) + total / np.maximum(count, 1)) / 2
    return np.where(count > 0, sigmoid(logits.astype(np.float32)), english)


def thresholds_of(teachers: Sequence[Model], labels: Sequence[str]) -> NDArray[np.float32]:
    """Return the mean threshold of each label; NaN for sentiment, which has none."""
    cuts = np.array([[given.get(label, np.nan) for label in labels] for given in (one.thresholds for one in teachers)])
    return np.asarray(cuts.mean(axis=0), dtype=np.float32)


def sharpen(scores: NDArray[np.float32], thresholds: NDArray[np.float32], factor: float) -> NDArray[np.float32]:
    """Return scores moved away from their thresholds by a factor, in logits; without a threshold they stay."""
    has_threshold = ~np.isnan(thresholds)
    cut = logit(thresholds[has_threshold], *SCORES_BETWEEN)
    moved: NDArray[np.float32] = scores.copy()
    moved[:, has_threshold] = sigmoid(cut + factor * (logit(scores[:, has_threshold], *SCORES_BETWEEN) - cut))
    return moved


def _find_voters(
    parallel: Parallel, english: Sequence[str], languages: Sequence[str], rng: np.random.Generator
) -> Parallel:
    """Return translations of the sentences into some languages, at most `VOTERS` each.

    `english_of` of the result refers to `english`.
    """
    places = {text: index for index, text in enumerate(english)}
    place = np.array([places.get(text, -1) for text in parallel.english])[parallel.english_of]
    rows = np.flatnonzero(np.isin(np.array(parallel.languages), list(languages)) & (place >= 0))
    rows = rng.permutation(rows)
    rows = rows[np.argsort(place[rows], kind="stable")]
    first = np.searchsorted(place[rows], place[rows])  # of the rows of the same sentence
    rows = rows[np.arange(len(rows)) - first < VOTERS]
    return replace(parallel.select(rows), english=tuple(english), english_of=place[rows])


def _emotions(labels: Sequence[str], config: Config) -> list[int]:
    """Return the columns of the labels that are not sentiment."""
    return [column for column, name in enumerate(labels) if name not in config.training.sentiment]


def _is_asked(data: Dataset, config: Config) -> NDArray[np.bool_]:
    """Return which rows teachers score: all, or those without annotated emotions."""
    if config.teaching.labelled:
        return np.ones(len(data), dtype=np.bool_)
    emotions = _emotions(data.labels, config)
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
    """Draw translations of each language to learn from, weighted by source."""
    training, _ = parallel.split()
    return _draw_by_source(training, config, np.random.default_rng(config.training.seed))


def _draw_by_source(parallel: Parallel, config: Config, rng: np.random.Generator) -> Parallel:
    weights = np.array([config.teaching.sources.get(source, 1.0) for source in parallel.sources])
    parallel, weights = parallel.select(np.flatnonzero(weights > 0)), weights[weights > 0]
    return parallel.select(_draw(parallel.languages, weights, config.teaching.pairs * config.teaching.pool, rng))


def _draw(
    languages: Sequence[str], weights: NDArray[np.float64], count: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Return a weighted sample of at most `count` rows of each language, without replacement, in order."""
    # The largest of u^(1/w), with u uniform, are such a sample (Efraimidis and Spirakis).
    keys = np.log(rng.random(len(weights))) / weights
    names = np.array(languages)
    chosen = []
    for language in np.unique(names):
        own = np.flatnonzero(names == language)
        chosen.append(own[np.argsort(-keys[own], kind="stable")[:count]])
    return np.sort(np.concatenate(chosen))


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
