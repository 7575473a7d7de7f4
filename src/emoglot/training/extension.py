"""Adds a language to an encoder with translations: its words become tokens with trained vectors.

The layers are frozen. The vectors of the new words are trained so that the mean state of a translation equals that of
its English. Texts without such a word are encoded as before.
"""

from __future__ import annotations

import copy
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from emoglot.config import ExtensionConfig
from emoglot.data.parallel import Parallel
from emoglot.encoders.base import Encoder
from emoglot.encoders.bert_folder import CONFIG_FILE
from emoglot.encoders.onnx import OnnxEncoder
from emoglot.encoders.registry import alphabet_of, load_trainable
from emoglot.errors import TrainingError, UsageError, needs_extra
from emoglot.text.normalise import normalise_text
from emoglot.text.patterns import JOINERS, MARKS

with needs_extra("train", "adding a language"):
    import torch
    from tokenizers import AddedToken
    from torch import Tensor, nn
    from torch.nn import functional

    from emoglot.encoders.export import export_encoder
    from emoglot.encoders.features import Progress, length_sorted_batches
    from emoglot.encoders.hub import HubEncoder
    from emoglot.training.checkpoint import Checkpoint, optimiser_tensors, restore_optimiser
    from emoglot.training.finetune import TokenIds
    from emoglot.training.trainer import SCORING_BUDGET, pooled_batches

# Marks are parts of letters, in many scripts the vowels.
_LETTER = rf"(?:[^\W\d_]|[{MARKS}{JOINERS}])"
LETTER, WORD = re.compile(_LETTER), re.compile(rf"{_LETTER}+(?:['’ʼ-]{_LETTER}+)*")
LEAST_TEXTS = 2  # with a word; fewer are too little to train its vector
LONGEST = 64  # tokens of a text

OnMessage = Callable[[str], None]


def extend(
    parallel: Parallel,
    base: Encoder,
    config: ExtensionConfig,
    out: Path,
    on_message: OnMessage = lambda message: None,
    on_step: Progress = lambda done, total: None,
) -> Path:
    """Write an encoder extended by the languages of the translations; the same call resumes after an interruption."""
    if not isinstance(base, OnnxEncoder):
        raise UsageError(
            f"only an XLM-R that runs without torch can be extended, got {base.name!r}: "
            "export one from the hub with `emoglot encoders export`"
        )
    encoder = load_trainable(base)
    encoder.model.cpu()
    training, held_out = parallel.split()
    texts = [normalise_text(text) for text in training.texts]
    english = [normalise_text(training.english[index]) for index in training.english_of.tolist()]
    words = choose_words(encoder, texts, english, config.words)
    if not words:
        raise TrainingError(
            "the translations must contain words that the encoder does not know, got none: there is nothing to add"
        )
    on_message(f"{len(texts):,} pairs, {len(words):,} new words")
    wider = _with_words(encoder, words)
    work = out.with_name(f"{out.name}.work")
    work.mkdir(parents=True, exist_ok=True)
    checkpoint = Checkpoint(work / "words", [encoder.fingerprint, asdict(config), words, texts, english])
    _Course(wider, len(words), texts, mean_states(encoder, english), config).run(checkpoint, on_message, on_step)
    if len(held_out):
        on_message(f"{len(held_out):,} held-out pairs: {_report(encoder, wider, held_out)}")
    is_int8 = not (base.folder / CONFIG_FILE).is_file()
    extends = (base.fingerprint, *base.description.extends)
    return export_encoder(wider, out, out.name, "int8" if is_int8 else "none", extends)


def choose_words(encoder: HubEncoder, texts: Sequence[str], english: Sequence[str], most: int) -> list[str]:
    """Return the new tokens: letters that the encoder lacks, then words that it splits, by the tokens they save.

    A word that also occurs in the English, such as a name, is left out.
    """
    foreign = {word for text in english for word in WORD.findall(text)}
    foreign |= encoder.tokenizer.get_vocab().keys()  # already a token
    count = Counter(word for text in texts for word in {*WORD.findall(text)} - foreign)
    common = [word for word, number in count.items() if number >= LEAST_TEXTS]
    pieces = [len(ids) - sum(encoder.frame) for ids in encoder.token_ids(common, LONGEST)]
    alphabet = alphabet_of(encoder)
    assert alphabet is not None
    letters = sorted(sign for sign in {*"".join(texts)} if LETTER.fullmatch(sign) and alphabet.is_foreign(sign))
    gain = {
        word: count[word] * (number - 1 + len({*word} & {*letters}))
        for word, number in zip(common, pieces, strict=True)
        if len(word) > 1
    }
    by_gain = sorted((word for word in gain if gain[word] > 0), key=lambda word: (-gain[word], word))
    return [*letters, *by_gain][:most]


def _with_words(encoder: HubEncoder, words: Sequence[str]) -> HubEncoder:
    """Return an encoder with these words as tokens, whose vectors are initially the means of their pieces."""
    before, after = encoder.frame
    pieces = [ids[before : len(ids) - after] for ids in encoder.token_ids(words, LONGEST)]
    wider = encoder.with_model(encoder.fresh_model(dropout=0.0).eval())
    wider.tokenizer = copy.deepcopy(encoder.tokenizer)
    # Whole words only, except letters: a word of one language may be part of a word of another.
    wider.tokenizer.add_tokens([AddedToken(word, single_word=len(word) > 1, normalized=True) for word in words])
    first = len(encoder.tokenizer)
    assert wider.tokenizer.convert_tokens_to_ids(list(words)) == list(range(first, first + len(words)))
    old = encoder.model.get_input_embeddings().weight.detach()[:first]
    new = torch.stack([old[torch.from_numpy(ids)].mean(dim=0) for ids in pieces])
    table = nn.Embedding.from_pretrained(torch.cat([old, new]))  # type: ignore[no-untyped-call]
    wider.model.set_input_embeddings(table)
    wider.model.config.vocab_size = len(table.weight)
    return wider


