"""The protocol of encoders, and the tokens that they return."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Ragged:
    """The tokens of several texts, concatenated."""

    vectors: NDArray[np.float32]  # (tokens, dim)
    spans: NDArray[np.int32]  # (tokens, 2): start and end in the encoded text
    splits: NDArray[np.int64]  # (texts + 1,): text i has the tokens splits[i] to splits[i + 1]

    def __len__(self) -> int:
        return len(self.splits) - 1

    @classmethod
    def join(cls, parts: Sequence[Ragged], dim: int) -> Ragged:
        """Return the concatenated texts of several parts."""
        lengths = [np.diff(part.splits) for part in parts]
        return cls(
            np.concatenate([np.empty((0, dim), np.float32), *(part.vectors for part in parts)]),
            np.concatenate([np.empty((0, 2), np.int32), *(part.spans for part in parts)]),
            splits_of(np.concatenate([np.empty(0, np.int64), *lengths])),
        )


@runtime_checkable
class Encoder(Protocol):
    """Maps normalised text to token vectors, always the same for the same text."""

    @property
    def name(self) -> str:
        """The name by which a model finds its encoder."""

    @property
    def fingerprint(self) -> str:
        """A hash that changes whenever the vectors of any text could change."""

    @property
    def dim(self) -> int:
        """The length of a token vector."""

    def count_tokens(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Return the number of tokens of each text, for batching."""

    def encode(self, texts: Sequence[str]) -> Ragged:
        """Encode one batch; a text may have no tokens."""


def splits_of(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the row splits of lengths."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])
