"""Distils an encoder: piece vectors that say of a text in any language what a teacher says of its English.

The student is a table with one vector per piece. The mean vector of a text must lead to the teacher's vector of the
English it translates, to the emotions that a judge (a trained model) finds in that English, and to the labels of
annotated texts. What is learnt on the way to those answers is thrown away; the table becomes the encoder.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from emoglot.config import DistillConfig
from emoglot.data.dataset import Dataset
from emoglot.encoders import Encoder
from emoglot.encoders.onnx import OnnxEncoder
from emoglot.encoders.pieces import extend_tokenizer, write_pieces
from emoglot.errors import MissingExtraError, TrainingError
from emoglot.features import TOKEN_BUDGET, Progress, length_sorted_batches
from emoglot.model import EmotionClassifier
from emoglot.parallel import Parallel, as_they_are, emoji_names, join
from emoglot.text import normalise_text
from emoglot.vocabulary import learn_vocabulary, vocabulary_sample

try:
    import torch

    from emoglot.lessons import Bags, Lessons, habits_of, repeats_of
    from emoglot.student import Say, learn
except ImportError as missing:
    raise MissingExtraError(missing.name or "torch", "train", "distilling") from missing

# Texts whose teacher's vectors are written at a time: what an interruption can cost, under a minute here.
TEACHING_CHUNK = 32768


def distil(
    parallel: Parallel,
    teacher: Encoder,
    config: DistillConfig,
    out: Path,
    *,
    judge: EmotionClassifier | None = None,
    labelled: Dataset | None = None,
    written: Dataset | None = None,
    say: Say = lambda message: None,
    on_teaching: Progress | None = None,
) -> Path:
    """Make an encoder folder from scratch; interrupted, the same call goes on where it was.

    `labelled` are texts whose labels are learnt. `written` are texts of the kind that will be read: the vocabulary is
    learnt from them, and those in the teacher's own languages are put to it as they are; of labels nothing is learnt.
    Beside the folder, `OUT.work` keeps the vocabulary, the teacher's answers and the student between sessions.
    """
    work = out.with_name(f"{out.name}.work")
    work.mkdir(parents=True, exist_ok=True)
    translations, _ = join([parallel, emoji_names()]).split()
    training = join([translations, _readable(written, config)]) if written else translations
    english = [normalise_text(text) for text in training.english]
    texts = [normalise_text(text) for text in training.texts]
    labelled_texts = [normalise_text(text) for text in labelled.texts] if labelled else []
    say(f"{len(texts):,} pairs in {len(set(training.languages))} languages, {len(english):,} sentences for the teacher")
    vectors = _teach(teacher, english, work, on_teaching)
    scores = _judge(judge, english, work, on_teaching) if judge else None
    users: dict[str, str] = {}
    if written:
        users |= zip(map(normalise_text, written.texts), written.languages, strict=True)
    if labelled:
        users |= zip(labelled_texts, labelled.languages, strict=True)
    count, english_count = len(translations), len(translations.english)
    samples = vocabulary_sample(translations, texts[:count], english[:english_count], users, config)
    tokenizer = learn_vocabulary(samples, config, work, say)
    lessons = Lessons(
        texts=Bags.of(tokenizer, texts),
        english=Bags.of(tokenizer, english),
        english_of=training.english_of,
        repeats=repeats_of(training, config),
        vectors=vectors,
        scores=scores,
    )
    if labelled:
        bags = Bags.of(tokenizer, labelled_texts)
        lessons = replace(lessons, labelled=bags, targets=labelled.targets, habits_of=habits_of(labelled))
    torch.manual_seed(config.seed)
    first = torch.randn(tokenizer.get_vocab_size(), config.dim) * config.initial_spread
    table = learn(lessons, first, config, work, say, answer_dim=vectors.shape[1])
    write_pieces(out, out.name, tokenizer, _to_unit_spread(table, lessons.texts))
    return out


def extend(
    parallel: Parallel, base: OnnxEncoder, config: DistillConfig, out: Path, *, say: Say = lambda message: None
) -> Path:
    """Add languages to an encoder: new pieces learn to mean what the encoder's own pieces mean in English.

    Its vectors stay as they were, so a model trained on it can use the new one.
    """
    training, _ = parallel.split()
    english = [normalise_text(text) for text in training.english]
    texts = [normalise_text(text) for text in training.texts]
    old = base.table()
    tokenizer = extend_tokenizer(base.tokenizer, texts, config.vocabulary)
    count = tokenizer.get_vocab_size() - len(old)
    if not count:
        raise TrainingError("the translations hold no piece that the encoder lacks: there is nothing to add")
    say(f"{len(texts):,} pairs, {count:,} new pieces")
    english_bags = Bags.of(base.tokenizer, english)  # what the base can't read, it can't teach
    lessons = Lessons(
        texts=Bags.of(tokenizer, texts),
        english=english_bags,
        english_of=training.english_of,
        repeats=repeats_of(training, config),
        vectors=english_bags.means(old).astype(np.float16),
    )
    torch.manual_seed(config.seed)
    new = torch.randn(count, old.shape[1]) * float(old.std()) * config.initial_spread
    work = out.with_name(f"{out.name}.work")
    work.mkdir(parents=True, exist_ok=True)
    table = learn(lessons, torch.cat([torch.from_numpy(old), new]), config, work, say, frozen=len(old))
    write_pieces(out, out.name, tokenizer, table, extends=(*base.description.extends, base.fingerprint))
    return out


def _readable(written: Dataset, config: DistillConfig) -> Parallel:
    """Take the texts in the languages that the teacher reads."""
    rows = [row for row, code in enumerate(written.languages) if code.partition("-")[0] in config.teacher_languages]
    return as_they_are((written.texts[row] for row in rows), (written.languages[row] for row in rows))


def _teach(teacher: Encoder, english: Sequence[str], work: Path, on_progress: Progress | None) -> NDArray[np.float16]:
    """Ask the teacher for the mean token vector of every sentence."""

    def means(texts: list[str]) -> NDArray[np.float32]:
        result = np.zeros((len(texts), teacher.dim), dtype=np.float32)
        for rows in length_sorted_batches(teacher.count_tokens(texts), TOKEN_BUDGET):
            ragged = teacher.encode([texts[row] for row in rows])
            lengths = np.diff(ragged.splits)
            filled = lengths > 0
            if filled.any():
                sums = np.add.reduceat(ragged.vectors, ragged.splits[:-1][filled], axis=0)
                result[rows[filled]] = sums / lengths[filled, None]
        return result

    return _answers(means, english, teacher.dim, work / f"teacher-{teacher.fingerprint}", on_progress)


def _judge(
    judge: EmotionClassifier, english: Sequence[str], work: Path, on_progress: Progress | None
) -> NDArray[np.float32]:
    """Ask the judge for its scores of every sentence."""
    folder = work / f"judge-{judge.state.fingerprint()[:16]}-{judge.encoder.fingerprint}"
    found = _answers(judge.predict_proba, english, len(judge.labels_), folder, on_progress)
    return np.asarray(found, dtype=np.float32)


def _answers(
    ask: Callable[[list[str]], NDArray[np.float32]],
    texts: Sequence[str],
    width: int,
    folder: Path,
    on_progress: Progress | None,
) -> NDArray[np.float16]:
    """Put all texts to someone who is slow, one file for each chunk of them, which is there whole or not at all."""
    folder.mkdir(exist_ok=True)
    result = np.empty((len(texts), width), dtype=np.float16)
    for start in range(0, len(texts), TEACHING_CHUNK):
        chunk = list(texts[start : start + TEACHING_CHUNK])
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


def _to_unit_spread(table: NDArray[np.float32], texts: Bags) -> NDArray[np.float32]:
    """Scale the table so that the numbers a head sees have a spread of about 1."""
    sample = table[texts.ids[:: max(1, len(texts.ids) // 100_000)]]
    return np.asarray(table / max(float(sample.std()), 1e-12), dtype=np.float32)
