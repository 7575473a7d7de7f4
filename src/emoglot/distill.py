"""Distils an encoder: piece vectors that say of a text in any language what a teacher says of its English.

The student is a table with one vector per piece. The mean vector of a text must lead to the teacher's vector of the
English it translates, to the emotions that a judge (a trained model) finds in that English, and to the labels of
annotated texts. What is learnt on the way to those answers is thrown away; the table becomes the encoder.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from emoglot.config import DistillConfig
from emoglot.data.dataset import Dataset
from emoglot.encoders import Encoder
from emoglot.encoders.base import splits_of
from emoglot.encoders.onnx import OnnxEncoder
from emoglot.encoders.pieces import UNKNOWN_ID, extend_tokenizer, train_tokenizer, write_pieces
from emoglot.errors import MissingExtraError, TrainingError
from emoglot.features import Progress
from emoglot.labels import UNKNOWN, Targets
from emoglot.model import EmotionClassifier
from emoglot.parallel import Parallel, emoji_names, join
from emoglot.text import normalise_text

try:
    import torch
    from torch import Tensor, nn
    from torch.nn import functional

    from emoglot.checkpoint import Checkpoint
except ImportError as missing:
    raise MissingExtraError(missing.name or "torch", "train", "distilling") from missing

if TYPE_CHECKING:
    from tokenizers import Tokenizer

# Texts whose teacher's vectors are written at a time: what an interruption can cost, under a minute here.
TEACHING_CHUNK = 32768
# Texts cut into pieces at a time: the library keeps a kilobyte of each.
TOKENISING_CHUNK = 65536
# A language with few pairs is seen up to this many times an epoch; beyond, its rare pieces are learnt by heart.
MOST_REPEATS = 3.0
# A language with this many weighted pairs is seen as often as it comes.
ENOUGH_PAIRS = 20_000
STEPS_PER_REPORT = 100
STEPS_PER_CHECKPOINT = 500
WARM_UP_STEPS = 200
FINAL_RATE = 0.02  # of the learning rate, reached in a straight line

Say = Callable[[str], None]


@dataclass(frozen=True)
class Bags:
    """The pieces of many texts, one text after another."""

    ids: NDArray[np.int32]
    splits: NDArray[np.int64]

    @classmethod
    def of(cls, tokenizer: Tokenizer, texts: Sequence[str]) -> Bags:
        """Cut normalised texts into pieces, leaving out what the vocabulary lacks."""
        parts = []
        for start in range(0, len(texts), TOKENISING_CHUNK):
            encodings = tokenizer.encode_batch_fast(list(texts[start : start + TOKENISING_CHUNK]))
            ids = [np.array(encoding.ids, dtype=np.int32) for encoding in encodings]
            parts += [row[row != UNKNOWN_ID] for row in ids]
        lengths = np.array([len(row) for row in parts], dtype=np.int64)
        return cls(np.concatenate([np.empty(0, np.int32), *parts]), splits_of(lengths))

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """How many pieces each text has."""
        return np.diff(self.splits)

    def pick(self, rows: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
        """Give the pieces of these texts and where each text begins, as EmbeddingBag wants them."""
        lengths = self.lengths[rows]
        starts = splits_of(lengths)[:-1]
        places = np.repeat(self.splits[rows] - starts, lengths) + np.arange(lengths.sum())
        return torch.from_numpy(self.ids[places].astype(np.int64)), torch.from_numpy(starts)


@dataclass(frozen=True)
class Lessons:
    """All that a student learns from."""

    texts: Bags
    english: Bags
    english_of: NDArray[np.int64]
    repeats: NDArray[np.float64]  # (texts,): how often an epoch shows each pair, on average
    vectors: NDArray[np.float16]  # (english, teacher's dim)
    scores: NDArray[np.float32] | None  # (english, judge's labels)
    labelled: Bags | None
    targets: Targets
    habits_of: NDArray[np.int64]  # (labelled,): which annotators' habits each labelled text follows

    def digests(self) -> list[str]:
        """Tell these lessons from any others."""
        optional = (self.scores, self.labelled.ids if self.labelled else None)
        arrays = (self.texts.ids, self.english_of, self.repeats, self.vectors, self.targets, self.habits_of, *optional)
        return ["" if array is None else _digest(array) for array in arrays]


class Student(nn.Module):
    """The table, and the ways from a text's mean vector to what is asked of it."""

    def __init__(self, table: Tensor, answer_dim: int | None, judged: int, labels: int, habits: int) -> None:
        """`answer_dim` is the teacher's; None when the teacher is the table's own older part."""
        super().__init__()
        dim = table.shape[1]
        self.pieces = nn.EmbeddingBag.from_pretrained(table, freeze=False, mode="mean", sparse=True)
        inner = 2 * dim
        self.answer: nn.Module = (
            nn.Identity()
            if answer_dim is None
            else nn.Sequential(nn.Linear(dim, inner), nn.GELU(), nn.Linear(inner, answer_dim))
        )
        self.judge = _linear(dim, judged)
        self.label = _linear(dim, labels)
        # As in the training of a head: one dataset's readiness to say "trust" is not another's.
        self.habits = nn.Parameter(torch.zeros(habits, labels))
        self.sharpness = nn.Parameter(torch.tensor(3.0))  # of the choice among a batch's answers, as a logarithm

    def dense_parameters(self) -> list[nn.Parameter]:
        """Give all but the table."""
        return [parameter for name, parameter in self.named_parameters() if not name.startswith("pieces.")]


