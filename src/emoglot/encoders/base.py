"""What an encoder is: text in, one vector per token out, each token knowing the characters it came from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Ragged:
    """The tokens of several texts, one text after another."""

    vectors: NDArray[np.float32]  # (tokens, dim)
    spans: NDArray[np.int32]  # (tokens, 2): first and past-the-last character of the encoded text
    splits: NDArray[np.int64]  # (texts + 1,): text i owns the tokens splits[i] to splits[i + 1]

    def __len__(self) -> int:
        return len(self.splits) - 1

    @classmethod
    def join(cls, parts: Sequence[Ragged], dim: int) -> Ragged:
        """Put the texts of several parts behind one another."""
        lengths = [np.diff(part.splits) for part in parts]
        return cls(
            np.concatenate([np.empty((0, dim), np.float32), *(part.vectors for part in parts)]),
            np.concatenate([np.empty((0, 2), np.int32), *(part.spans for part in parts)]),
            splits_of(np.concatenate([np.empty(0, np.int64), *lengths])),
        )


@runtime_checkable
class Encoder(Protocol):
    """Turns normalised text into token vectors; frozen, so the same text always gives the same vectors."""

    @property
    def name(self) -> str:
        """What a user calls it: a model stores this to find its encoder again."""
        ...

    @property
    def fingerprint(self) -> str:
        """Changes whenever the vectors of any text could change."""
        ...

    @property
    def dim(self) -> int:
        """The length of a token vector."""
        ...

    def count_tokens(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Say how long each text is, for batching."""
        ...

    def encode(self, texts: Sequence[str]) -> Ragged:
        """Encode one batch; a text without tokens gets none."""
        ...


def splits_of(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Turn lengths into row splits."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])
