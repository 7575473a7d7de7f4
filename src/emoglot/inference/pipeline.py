"""The pipeline from texts to scores: normalisation, encoder, head and n-grams."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from emoglot.encoders.base import Encoder
from emoglot.encoders.features import extract_features
from emoglot.encoders.registry import alphabet_of
from emoglot.errors import ModelError
from emoglot.inference.folder import ModelState
from emoglot.inference.head import HeadRuntime, score_features
from emoglot.inference.prediction import Scores, TokenWeight
from emoglot.text.limit import cut
from emoglot.text.normalise import normalise, normalise_text

# Texts per chunk: larger chunks are not faster and need more memory.
CHUNK = 256


class Pipeline:
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
                f"the network maps {shape[0]} dimensions to {shape[1]} labels, but the encoder has {encoder.dim} "
                f"dimensions and the folder {len(state.outputs)} labels: the folder is damaged"
            )

    def run(self, texts: Sequence[str]) -> Iterator[Scores]:
        """Yield the scores of texts chunk by chunk, which bounds memory."""
        return map(self._score, (texts[start : start + CHUNK] for start in range(0, len(texts), CHUNK)))

    def explain(self, text: str) -> tuple[TokenWeight, ...]:
        """Return every token of a text that is read, with its attention weight."""
        beginning, _ = cut(text)
        normalised = normalise(beginning)
        features = extract_features(self._encoder, [normalised.text])
        weights = self._head.attention(features, 0).tolist()
        tokens = []
        for (first, last), weight in zip(own_spans(features.spans(0)).tolist(), weights, strict=True):
            start, end = _trim(text, *normalised.original_span(first, last))
            tokens.append(TokenWeight(text[start:end], weight, start, end))
        return tuple(tokens)

    def _score(self, texts: Sequence[str]) -> Scores:
        beginnings, is_cut = zip(*(cut(text) for text in texts), strict=True)
        regular = [normalise_text(text) for text in beginnings]
        features = extract_features(self._encoder, regular)
        # A text whose letters are mostly unknown to the encoder is not scored.
        is_foreign = [self._alphabet is not None and self._alphabet.is_foreign(text) for text in regular]
        is_read = (features.lengths > 0) & ~np.array(is_foreign, dtype=np.bool_)
        scores = score_features(self._head, self._wide, features, regular) * is_read[:, None]
        return Scores(
            scores[:, : self._labels],
            scores[:, self._labels :],
            is_read,
            ~is_read & np.array([bool(text) for text in regular], dtype=np.bool_),
            np.array([_is_truncated(text, features.spans(row)) for row, text in enumerate(regular)], dtype=np.bool_)
            | (np.array(is_cut, dtype=np.bool_) & is_read),
        )


def _is_truncated(text: str, spans: NDArray[np.int32]) -> bool:
    """Return whether letters or digits follow the last token; tokenizers may drop other characters there."""
    return bool(len(spans)) and any(character.isalnum() for character in text[spans[-1, 1] :])


def own_spans(spans: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return spans that do not overlap: of tokens that begin at one place, the last keeps its span.

    A word-beginning mark, for example, begins where the first letter of the word does.
    """
    result = np.array(spans)
    is_mark = np.flatnonzero(spans[:-1, 0] == spans[1:, 0])
    result[is_mark, 1] = spans[is_mark, 0]
    return result


def _trim(text: str, start: int, end: int) -> tuple[int, int]:
    """Leave out the white space that subword tokens carry at their ends."""
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end
