"""Teaching: what trained models say of a text becomes what a smaller one learns of it, and of its translations."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from emoglot.config import Config
from emoglot.data.dataset import Dataset, concatenate
from emoglot.errors import UsageError
from emoglot.features import Progress
from emoglot.labels import UNKNOWN
from emoglot.model import EmotionClassifier
from emoglot.parallel import Parallel

SOURCE = "parallel"
ENGLISH = "en"
# Texts asked about before the answers are written: what an interruption can cost, some minutes.
CHUNK = 8192


@dataclass(frozen=True, eq=False)
class Lessons:
    """Rows to learn from, with the chance of every label."""

    data: Dataset
    chances: NDArray[np.float32]  # (rows, labels)


def make_lessons(
    teachers: Sequence[EmotionClassifier],
    data: Dataset,
    parallel: Parallel | None,
    config: Config,
    work: Path,
    on_progress: Progress | None = None,
) -> Lessons:
    """Ask teachers about labelled texts, and about the English of translations; `work` keeps what they said."""
    labels = data.labels
    for teacher in teachers:
        if missing := set(labels) - set(teacher.state.outputs):
            raise UsageError(
                f"a teacher must know all labels of the data, it lacks {', '.join(sorted(missing))}: train it on data "
                "that has them, or leave them out with --label-columns"
            )
    pairs = draw_pairs(parallel, config) if parallel else None
    asked_rows = np.flatnonzero(_is_asked(data, config))
    taught_data = data.select(asked_rows)
    # Each text once, however often it is learnt.
    texts = dict.fromkeys((*taught_data.texts, *(pairs.english if pairs else ())))
    place = {text: index for index, text in enumerate(texts)}
    scores = _mean([_ask(teacher, labels, tuple(place), work, on_progress) for teacher in teachers])
    chances = data.targets.astype(np.float32)
    chances[asked_rows] = mix(taught_data, scores[[place[text] for text in taught_data.texts]], config)
    if pairs is None:
        return Lessons(data, chances)
    # Of the English itself, as much as of any two languages.
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
    taught = scores[[place[text] for text in (*asked, *own)]]
    return Lessons(both, np.concatenate([chances, taught]).astype(np.float32))


def _is_asked(data: Dataset, config: Config) -> NDArray[np.bool_]:
    """Return which rows teachers are asked about: all, or those whose emotions no annotator was asked about."""
    if config.teaching.labelled:
        return np.ones(len(data), dtype=np.bool_)
    emotions = [column for column, name in enumerate(data.labels) if name not in config.training.sentiment]
    return np.asarray((data.targets[:, emotions] == UNKNOWN).all(axis=1))


def mix(data: Dataset, scores: NDArray[np.float32], config: Config) -> NDArray[np.float32]:
    """Weigh what annotators said against what teachers say; where annotators were not asked, the teachers decide.

    What teachers can't read, of which the score is unknown as well, is left to the annotators.
    """
    targets = data.targets
    is_read = scores != UNKNOWN
    belief = np.where(targets == UNKNOWN, 0.0, np.where(is_read, config.teaching.annotators, 1.0))
    is_doubtful = (targets == 0) & (targets == 1).any(axis=1, keepdims=True)
    zero_weights = np.array([config.training.zero_weight(source) for source in data.sources])
    belief = np.where(is_doubtful & is_read, belief * zero_weights[:, None], belief)
    return np.asarray(belief * (targets == 1) + (1 - belief) * scores, dtype=np.float32)


def _mean(scores: Sequence[NDArray[np.float16]]) -> NDArray[np.float32]:
    """Average what teachers say of each text, without those that can't read it; unknown where none can."""
    total = np.sum(scores, axis=0, dtype=np.float32)
    readers = np.sum([answers.any(axis=1) for answers in scores], axis=0)[:, None]
    return np.asarray(np.where(readers > 0, total / np.maximum(readers, 1), UNKNOWN), dtype=np.float32)


def draw_pairs(parallel: Parallel, config: Config) -> Parallel:
    """Draw translations of each language, sources that matter little less often."""
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
    teacher: EmotionClassifier, labels: Sequence[str], texts: Sequence[str], work: Path, on_progress: Progress | None
) -> NDArray[np.float16]:
    """Let a teacher score texts, in the order of the labels."""
    folder = work / f"{teacher.state.fingerprint()[:16]}-{teacher.encoder.fingerprint}"
    outputs = teacher.state.outputs
    columns = [outputs.index(label) for label in labels]
    return _answers(teacher.predict_outputs, texts, len(outputs), folder, on_progress)[:, columns]


def _answers(
    ask: Callable[[list[str]], NDArray[np.float32]],
    texts: Sequence[str],
    width: int,
    folder: Path,
    on_progress: Progress | None,
) -> NDArray[np.float16]:
    """Put texts to someone who is slow, one file for each chunk of them, which is there whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    result = np.empty((len(texts), width), dtype=np.float16)
    for start in range(0, len(texts), CHUNK):
        chunk = list(texts[start : start + CHUNK])
        path = folder / f"{hashlib.sha256(chr(0).join(chunk).encode('utf-8', 'surrogatepass')).hexdigest()[:32]}.npy"
        answers = _read_array(path)
        if answers is None:
            answers = ask(chunk).astype(np.float16)
            draft = path.with_name(f"{path.stem}-{os.getpid()}.draft.npy")
            np.save(draft, answers)
            draft.replace(path)
        result[start : start + len(chunk)] = answers
        if on_progress:
            on_progress(start + len(chunk), len(texts))
    return result


def _read_array(path: Path) -> NDArray[np.float16] | None:
    """Read what was kept, if it is there and whole: after a power cut a file may be cut, too."""
    try:
        return np.asarray(np.load(path))
    except (OSError, ValueError, EOFError):
        return None
