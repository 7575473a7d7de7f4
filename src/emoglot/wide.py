"""The wide channel: a linear model on hashed word and character n-grams, whose logits join the network's.

It is not in the paper. It makes other mistakes than a network on frozen vectors: trained apart, the two add up.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emoglot.config import WideConfig
from emoglot.errors import MissingExtraError
from emoglot.labels import UNKNOWN, Targets
from emoglot.text import UNREAD

# Odd multipliers near 2^64 divided by the golden ratio and by √2: their powers spread over all 64 bits.
_BASE = np.uint64(0x9E3779B97F4A7C15)
_MIXER = np.uint64(0xB504F333F9DE6485)
_CHARACTERS = np.uint64(1 << 63)
_SPACE = ord(" ")
_UNREAD = re.compile("|".join(UNREAD))


@dataclass(frozen=True)
class Counts:
    """Which n-gram buckets occur in which text, and how often, sorted by text and bucket."""

    rows: NDArray[np.int64]
    buckets: NDArray[np.int64]
    counts: NDArray[np.int64]
    texts: int


@dataclass(frozen=True)
class WideChannel:
    """A trained linear model; float16 because it is stored so, and a score must not change by saving."""

    config: WideConfig
    idf: NDArray[np.float16]  # (buckets,)
    weights: NDArray[np.float16]  # (buckets, labels)
    bias: NDArray[np.float32]  # (labels,)

    def logits(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Give the logits (texts, labels) of normalised texts."""
        counts = count_ngrams(texts, self.config)
        values = tf_idf(counts, self.idf)
        result = np.tile(self.bias, (counts.texts, 1))
        if len(values):
            firsts = np.flatnonzero(np.diff(counts.rows, prepend=-1))
            products = values[:, None] * self.weights[counts.buckets].astype(np.float32)
            result[counts.rows[firsts]] += np.add.reduceat(products, firsts, axis=0)
        return result

    def rescaled(self, scale: NDArray[np.float32], shift: NDArray[np.float32]) -> WideChannel:
        """Give a channel whose logits are `scale` × these + `shift`, label by label."""
        weights = (self.weights.astype(np.float32) * scale).astype(np.float16)
        return replace(self, weights=weights, bias=(self.bias * scale + shift).astype(np.float32))


def fit_wide(texts: Sequence[str], targets: Targets, sources: Sequence[str], config: WideConfig) -> WideChannel:
    """Fit one logistic regression per label on the rows that annotate it.

    Each of several datasets has a column of its own, which takes up its annotators' habits and is dropped afterwards.
    """
    sparse, logistic_regression = _import_sklearn()
    counts = count_ngrams(texts, config)
    idf = inverse_document_frequency(counts, config.buckets)
    shape = (counts.texts, config.buckets)
    matrix = sparse.csr_matrix((tf_idf(counts, idf), (counts.rows, counts.buckets)), shape=shape)
    names, source_of = np.unique(sources, return_inverse=True)
    if len(names) > 1:
        matrix = sparse.hstack(
            [matrix, sparse.eye(len(names), format="csr", dtype=np.float32)[source_of]], format="csr"
        )
    weights = np.zeros((config.buckets, targets.shape[1]), dtype=np.float16)
    bias = np.zeros(targets.shape[1], dtype=np.float32)
    for label, target in enumerate(targets.T):
        known = target != UNKNOWN
        if len(np.unique(target[known])) < 2:  # nothing to tell apart
            continue
        model = logistic_regression(C=config.regularisation, solver="liblinear", random_state=0)
        model.fit(matrix[known], target[known])
        weights[:, label] = model.coef_[0, : config.buckets]
        bias[label] = model.intercept_[0]
    return WideChannel(config, idf, weights, bias)


def match_spread(channel: WideChannel, own: NDArray[np.float32], network: NDArray[np.float32]) -> WideChannel:
    """Rescale a channel so that on held-out texts its logits have the mean and spread of the network's, per label."""
    spread = own.std(axis=0)
    scale = np.where(spread > 0, network.std(axis=0) / np.where(spread > 0, spread, 1), 0).astype(np.float32)
    return channel.rescaled(scale, network.mean(axis=0) - scale * own.mean(axis=0))