def _linear(dim: int, width: int) -> nn.Module:
    """Make a layer; of one that leads to nothing torch would warn."""
    return nn.Linear(dim, width) if width else nn.Identity()


def distil(
    parallel: Parallel,
    teacher: Encoder,
    config: DistillConfig,
    out: Path,
    *,
    judge: EmotionClassifier | None = None,
    labelled: Dataset | None = None,
    say: Say = lambda message: None,
    on_teaching: Progress | None = None,
) -> Path:
    """Make an encoder folder from scratch; interrupted, the same call goes on where it was.

    Beside the folder, `OUT.work` keeps the vocabulary, the teacher's answers and the student between sessions.
    """
    work = out.with_name(f"{out.name}.work")
    work.mkdir(parents=True, exist_ok=True)
    training, _ = join([parallel, emoji_names()]).split()
    english = [normalise_text(text) for text in training.english]
    texts = [normalise_text(text) for text in training.texts]
    labelled_texts = [normalise_text(text) for text in labelled.texts] if labelled else []
    say(f"{len(texts):,} pairs in {len(set(training.languages))} languages, {len(english):,} English sentences")
    vectors = _teach(teacher, english, work, on_teaching)
    scores = _judge(judge, english, work, on_teaching) if judge else None
    samples = _vocabulary_sample(training, texts, english, labelled, labelled_texts, config)
    tokenizer = _vocabulary(samples, config, work, say)
    lessons = Lessons(
        texts=Bags.of(tokenizer, texts),
        english=Bags.of(tokenizer, english),
        english_of=training.english_of,
        repeats=_repeats(training, config),
        vectors=vectors,
        scores=scores,
        labelled=Bags.of(tokenizer, labelled_texts) if labelled else None,
        targets=labelled.targets if labelled else np.empty((0, 0), np.int8),
        habits_of=_habits_of(labelled) if labelled else np.empty(0, np.int64),
    )
    torch.manual_seed(config.seed)
    first = torch.randn(tokenizer.get_vocab_size(), config.dim) * config.initial_spread
    table = _learn(lessons, first, config, work, say, answer_dim=vectors.shape[1])
    write_pieces(out, out.name, tokenizer, _to_unit_spread(table, lessons.texts))
    return out


