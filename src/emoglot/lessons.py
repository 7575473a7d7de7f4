"""Lessons: all that a student learns from, as pieces, the teacher's vectors, the judge's scores and labels."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from emoglot.config import DistillConfig
from emoglot.data.dataset import Dataset
from emoglot.encoders.base import splits_of
from emoglot.encoders.pieces import UNKNOWN_ID
from emoglot.labels import Targets
from emoglot.parallel import Parallel

if TYPE_CHECKING:
    from tokenizers import Tokenizer

# Texts cut into pieces at a time: the library keeps a kilobyte of each.
TOKENISING_CHUNK = 65536
# A language with few pairs is seen up to this many times an epoch; beyond, its rare pieces are learnt by heart.
MOST_REPEATS = 3.0
# A language with this many weighted pairs is seen as often as it comes.
ENOUGH_PAIRS = 20_000


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

    def means(self, table: NDArray[np.float32]) -> NDArray[np.float32]:
        """Give the mean vector of every text; of one without pieces, zeros."""
        ids, starts = torch.from_numpy(self.ids.astype(np.int64)), torch.from_numpy(self.splits[:-1])
        return functional.embedding_bag(ids, torch.from_numpy(table), starts, mode="mean").numpy()


@dataclass(frozen=True)
class Lessons:
    """All that a student learns from."""

    texts: Bags
    english: Bags
    english_of: NDArray[np.int64]
    repeats: NDArray[np.float64]  # (texts,): how often an epoch shows each pair, on average
    vectors: NDArray[np.float16]  # (english, teacher's dim)
    scores: NDArray[np.float32] | None = None  # (english, judge's labels)
    labelled: Bags | None = None
    targets: Targets = field(default_factory=lambda: np.empty((0, 0), np.int8))
    habits_of: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))  # whose habits a text follows

    def digests(self) -> list[str]:
        """Tell these lessons from any others."""
        optional = (self.scores, self.labelled.ids if self.labelled else None)
        arrays = (self.texts.ids, self.english_of, self.repeats, self.vectors, self.targets, self.habits_of, *optional)
        return ["" if array is None else _digest(array) for array in arrays]


def repeats_of(parallel: Parallel, config: DistillConfig) -> NDArray[np.float64]:
    """Say how often an epoch shows each pair: by the weight of its source, and more often in a language with few."""
    weights = np.array([config.sources.get(name, 1.0) for name in parallel.sources])
    names, language_of = np.unique(parallel.languages, return_inverse=True)
    sizes = np.bincount(language_of, weights, minlength=len(names))
    factors = np.clip(np.sqrt(ENOUGH_PAIRS / np.maximum(sizes, 1)), 1, MOST_REPEATS)
    return np.asarray(weights * factors[language_of], dtype=np.float64)


def habits_of(labelled: Dataset) -> NDArray[np.int64]:
    """Number the datasets and the languages within them."""
    names = [f"{source} {language}" for source, language in zip(labelled.sources, labelled.languages, strict=True)]
    return np.asarray(np.unique(names, return_inverse=True)[1], dtype=np.int64)


def _digest(array: NDArray[Any]) -> str:
    # The buffer itself, not a copy of it: the teacher's vectors are large.
    return hashlib.sha256(np.ascontiguousarray(array).data).hexdigest()[:16]