def count_ngrams(texts: Sequence[str], config: WideConfig) -> Counts:
    """Count the word n-grams of 1 to `word_ngrams` and the within-word character n-grams of 2 to `char_ngrams`."""
    letters, owner = _letters(texts)
    hashes = [*_word_hashes(letters, owner, config.word_ngrams), *_char_hashes(letters, owner, config.char_ngrams)]
    rows = np.concatenate([np.empty(0, np.int64), *(row for _, row in hashes)])
    mixed = np.concatenate([np.empty(0, np.uint64), *(value for value, _ in hashes)]) * _MIXER
    # The high bits of a product are the well mixed ones.
    buckets = (mixed >> np.uint64(32)).astype(np.int64) % config.buckets
    places, counts = np.unique(rows * config.buckets + buckets, return_counts=True)
    return Counts(places // config.buckets, places % config.buckets, counts, len(texts))


def inverse_document_frequency(counts: Counts, buckets: int) -> NDArray[np.float16]:
    """Weigh a bucket by ln((1 + texts) / (1 + texts that have it)) + 1."""
    frequency = np.bincount(counts.buckets, minlength=buckets)
    return np.asarray(np.log((1 + counts.texts) / (1 + frequency)) + 1, dtype=np.float16)


def tf_idf(counts: Counts, idf: NDArray[np.float16]) -> NDArray[np.float32]:
    """Give (1 + ln count) × idf, scaled so that every text has length 1."""
    values = (1 + np.log(counts.counts)) * idf[counts.buckets].astype(np.float64)
    norms = np.sqrt(np.bincount(counts.rows, values**2, minlength=counts.texts))
    return np.asarray(values / norms[counts.rows], dtype=np.float32)


class _SignTable(dict[int, str]):
    """Sets punctuation and symbols apart by spaces; everything else, vowel signs included, stays in its word."""

    def __missing__(self, code: int) -> str:
        sign = chr(code)
        self[code] = f" {sign} " if unicodedata.category(sign)[0] in "PS" else sign
        return self[code]


_SIGNS = _SignTable()


def _letters(texts: Sequence[str]) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Lay all texts end to end as code points, every word between single spaces, and say whose each is."""
    plain = [f" {' '.join(_UNREAD.sub('', text).casefold().translate(_SIGNS).split())} " for text in texts]
    letters = np.frombuffer("".join(plain).encode("utf-32-le"), dtype=np.uint32).astype(np.uint64)
    owner = np.repeat(np.arange(len(plain)), [len(text) for text in plain])
    return letters, owner


def _word_hashes(
    letters: NDArray[np.uint64], owner: NDArray[np.int64], longest: int
) -> list[tuple[NDArray[np.uint64], NDArray[np.int64]]]:
    """Hash runs of 1 to `longest` words; a word is Σ letter × base^place, a run the same over its words."""
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
        run = run[:-1] * _MIXER + words[length - 1 :]
        same_text = word_owner[length - 1 :] == word_owner[: len(run)]
        result.append((run[same_text], word_owner[length - 1 :][same_text]))
    return result


def _char_hashes(
    letters: NDArray[np.uint64], owner: NDArray[np.int64], longest: int
) -> list[tuple[NDArray[np.uint64], NDArray[np.int64]]]:
    """Hash windows of 2 to `longest` characters that hold no space except at their ends."""
    spaces_before = np.concatenate([[0], np.cumsum(letters == _SPACE)])
    result = []
    window = letters
    for length in range(2, longest + 1):
        if len(letters) < length:
            break
        window = window[:-1] * _BASE + letters[length - 1 :]
        first = np.arange(len(window))
        has_inner_space = spaces_before[first + length - 1] != spaces_before[first + 1]
        is_empty = (letters[first] == _SPACE) & (letters[first + 1] == _SPACE)  # where two texts meet
        kept = first[~has_inner_space & ~is_empty]
        # Characters are told apart from words by a bit of their own in the hash.
        result.append((window[kept] ^ _CHARACTERS, owner[kept]))
    return result


def _powers(count: int) -> NDArray[np.uint64]:
    return np.concatenate([[np.uint64(1)], np.full(count - 1, _BASE, dtype=np.uint64)]).cumprod(dtype=np.uint64)


def _import_sklearn() -> tuple[Any, Any]:
    try:
        from scipy import sparse
        from sklearn.linear_model import LogisticRegression
    except ImportError as error:
        raise MissingExtraError("scikit-learn", "train", "training the wide channel") from error
    return sparse, LogisticRegression
