"""The scorer: an encoder, a head and n-grams at work on a list of texts, pieces of the list side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from emoglot.encoders import Encoder, alphabet_of, runs_beside_itself
from emoglot.errors import ModelError
from emoglot.features import Features, extract_features
from emoglot.lanes import available_cores, in_order
from emoglot.persist import ModelState
from emoglot.runtime import ALL_CORES, HeadRuntime, score
from emoglot.text import normalise_text

# Texts scored at a time, however long the list: twice as many are no faster, and take more memory.
CHUNK = 256
LEAST_CHUNK = 64  # a thread for fewer would cost more than it saves
# Pieces at once: a third of the work on a text is Python's, which takes turns, so a fourth would only wait.
MOST_LANES = 3


@dataclass(frozen=True)
class Scored:
    """Some texts of a list, regular, with their scores and token vectors."""

    scores: NDArray[np.float32]  # (texts, labels)
    texts: Sequence[str]
    features: Features


class Scorer:
    """Scores texts with a trained model."""

    def __init__(self, state: ModelState, encoder: Encoder) -> None:
        self._encoder = encoder
        self._wide = state.wide
        self._labels = len(state.labels)
        self._alphabet = alphabet_of(encoder)
        self._lanes = min(MOST_LANES, len(available_cores())) if runs_beside_itself(encoder) else 1
        # Where pieces are scored side by side, each has one thread.
        self._head = HeadRuntime(state.graph, 1 if self._lanes > 1 else ALL_CORES)
        shape = (self._head.dim, self._head.width)
        if shape != (encoder.dim, len(state.outputs)):
            raise ModelError(
                f"the network maps {shape[0]} dimensions to {shape[1]} labels, "
                f"the encoder gives {encoder.dim} and the folder names {len(state.outputs)}: the folder is damaged"
            )

    def run(self, texts: Sequence[str]) -> Iterator[Scored]:
        """Score texts piece by piece, so that memory does not grow with the list."""
        size = min(CHUNK, max(LEAST_CHUNK, -(-len(texts) // self._lanes)))
        pieces = [texts[start : start + size] for start in range(0, len(texts), size)]
        if self._lanes == 1 or len(pieces) < 2:
            yield from map(self._score, pieces)
            return
        with ThreadPoolExecutor(self._lanes) as pool:
            for _, scored in in_order(lambda piece: pool.submit(self._score, piece), pieces, ahead=self._lanes):
                yield scored

    def attention(self, text: str) -> tuple[Features, NDArray[np.float32]]:
        """Give the tokens of one regular text, and the weight of each."""
        features = extract_features(self._encoder, [text])
        return features, self._head.attention(features, 0)

    def _score(self, texts: Sequence[str]) -> Scored:
        regular = [normalise_text(text) for text in texts]
        features = extract_features(self._encoder, regular)
        scores = score(self._head, self._wide, features, regular)[:, : self._labels]
        if self._alphabet:
            # Of a text in foreign letters, the rest would be a guess.
            scores[[self._alphabet.is_foreign(text) for text in regular]] = 0
        return Scored(scores, regular, features)


def own_spans(spans: NDArray[np.int32]) -> NDArray[np.int32]:
    """Give each token the text that it has to itself.

    Of those that begin at one place, as the mark of a word's beginning does with its first letter, the last has it.
    """
    result = np.array(spans)
    is_mark = np.flatnonzero(spans[:-1, 0] == spans[1:, 0])
    result[is_mark, 1] = spans[is_mark, 0]
    return result
