"""A deterministic encoder without weights, of hashed character trigrams, for tests and dry runs."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from emoglot.encoders.base import Ragged, splits_of
from emoglot.text.limit import READ_TOKENS

_TOKEN = re.compile(r"\S+")
_MAX_LETTERS = 64  # of a word that are read


class TinyEncoder:
    """Encodes a word as the mean of random vectors seeded by its character trigrams."""

    name = "tiny"
    fingerprint = "tiny-1"
    dim = 32

    def count_tokens(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Count the words."""
        return np.array([len(_words(text)) for text in texts], dtype=np.int64)

    def encode(self, texts: Sequence[str]) -> Ragged:
        """Hash the words of every text."""
        words = [_words(text) for text in texts]
        flat = [match for row in words for match in row]
        return Ragged(
            np.array([_vector(match.group()) for match in flat], dtype=np.float32).reshape(-1, self.dim),
            np.array([match.span() for match in flat], dtype=np.int32).reshape(-1, 2),
            splits_of(np.array([len(row) for row in words], dtype=np.int64)),
        )


def _words(text: str) -> list[re.Match[str]]:
    return list(islice(_TOKEN.finditer(text), READ_TOKENS))


@lru_cache(maxsize=65536)
def _vector(word: str) -> NDArray[np.float32]:
    padded = f"<{word[:_MAX_LETTERS].casefold()}>"
    trigrams = [padded[start : start + 3] for start in range(len(padded) - 2)]
    seeds = [zlib.crc32(trigram.encode("utf-8", "surrogatepass")) for trigram in trigrams]
    vectors = [np.random.default_rng(seed).standard_normal(TinyEncoder.dim) for seed in seeds]
    return np.asarray(np.mean(vectors, axis=0), dtype=np.float32)
