"""The scorer: an encoder, a head and n-grams at work on a list of texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from emoglot.encoders import Encoder, alphabet_of
from emoglot.errors import ModelError
from emoglot.features import Features, extract_features
from emoglot.persist import ModelState
from emoglot.runtime import HeadRuntime, score
from emoglot.text import normalise_text

# Texts scored at a time, however long the list: twice as many are no faster, and take more memory.
CHUNK = 256


@dataclass(frozen=True)
class Scored:
    """Some texts of a list: their scores, and what could be read of them."""

    scores: NDArray[np.float32]  # (texts, labels), 0 where nothing was read
    sentiment: NDArray[np.float32]  # (texts, outputs of sentiment)
    is_read: NDArray[np.bool_]
    unreadable: NDArray[np.bool_]
    truncated: NDArray[np.bool_]

    @classmethod
    def empty(cls, labels: int, sentiment: int) -> Scored:
        """Return what is said of no texts."""
        scores = np.empty((0, labels + sentiment), np.float32)
        flags = np.empty(0, np.bool_)
        return cls(scores[:, :labels], scores[:, labels:], flags, flags, flags)

    @classmethod
    def columns(cls) -> list[str]:
        """Return the names of the arrays."""
        return [item.name for item in fields(cls)]


class Scorer:
    """Scores texts with a trained model."""

    def __init__(self, state: ModelState, encoder: Encoder) -> None:
        self._encoder = encoder
        self._wide = state.wide
        self._labels = len(state.labels)
        self._alphabet = alphabet_of(encoder)
        self._head = HeadRuntime(state.graph)
        shape = (self._head.dim, self._head.width)
        if shape != (encoder.dim, len(state.outputs)):
            raise ModelError(
                f"the network maps {shape[0]} dimensions to {shape[1]} labels, "
                f"the encoder gives {encoder.dim} and the folder names {len(state.outputs)}: the folder is damaged"
            )

    def run(self, texts: Sequence[str]) -> Iterator[Scored]:
        """Score texts piece by piece, so that memory does not grow with the list."""
        return map(self._score, (texts[start : start + CHUNK] for start in range(0, len(texts), CHUNK)))

    def attention(self, text: str) -> tuple[Features, NDArray[np.float32]]:
        """Give the tokens of one regular text, and the weight of each."""
        features = extract_features(self._encoder, [text])
        return features, self._head.attention(features, 0)

    def _score(self, texts: Sequence[str]) -> Scored:
        regular = [normalise_text(text) for text in texts]
        features = extract_features(self._encoder, regular)
        # Of a text in foreign letters, the rest would be a guess.
        is_foreign = [self._alphabet is not None and self._alphabet.is_foreign(text) for text in regular]
        is_read = (features.lengths > 0) & ~np.array(is_foreign, dtype=np.bool_)
        scores = score(self._head, self._wide, features, regular) * is_read[:, None]
        return Scored(
            scores[:, : self._labels],
            scores[:, self._labels :],
            is_read,
            ~is_read & np.array([bool(text) for text in regular], dtype=np.bool_),
            np.array([_is_truncated(text, features.spans(row)) for row, text in enumerate(regular)], dtype=np.bool_),
        )


def _is_truncated(text: str, spans: NDArray[np.int32]) -> bool:
    """Say whether letters or digits follow the last token; tokenizers may drop other signs at the end."""
    return bool(len(spans)) and any(character.isalnum() for character in text[spans[-1, 1] :])


def own_spans(spans: NDArray[np.int32]) -> NDArray[np.int32]:
    """Give each token the text that it has to itself.

    Of those that begin at one place, as the mark of a word's beginning does with its first letter, the last has it.
    """
    result = np.array(spans)
    is_mark = np.flatnonzero(spans[:-1, 0] == spans[1:, 0])
    result[is_mark, 1] = spans[is_mark, 0]
    return result