def _read(encoder: HubEncoder, texts: Sequence[str]) -> TokenIds:
    return TokenIds(tuple(encoder.token_ids(texts, LONGEST)), sum(encoder.frame))


def mean_states(encoder: HubEncoder, texts: Sequence[str]) -> NDArray[np.float32]:
    """Return the mean state of every text, special tokens included, without gradients."""
    inputs = _read(encoder, texts)
    means = np.zeros((len(texts), encoder.dim), dtype=np.float32)
    with torch.inference_mode():
        for rows in length_sorted_batches(inputs.lengths, SCORING_BUDGET):
            ids, lengths = inputs.pad(rows)
            vectors = encoder.model.get_input_embeddings()(torch.from_numpy(ids))
            means[rows] = _mean(encoder, vectors, torch.from_numpy(lengths)).numpy()
    return means


def _mean(encoder: HubEncoder, vectors: Tensor, lengths: Tensor) -> Tensor:
    """Return the mean states of texts, given their padded token vectors."""
    mask = torch.arange(vectors.shape[1]) < lengths[:, None]
    states = encoder.model(inputs_embeds=vectors, attention_mask=mask.long()).last_hidden_state
    total: Tensor = (states * mask[..., None]).sum(dim=1)
    return total / lengths[:, None]


class _Course:
    """The training of the new vectors."""

    def __init__(
        self,
        encoder: HubEncoder,
        count: int,
        texts: Sequence[str],
        answers: NDArray[np.float32],
        config: ExtensionConfig,
    ) -> None:
        self._encoder, self._config = encoder, config
        self._inputs, self._answers = _read(encoder, texts), torch.from_numpy(answers)
        # A distance of 1 is that between unrelated sentences.
        spread = float((self._answers - self._answers.mean(dim=0)).square().sum(dim=1).mean())
        self._spread = max(spread, 1e-12)
        self._table = encoder.model.get_input_embeddings().weight
        self._first = len(self._table) - count
        self._new = nn.Parameter(self._table[self._first :].clone())
        encoder.model.requires_grad_(False)
        self._optimiser = torch.optim.Adam([self._new], lr=config.learning_rate)
        self._done = 0

    def run(self, checkpoint: Checkpoint, on_message: OnMessage, on_step: Progress) -> None:
        """Run the remaining steps and write the new vectors to the encoder."""
        if found := checkpoint.read():
            self._restore(found[0])
            on_message(f"resuming from step {self._done:,}")
        batches = self._batches()
        for rows in batches[self._done :]:
            for group in self._optimiser.param_groups:
                group["lr"] = self._config.learning_rate * (1 - self._done / len(batches))
            loss = self._loss(rows)
            self._optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            self._optimiser.step()
            self._done += 1
            on_step(self._done, len(batches))
            if checkpoint.is_due():
                checkpoint.write(self._state(), [])
                on_message(f"step {self._done:,} of {len(batches):,}: distance {float(loss.detach()):.2f}")
        if not torch.isfinite(self._new).all():
            raise TrainingError(f"the vectors became infinite: lower learning_rate from {self._config.learning_rate:g}")
        with torch.no_grad():
            self._table[self._first :] = self._new

    def _batches(self) -> list[NDArray[np.int64]]:
        """Return the rows of every step; rows without a new word are left out."""
        has_new = np.array([bool((ids >= self._first).any()) for ids in self._inputs.rows])
        useful = np.flatnonzero(has_new)
        orders = [
            useful[np.random.default_rng((self._config.seed, epoch)).permutation(len(useful))]
            for epoch in range(self._config.epochs)
        ]
        return [
            batch for order in orders for batch in pooled_batches(order, self._inputs.lengths, self._config.batch_size)
        ]

    def _loss(self, rows: NDArray[np.int64]) -> Tensor:
        padded, lengths = self._inputs.pad(rows)
        ids = torch.from_numpy(padded)
        is_new = (ids >= self._first)[..., None]
        new = functional.embedding((ids - self._first).clamp(min=0), self._new)
        vectors = torch.where(is_new, new, functional.embedding(ids, self._table))
        means = _mean(self._encoder, vectors, torch.from_numpy(lengths))
        return (means - self._answers[rows]).square().sum(dim=1).mean() / self._spread

    def _state(self) -> dict[str, Tensor]:
        return {"new": self._new, "done": torch.tensor(self._done), **optimiser_tensors(self._optimiser)}

    def _restore(self, tensors: dict[str, Tensor]) -> None:
        with torch.no_grad():
            self._new.copy_(tensors["new"])
        self._done = int(tensors["done"])
        restore_optimiser(self._optimiser, tensors)


def _report(old: HubEncoder, new: HubEncoder, pairs: Parallel) -> str:
    """Return a message with the distance of translations from their English, before and after."""
    english = mean_states(old, [normalise_text(text) for text in pairs.english])
    answers = english[pairs.english_of]
    texts = [normalise_text(text) for text in pairs.texts]
    spread = np.square(answers - answers.mean(axis=0)).sum(axis=1).mean()
    before, after = (
        np.square(mean_states(encoder, texts) - answers).sum(axis=1).mean() / max(spread, 1e-12)
        for encoder in (old, new)
    )
    return f"distance from their English {before:.2f} before, {after:.2f} after"