def extend(
    parallel: Parallel, base: OnnxEncoder, config: DistillConfig, out: Path, *, say: Say = lambda message: None
) -> Path:
    """Add languages to an encoder: new pieces learn to mean what the encoder's own pieces mean in English.

    What the encoder knew stays as it was, so a model trained on it can use the new one.
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
        repeats=_repeats(training, config),
        vectors=_means(old, english_bags).astype(np.float16),
        scores=None,
        labelled=None,
        targets=np.empty((0, 0), np.int8),
        habits_of=np.empty(0, np.int64),
    )
    torch.manual_seed(config.seed)
    new = torch.randn(count, old.shape[1]) * float(old.std()) * config.initial_spread
    work = out.with_name(f"{out.name}.work")
    work.mkdir(parents=True, exist_ok=True)
    table = _learn(lessons, torch.cat([torch.from_numpy(old), new]), config, work, say, frozen=len(old))
    write_pieces(out, out.name, tokenizer, table, extends=(*(base.description.extends or ()), base.fingerprint))
    return out


def _learn(
    lessons: Lessons,
    table: Tensor,
    config: DistillConfig,
    work: Path,
    say: Say,
    *,
    answer_dim: int | None = None,
    frozen: int = 0,
) -> NDArray[np.float32]:
    """Train a student and give its table; the first `frozen` vectors stay as they are."""
    judged = lessons.scores.shape[1] if lessons.scores is not None else 0
    habits = int(lessons.habits_of.max(initial=-1)) + 1
    student = Student(table, answer_dim, judged, lessons.targets.shape[1], habits)
    course = _Course(student, lessons, config, frozen)
    checkpoint = Checkpoint(work / "student", [asdict(config), lessons.digests(), len(table), frozen])
    if found := checkpoint.read():
        course.restore(found[0])
        say(f"going on from step {course.step:,}")
    began, since = time.monotonic(), course.step
    for loss in course.run():
        if course.step % STEPS_PER_REPORT == 0:
            left = (course.steps - course.step) * (time.monotonic() - began) / (course.step - since)
            say(f"step {course.step:,} of {course.steps:,}: loss {loss:.3f}, {left / 60:.0f} minutes left")
        if course.step % STEPS_PER_CHECKPOINT == 0 or course.step == course.steps:
            checkpoint.write(course.state(), [])
    return np.array(student.pieces.weight.detach().numpy(), dtype=np.float32)


class _Course:
    """A student with its optimisers on its way through the lessons."""

    def __init__(self, student: Student, lessons: Lessons, config: DistillConfig, frozen: int) -> None:
        self.step = 0
        self.steps = max(1, int(config.epochs * lessons.repeats.sum() / config.batch_size))
        self._student, self._lessons, self._config, self._frozen = student, lessons, config, frozen
        self._usable = (lessons.texts.lengths > 0) & (lessons.english.lengths > 0)[lessons.english_of]
        if not (self._usable & (lessons.repeats > 0)).any():
            raise TrainingError("no pair has known pieces on both sides and a weight above 0: nothing to learn")
        # The teacher's vectors share a direction that says nothing: without it, angles tell more.
        sample = np.random.default_rng(config.seed).permutation(len(lessons.vectors))[:50_000]
        self._centre = lessons.vectors[np.sort(sample)].astype(np.float32).mean(axis=0)
        self._sparse = torch.optim.SparseAdam([student.pieces.weight], lr=config.learning_rate)
        self._dense = torch.optim.Adam(student.dense_parameters(), lr=config.learning_rate)

    def run(self) -> Iterator[float]:
        """Take the steps that are left, giving the loss of each."""
        while self.step < self.steps:
            # Each step's random numbers follow from its number, so that a run goes on as if never interrupted.
            rng = np.random.default_rng((self._config.seed, self.step))
            torch.manual_seed(int(rng.integers(2**62)))
            loss = self._loss(rng)
            rate = self._config.learning_rate * self._schedule()
            for optimiser in (self._sparse, self._dense):
                optimiser.zero_grad()
                for group in optimiser.param_groups:
                    group["lr"] = rate
            loss.backward()  # type: ignore[no-untyped-call]
            self._keep_frozen()
            self._sparse.step()  # type: ignore[no-untyped-call]
            self._dense.step()
            self.step += 1
            yield float(loss.detach())
        if not torch.isfinite(self._student.pieces.weight).all():
            raise TrainingError(
                f"the vectors became infinite: lower learning_rate, which is {self._config.learning_rate:g}"
            )

    def state(self) -> dict[str, Tensor]:
        """Give all that the next step depends on, as tensors."""
        tensors = {f"student.{name}": tensor for name, tensor in self._student.state_dict().items()}
        for kind, optimiser in (("sparse", self._sparse), ("dense", self._dense)):
            for index, entry in optimiser.state_dict()["state"].items():
                tensors |= {f"{kind}.{index}.{name}": torch.as_tensor(value) for name, value in entry.items()}
        return tensors | {"step": torch.tensor(self.step)}

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Take up a state that `state` gave."""
        prefix = "student."
        self._student.load_state_dict(
            {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
        )
        for kind, optimiser in (("sparse", self._sparse), ("dense", self._dense)):
            moments: dict[int, dict[str, Any]] = {}
            for name, tensor in tensors.items():
                if name.startswith(f"{kind}."):
                    _, index, part = name.split(".")
                    is_count = kind == "sparse" and part == "step"  # SparseAdam counts in Python
                    moments.setdefault(int(index), {})[part] = int(tensor) if is_count else tensor
            optimiser.load_state_dict(optimiser.state_dict() | {"state": moments})
        self.step = int(tensors["step"])

    @cached_property
    def _pairs(self) -> NDArray[np.float64]:
        return np.cumsum(self._lessons.repeats * self._usable)

    @cached_property
    def _labelled(self) -> NDArray[np.float64]:
        assert self._lessons.labelled is not None
        return np.cumsum((self._lessons.labelled.lengths > 0).astype(np.float64))

    def _schedule(self) -> float:
        return min(1.0, (self.step + 1) / WARM_UP_STEPS) * max(FINAL_RATE, 1 - self.step / self.steps)

    def _loss(self, rng: np.random.Generator) -> Tensor:
        """Add up what the student got wrong in one batch of pairs and one of labelled texts."""
        lessons, student, config = self._lessons, self._student, self._config
        rows = _draw(rng, self._pairs, config.batch_size)
        # One English sentence may be there in several languages: it is one answer among the batch's answers.
        english, answer_of = np.unique(lessons.english_of[rows], return_inverse=True)
        answers = torch.from_numpy(lessons.vectors[english].astype(np.float32) - self._centre)
        right = torch.from_numpy(answer_of)
        means = student.pieces(*self._drop(*lessons.texts.pick(rows)))
        loss = self._answer_loss(means, answers, right)
        if not self._frozen:  # else English is not to be learnt
            english_means = student.pieces(*self._drop(*lessons.english.pick(english)))
            loss = loss + 0.5 * self._answer_loss(english_means, answers, torch.arange(len(english)))
            if lessons.scores is not None:
                scores = torch.from_numpy(lessons.scores[english])
                loss = loss + config.judge_weight * (
                    functional.binary_cross_entropy_with_logits(student.judge(means), scores[right])
                    + 0.5 * functional.binary_cross_entropy_with_logits(student.judge(english_means), scores)
                )
        if lessons.labelled is not None:
            loss = loss + config.label_weight * self._label_loss(rng)
        return loss

    def _answer_loss(self, means: Tensor, answers: Tensor, right: Tensor) -> Tensor:
        """Ask for the teacher's vector: which of the batch's it is, and how near."""
        given = self._student.answer(means)
        if self._frozen:  # the table's own vectors are wanted, with what they share and as long as they are
            given = given - torch.from_numpy(self._centre)
        directions, right_directions = functional.normalize(given, dim=1), functional.normalize(answers, dim=1)
        sharpness = self._student.sharpness.exp().clamp(max=100)
        choice = functional.cross_entropy(sharpness * directions @ right_directions.T, right)
        if self._frozen:
            distance: Tensor = (given - answers[right]).square().mean() / answers.square().mean().clamp(min=1e-12)
        else:
            distance = (1 - (directions * right_directions[right]).sum(dim=1)).mean()
        return choice / 3 + 2 * distance  # of about equal size at the end of training

    def _label_loss(self, rng: np.random.Generator) -> Tensor:
        lessons = self._lessons
        assert lessons.labelled is not None
        rows = _draw(rng, self._labelled, self._config.labelled_batch)
        means = self._student.pieces(*self._drop(*lessons.labelled.pick(rows)))
        habits = self._student.habits[torch.from_numpy(lessons.habits_of[rows])]
        targets = torch.from_numpy(lessons.targets[rows])
        logits = self._student.label(means) + habits
        losses = functional.binary_cross_entropy_with_logits(logits, (targets == 1).float(), reduction="none")
        known = targets != UNKNOWN
        return (losses * known).sum() / known.sum().clamp(min=1)

    def _drop(self, ids: Tensor, starts: Tensor) -> tuple[Tensor, Tensor]:
        """Leave out pieces by chance, but never the first of a text, so that no single piece is relied on."""
        is_first = torch.zeros(len(ids), dtype=torch.bool)
        is_first[starts] = True
        kept = (torch.rand(len(ids)) >= self._config.dropout) | is_first
        # A text now starts as many pieces earlier as were dropped before it.
        dropped = torch.cumsum(~kept, dim=0)
        return ids[kept], starts - dropped[starts]

    def _keep_frozen(self) -> None:
        """Let no gradient reach the vectors that are not to change."""
        gradient = self._student.pieces.weight.grad
        if self._frozen and gradient is not None:
            gradient = gradient.coalesce()
            is_new = gradient.indices()[0] >= self._frozen
            self._student.pieces.weight.grad = torch.sparse_coo_tensor(
                gradient.indices()[:, is_new], gradient.values()[is_new], gradient.shape, check_invariants=False
            )


def _draw(rng: np.random.Generator, cumulative: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    """Draw rows with the chances whose running sum is given."""
    places = rng.random(count) * cumulative[-1]
    return np.asarray(np.searchsorted(cumulative, places, side="right"), dtype=np.int64)


def _repeats(parallel: Parallel, config: DistillConfig) -> NDArray[np.float64]:
    """Say how often an epoch shows each pair: by the weight of its source, and more often in a language with few."""
    weights = np.array([config.sources.get(name, 1.0) for name in parallel.sources])
    names, language_of = np.unique(parallel.languages, return_inverse=True)
    sizes = np.bincount(language_of, weights, minlength=len(names))
    factors = np.clip(np.sqrt(ENOUGH_PAIRS / np.maximum(sizes, 1)), 1, MOST_REPEATS)
    return np.asarray(weights * factors[language_of], dtype=np.float64)


def _habits_of(labelled: Dataset) -> NDArray[np.int64]:
    """Number the datasets and the languages within them."""
    names = [f"{source} {language}" for source, language in zip(labelled.sources, labelled.languages, strict=True)]
    return np.asarray(np.unique(names, return_inverse=True)[1], dtype=np.int64)


def _vocabulary_sample(
    parallel: Parallel,
    texts: Sequence[str],
    english: Sequence[str],
    labelled: Dataset | None,
    labelled_texts: Sequence[str],
    config: DistillConfig,
) -> list[str]:
    """Take about as many letters of every language, half of them from labelled texts: users write more like those."""
    rng = np.random.default_rng(config.seed)
    codes = [language.partition("-")[0] for language in labelled.languages] if labelled else []
    written = _by_language(dict(zip(labelled_texts, codes, strict=True)).items(), rng)
    translated = _by_language([*zip(texts, parallel.languages, strict=True), *((text, "en") for text in english)], rng)
    sample = []
    for language in sorted(written.keys() | translated.keys()):
        letters = config.letters * (3 if language == "en" else 1)  # the teacher's language, and the web's
        first = _so_many_letters(written.get(language, []), letters // 2)
        sample += first + _so_many_letters(translated.get(language, []), letters - sum(map(len, first)))
    return sample


def _by_language(pairs: Iterable[tuple[str, str]], rng: np.random.Generator) -> dict[str, list[str]]:
    """Sort texts by language, in random order."""
    listed = list(pairs)
    result: dict[str, list[str]] = {}
    for row in rng.permutation(len(listed)).tolist():
        text, language = listed[row]
        result.setdefault(language, []).append(text)
    return result


def _so_many_letters(texts: Sequence[str], letters: int) -> list[str]:
    sizes = np.cumsum([len(text) for text in texts])
    return list(texts[: int(np.searchsorted(sizes, letters))])


def _vocabulary(sample: Sequence[str], config: DistillConfig, work: Path, say: Say) -> Tokenizer:
    from tokenizers import Tokenizer

    path = work / f"tokenizer-{_digest(np.frombuffer(chr(0).join(sample).encode(), np.uint8))}-{config.vocabulary}.json"
    if not path.exists():
        say(f"learning a vocabulary from {len(sample):,} texts")
        pictures = [sign for sign in emoji_names().texts if len(sign) == 1]
        draft = path.with_suffix(".draft")
        train_tokenizer(sample, config.vocabulary, pictures).save(str(draft), pretty=False)
        draft.replace(path)
    return Tokenizer.from_file(str(path))


def _teach(teacher: Encoder, english: Sequence[str], work: Path, on_progress: Progress | None) -> NDArray[np.float16]:
    """Ask the teacher for the mean token vector of every sentence."""

    def means(texts: list[str]) -> NDArray[np.float32]:
        ragged = teacher.encode(texts)
        lengths = np.diff(ragged.splits)
        result = np.zeros((len(texts), teacher.dim), dtype=np.float32)
        filled = lengths > 0
        if filled.any():
            sums = np.add.reduceat(ragged.vectors, ragged.splits[:-1][filled], axis=0)
            result[filled] = sums / lengths[filled, None]
        return result

    return _answers(means, english, teacher.dim, work / f"teacher-{teacher.fingerprint}", on_progress)


def _judge(
    judge: EmotionClassifier, english: Sequence[str], work: Path, on_progress: Progress | None
) -> NDArray[np.float32]:
    """Ask the judge for its scores of every sentence."""
    name = hashlib.sha256(judge.state.graph + judge.encoder.fingerprint.encode()).hexdigest()[:16]
    found = _answers(judge.predict_proba, english, len(judge.labels_), work / f"judge-{name}", on_progress)
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
        if not path.exists():
            draft = path.with_suffix(".draft.npy")
            np.save(draft, ask(chunk).astype(np.float16))
            draft.replace(path)
        result[start : start + len(chunk)] = np.load(path)
        if on_progress:
            on_progress(start + len(chunk), len(texts))
    return result


def _means(table: NDArray[np.float32], bags: Bags) -> NDArray[np.float32]:
    """Give the mean vector of every text; of one without pieces, zeros."""
    ids, starts = torch.from_numpy(bags.ids.astype(np.int64)), torch.from_numpy(bags.splits[:-1])
    return functional.embedding_bag(ids, torch.from_numpy(table), starts, mode="mean").numpy()


def _to_unit_spread(table: NDArray[np.float32], texts: Bags) -> NDArray[np.float32]:
    """Scale the table so that the numbers a head sees have a spread of about 1."""
    sample = table[texts.ids[:: max(1, len(texts.ids) // 100_000)]]
    return np.asarray(table / max(float(sample.std()), 1e-12), dtype=np.float32)


def _digest(array: NDArray[Any]) -> str:
    # The buffer itself, not a copy of it: the teacher's vectors are large.
    return hashlib.sha256(np.ascontiguousarray(array).data).hexdigest()[:16]
