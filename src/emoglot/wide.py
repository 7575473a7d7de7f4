"""The wide channel: a linear model on hashed word and character n-grams, whose logits join the network's.

It is not in the paper. It makes other mistakes than a network on frozen vectors: trained apart, the two add up. It
knows only the languages it was trained on, so it has a say in a text as far as it knows that text's n-grams.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emoglot.config import WideConfig
from emoglot.errors import MissingExtraError, TrainingError
from emoglot.labels import UNKNOWN, Targets
from emoglot.text import UNREAD

# Odd multipliers near 2^64 divided by the golden ratio and by √2: their powers spread over all 64 bits.
BASE = np.uint64(0x9E3779B97F4A7C15)
MIXER = np.uint64(0xB504F333F9DE6485)
CHARACTERS = np.uint64(1 << 63)
_SPACE = ord(" ")
_UNREAD = re.compile("|".join(UNREAD))

# An n-gram of fewer texts is no evidence, and three in four are of one text.
LEAST_TEXTS = 2
# Where n-grams that make up this share of a text are known, the channel has its full weight; below the other, none.
# Nine in ten texts of a language trained on are above the first (median 0.7); of one that shares neither words nor
# script, below the second.
KNOWN_ENOUGH = 0.5
KNOWN_LITTLE = 0.2


@dataclass(frozen=True)
class Counts:
    """Which n-grams occur in which text, and how often, sorted by text, bucket and sign."""

    rows: NDArray[np.int64]
    buckets: NDArray[np.int64]
    signs: NDArray[np.uint8]  # tell apart the n-grams that fall into one bucket
    counts: NDArray[np.int64]
    texts: int


@dataclass(frozen=True)
class Ngrams:
    """The n-grams that are known: at most one in each bucket."""

    signs: NDArray[np.uint8]  # (buckets,)
    idf: NDArray[np.float16]  # (buckets,); 0 where there is none
    unknown_idf: NDArray[np.float16]  # (1,), as if it were of one text

    def are_known(self, counts: Counts) -> NDArray[np.bool_]:
        """Say which of the counted n-grams are known."""
        same_sign: NDArray[np.bool_] = self.signs[counts.buckets] == counts.signs
        return same_sign & (self.idf[counts.buckets] > 0)

    def tf_idf(self, counts: Counts, known: NDArray[np.bool_]) -> NDArray[np.float32]:
        """Give (1 + ln count) × idf, scaled so that every text has length 1, what is not known included."""
        idf = np.where(known, self.idf[counts.buckets], self.unknown_idf).astype(np.float64)
        values = (1 + np.log(counts.counts)) * idf
        norms = np.sqrt(np.bincount(counts.rows, values**2, minlength=counts.texts))
        return np.asarray(values / norms[counts.rows], dtype=np.float32)


@dataclass(frozen=True)
class WideChannel:
    """A trained linear model; float16 because it is stored so, and a score must not change by saving."""

    config: WideConfig
    ngrams: Ngrams
    weights: NDArray[np.float16]  # (buckets, labels)
    bias: NDArray[np.float32]  # (labels,)

    def read(self, texts: Sequence[str]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Give the logits (texts, labels) of normalised texts, and how much of each text's n-grams is known, 0 to 1."""
        counts = count_ngrams(texts, self.config)
        known = self.ngrams.are_known(counts)
        rows, buckets, values = counts.rows[known], counts.buckets[known], self.ngrams.tf_idf(counts, known)[known]
        logits = np.tile(self.bias, (counts.texts, 1))
        if len(values):
            firsts = np.flatnonzero(np.diff(rows, prepend=-1))
            products = values[:, None] * self.weights[buckets].astype(np.float32)
            logits[rows[firsts]] += np.add.reduceat(products, firsts, axis=0)
        return logits, np.bincount(rows, values**2, minlength=counts.texts).astype(np.float32)

    def join(self, network: NDArray[np.float32], texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the network's logits for a text whose n-grams were never met, else a mean of both channels."""
        logits, known = self.read(texts)
        say = self.config.say * np.clip((known - KNOWN_LITTLE) / (KNOWN_ENOUGH - KNOWN_LITTLE), 0, 1)[:, None]
        return np.asarray((1 - say) * network + say * logits, dtype=np.float32)

    def rescaled(self, scale: NDArray[np.float32], shift: NDArray[np.float32]) -> WideChannel:
        """Give a channel whose logits are `scale` × these + `shift`, label by label."""
        weights = (self.weights.astype(np.float32) * scale).astype(np.float16)
        return replace(self, weights=weights, bias=(self.bias * scale + shift).astype(np.float32))


def fit_wide(
    texts: Sequence[str],
    targets: Targets,
    sources: Sequence[str],
    config: WideConfig,
    zero_weight: Callable[[str], float] = lambda dataset: 1.0,
) -> WideChannel:
    """Fit one logistic regression per label on the rows that annotate it; copies of a row count as one.

    Each of several datasets has a column of its own, which takes up its annotators' habits and is dropped afterwards.
    `zero_weight` says how much the labels count that a row of a dataset has not, where it has another one.
    """
    sparse, logistic_regression = _import_sklearn()
    rows = [row for row in _without_copies(texts, targets, sources) if sources[row] not in config.without_sources]
    if not rows:
        raise TrainingError(f"n-grams need a dataset that is not in wide.without_sources: {config.without_sources}")
    texts, targets, sources = [texts[row] for row in rows], targets[rows], [sources[row] for row in rows]
    counts = count_ngrams(texts, config)
    ngrams = choose_ngrams(counts, config.buckets)
    known = ngrams.are_known(counts)
    places = (counts.rows[known], counts.buckets[known])
    matrix = sparse.csr_matrix((ngrams.tf_idf(counts, known)[known], places), shape=(counts.texts, config.buckets))
    names, source_of = np.unique(sources, return_inverse=True)
    if len(names) > 1:
        matrix = sparse.hstack(
            [matrix, sparse.eye(len(names), format="csr", dtype=np.float32)[source_of]], format="csr"
        )
    zero_weights = np.array([zero_weight(source) for source in sources])
    has_another = (targets == 1).any(axis=1)
    weights = np.zeros((config.buckets, targets.shape[1]), dtype=np.float16)
    bias = np.zeros(targets.shape[1], dtype=np.float32)
    for label, target in enumerate(targets.T):
        known = target != UNKNOWN
        if len(np.unique(target[known])) < 2:  # nothing to tell apart
            continue
        model = logistic_regression(C=config.regularisation, solver="liblinear", random_state=0)
        certainty = np.where((target == 0) & has_another, zero_weights, 1.0)
        model.fit(matrix[known], target[known], sample_weight=certainty[known])
        weights[:, label] = model.coef_[0, : config.buckets]
        bias[label] = model.intercept_[0]
    return WideChannel(config, ngrams, weights, bias)


def _without_copies(texts: Sequence[str], targets: Targets, sources: Sequence[str]) -> list[int]:
    """Take each row once: those repeated for the network's sake would make rare n-grams look like evidence."""
    first_row: dict[tuple[str, str, bytes], int] = {}
    for row, (text, source) in enumerate(zip(texts, sources, strict=True)):
        first_row.setdefault((text, source, targets[row].tobytes()), row)
    return list(first_row.values())


def match_spread(channel: WideChannel, texts: Sequence[str], network: NDArray[np.float32]) -> WideChannel:
    """Rescale a channel so that on held-out texts its logits have the mean and spread of the network's, per label."""
    own, _ = channel.read(texts)
    spread = own.std(axis=0)
    scale = np.where(spread > 0, network.std(axis=0) / np.where(spread > 0, spread, 1), 0).astype(np.float32)
    return channel.rescaled(scale, network.mean(axis=0) - scale * own.mean(axis=0))


def count_ngrams(texts: Sequence[str], config: WideConfig) -> Counts:
    """Count the word n-grams of 1 to `word_ngrams` and the within-word character n-grams of 2 to `char_ngrams`."""
    letters, owner = _letters(texts)
    hashes = [*_word_hashes(letters, owner, config.word_ngrams), *_char_hashes(letters, owner, config.char_ngrams)]
    rows = np.concatenate([np.empty(0, np.int64), *(row for _, row in hashes)])
    mixed = np.concatenate([np.empty(0, np.uint64), *(value for value, _ in hashes)]) * MIXER
    # The high bits of a product are the well mixed ones.
    buckets = (mixed >> np.uint64(32)).astype(np.int64) % config.buckets
    places = (rows * config.buckets + buckets) << 8 | (mixed >> np.uint64(56)).astype(np.int64)
    places, counts = np.unique(places, return_counts=True)
    ngrams = places >> 8
    return Counts(ngrams // config.buckets, ngrams % config.buckets, places.astype(np.uint8), counts, len(texts))


def choose_ngrams(counts: Counts, buckets: int) -> Ngrams:
    """Give each bucket to the n-gram of most texts, weighed by ln((1 + all texts) / (1 + texts that have it)) + 1."""
    found, frequency = np.unique(counts.buckets << 8 | counts.signs, return_counts=True)
    order = np.argsort(frequency, kind="stable")  # of those assigned to one place, the last stays
    order = order[frequency[order] >= LEAST_TEXTS]
    signs, idf = np.zeros(buckets, dtype=np.uint8), np.zeros(buckets, dtype=np.float16)
    signs[found[order] >> 8] = found[order].astype(np.uint8)
    idf[found[order] >> 8] = np.log((1 + counts.texts) / (1 + frequency[order])) + 1
    return Ngrams(signs, idf, np.array([np.log((1 + counts.texts) / 2) + 1], dtype=np.float16))


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
        run = run[:-1] * MIXER + words[length - 1 :]
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
        window = window[:-1] * BASE + letters[length - 1 :]
        first = np.arange(len(window))
        has_inner_space = spaces_before[first + length - 1] != spaces_before[first + 1]
        is_empty = (letters[first] == _SPACE) & (letters[first + 1] == _SPACE)  # where two texts meet
        kept = first[~has_inner_space & ~is_empty]
        # Characters are told apart from words by a bit of their own in the hash.
        result.append((window[kept] ^ CHARACTERS, owner[kept]))
    return result


def _powers(count: int) -> NDArray[np.uint64]:
    return np.concatenate([[np.uint64(1)], np.full(count - 1, BASE, dtype=np.uint64)]).cumprod(dtype=np.uint64)


def _import_sklearn() -> tuple[Any, Any]:
    try:
        from scipy import sparse
        from sklearn.linear_model import LogisticRegression
    except ImportError as error:
        raise MissingExtraError("scikit-learn", "train", "training the wide channel") from error
    return sparse, LogisticRegression
