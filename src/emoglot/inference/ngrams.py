"""The wide channel: a linear model on hashed word and character n-grams, averaged with the network's logits.

It is not in the paper. Trained separately, it makes different mistakes than a network on frozen vectors, so the mean of
both is better than either. It knows only the languages it was trained on; its weight in a text depends on the share of
the text's n-grams that it knows.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emoglot.config import WideConfig
from emoglot.encoders.quantise import quantise_rows
from emoglot.text.letters import BASE, MIXER
from emoglot.text.normalise import UNREAD

CHARACTERS = np.uint64(1 << 63)
_SPACE = ord(" ")
_LEVELS = 127  # of int8
_UNREAD = re.compile("|".join(UNREAD))

# The channel has its full weight in a text if at least KNOWN_ENOUGH of its n-grams are known, and none below
# KNOWN_LITTLE. In a language of the training data nine in ten texts are above the first (median 0.7); in one with other
# words and another script nine in ten are below the second.
KNOWN_ENOUGH = 0.5
KNOWN_LITTLE = 0.2


@dataclass(frozen=True)
class Counts:
    """The n-grams of texts with their counts, sorted by text, bucket and sign."""

    rows: NDArray[np.int64]
    buckets: NDArray[np.int64]
    signs: NDArray[np.uint8]  # distinguish the n-grams of one bucket
    counts: NDArray[np.int64]
    texts: int


@dataclass(frozen=True)
class Ngrams:
    """The known n-grams: at most one in each bucket."""

    signs: NDArray[np.uint8]  # (buckets,)
    idf: NDArray[np.float16]  # (buckets,); 0 where there is none
    unknown_idf: NDArray[np.float16]  # (1,), as if it occurred in one text

    def are_known(self, counts: Counts) -> NDArray[np.bool_]:
        """Return which of the counted n-grams are known."""
        same_sign: NDArray[np.bool_] = self.signs[counts.buckets] == counts.signs
        return same_sign & (self.idf[counts.buckets] > 0)

    def tf_idf(self, counts: Counts, known: NDArray[np.bool_]) -> NDArray[np.float32]:
        """Return (1 + ln count) × idf, with each text scaled to length 1, unknown n-grams included."""
        idf = np.where(known, self.idf[counts.buckets], self.unknown_idf).astype(np.float64)
        values = (1 + np.log(counts.counts)) * idf
        norms = np.sqrt(np.bincount(counts.rows, values**2, minlength=counts.texts))
        return np.asarray(values / norms[counts.rows], dtype=np.float32)


@dataclass(frozen=True)
class WideChannel:
    """A trained linear model, in int8 as it is stored, so that saving does not change a score."""

    config: WideConfig
    ngrams: Ngrams
    weights: NDArray[np.int8]  # (buckets, labels), in steps
    steps: NDArray[np.float16]  # (buckets,)
    bias: NDArray[np.float32]  # (labels,)

    @classmethod
    def of(
        cls, config: WideConfig, ngrams: Ngrams, weights: NDArray[np.float32], bias: NDArray[np.float32]
    ) -> WideChannel:
        """Return a channel with these weights (buckets, labels), quantised."""
        quantised, steps = quantise_rows(weights, _LEVELS)
        return cls(config, ngrams, quantised, steps.astype(np.float16), bias.astype(np.float32))

    def weights_of(self, buckets: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the weights of some buckets in float32."""
        return self.weights[buckets].astype(np.float32) * self.steps[buckets, None].astype(np.float32)

    def weight_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the weights as they are stored."""
        return {"weights": self.weights, "steps": self.steps, "bias": self.bias}

    @property
    def all_weights(self) -> NDArray[np.float32]:
        """The weights of all buckets in float32."""
        return self.weights_of(np.arange(len(self.weights)))

    def logits(self, texts: Sequence[str]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return the logits (texts, labels) of normalised texts, and the known share of each text's n-grams."""
        counts = count_ngrams(texts, self.config)
        known = self.ngrams.are_known(counts)
        rows, buckets, values = counts.rows[known], counts.buckets[known], self.ngrams.tf_idf(counts, known)[known]
        logits = np.tile(self.bias, (counts.texts, 1))
        if len(values):
            firsts = np.flatnonzero(np.diff(rows, prepend=-1))
            products = values[:, None] * self.weights_of(buckets)
            logits[rows[firsts]] += np.add.reduceat(products, firsts, axis=0)
        return logits, np.bincount(rows, values**2, minlength=counts.texts).astype(np.float32)

    def join(self, network: NDArray[np.float32], texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the weighted mean of both channels; where no n-gram of a text is known, the network's logits."""
        logits, known = self.logits(texts)
        weight = self.config.weight * np.clip((known - KNOWN_LITTLE) / (KNOWN_ENOUGH - KNOWN_LITTLE), 0, 1)[:, None]
        return np.asarray((1 - weight) * network + weight * logits, dtype=np.float32)

    def rescaled(self, scale: NDArray[np.float32], shift: NDArray[np.float32]) -> WideChannel:
        """Return a channel whose logits are `scale` × these + `shift`, per label."""
        return WideChannel.of(self.config, self.ngrams, self.all_weights * scale, self.bias * scale + shift)


def count_ngrams(texts: Sequence[str], config: WideConfig) -> Counts:
    """Count the word n-grams of 1 to `word_ngrams` and the within-word character n-grams of 2 to `char_ngrams`."""
    letters, owner = _letters(texts)
    hashes = [*_word_hashes(letters, owner, config.word_ngrams), *_char_hashes(letters, owner, config.char_ngrams)]
    rows = np.concatenate([np.empty(0, np.int64), *(row for _, row in hashes)])
    mixed = np.concatenate([np.empty(0, np.uint64), *(value for value, _ in hashes)]) * MIXER
    # The high bits of the product are the best mixed.
    buckets = (mixed >> np.uint64(32)).astype(np.int64) % config.buckets
    places = (rows * config.buckets + buckets) << 8 | (mixed >> np.uint64(56)).astype(np.int64)
    places, counts = np.unique(places, return_counts=True)
    ngrams = places >> 8
    return Counts(ngrams // config.buckets, ngrams % config.buckets, places.astype(np.uint8), counts, len(texts))


class _SignTable(dict[int, str]):
    """Puts spaces around punctuation and symbols, not around other characters such as vowel signs."""

    def __missing__(self, code: int) -> str:
        sign = chr(code)
        self[code] = f" {sign} " if unicodedata.category(sign)[0] in "PS" else sign
        return self[code]


_SIGNS = _SignTable()


def _letters(texts: Sequence[str]) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Return the code points of all texts, with single spaces around words, and the text of each."""
    plain = [f" {' '.join(_UNREAD.sub('', text).casefold().translate(_SIGNS).split())} " for text in texts]
    letters = np.frombuffer("".join(plain).encode("utf-32-le"), dtype=np.uint32).astype(np.uint64)
    owner = np.repeat(np.arange(len(plain)), [len(text) for text in plain])
    return letters, owner


def _word_hashes(
    letters: NDArray[np.uint64], owner: NDArray[np.int64], longest: int
) -> list[tuple[NDArray[np.uint64], NDArray[np.int64]]]:
    """Hash runs of 1 to `longest` words; the hash of a word is Σ letter × base^place."""
    is_letter = letters != _SPACE
    starts = np.flatnonzero(is_letter & ~np.concatenate([[False], is_letter[:-1]]))
    if not len(starts):
        return []
    positions = np.flatnonzero(is_letter)
    word = np.cumsum(np.isin(positions, starts, assume_unique=True)) - 1
    powers = _powers(int((positions - starts[word]).max()) + 1)
    terms = letters[positions] * powers[positions - starts[word]]
    words = np.add.reduceat(terms, np.flatnonzero(np.diff(word, prepend=-1)))
    word_owner = owner[starts]
    result, run = [(words, word_owner)], words
    for length in range(2, longest + 1):
        run = run[:-1] * MIXER + words[length - 1 :]
        same_text = word_owner[length - 1 :] == word_owner[: len(run)]
        result.append((run[same_text], word_owner[length - 1 :][same_text]))
    return result


def _char_hashes(
    letters: NDArray[np.uint64], owner: NDArray[np.int64], longest: int
) -> list[tuple[NDArray[np.uint64], NDArray[np.int64]]]:
    """Hash windows of 2 to `longest` characters without inner spaces."""
    spaces_before = np.concatenate([[0], np.cumsum(letters == _SPACE)])
    result = []
    window = letters
    for length in range(2, longest + 1):
        if len(letters) < length:
            break
        window = window[:-1] * BASE + letters[length - 1 :]
        first = np.arange(len(window))
        has_inner_space = spaces_before[first + length - 1] != spaces_before[first + 1]
        is_empty = (letters[first] == _SPACE) & (letters[first + 1] == _SPACE)  # where two texts meet
        kept = first[~has_inner_space & ~is_empty]
        # A bit of the hash distinguishes characters from words.
        result.append((window[kept] ^ CHARACTERS, owner[kept]))
    return result


def _powers(count: int) -> NDArray[np.uint64]:
    return np.concatenate([[np.uint64(1)], np.full(count - 1, BASE, dtype=np.uint64)]).cumprod(dtype=np.uint64)
