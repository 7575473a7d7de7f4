"""Words that stand out: the log-odds ratio with an informative Dirichlet prior of Monroe, Colaresi and Quinn (2008)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LEAST_Z = 3.0  # at 1.96 one word in forty would stand out by chance
LEAST_TEXTS = 3
SHOWN_WORDS = 15


@dataclass(frozen=True)
class Word:
    """A word that stands out: its number of texts with the label, and its z-score."""

    word: str
    language: str | None
    texts: int
    z: float


@dataclass(frozen=True)
class WordCounts:
    """The numbers of texts with each word, per language; a count may be too low by at most `missed`."""

    words: tuple[str, ...]
    languages: tuple[str | None, ...]
    texts: NDArray[np.int64]  # (words,)
    carried: NDArray[np.int64]  # (words, labels): texts with the label
    language_texts: NDArray[np.int64]  # (words,): the sum of `texts` over all words of the language
    language_carried: NDArray[np.int64]  # (words, labels)
    missed: int


def log_odds(
    counts: NDArray[np.int64], rest: NDArray[np.int64], total: NDArray[np.int64], rest_total: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the z-scores of words: the difference of their log-odds in some texts from those in the rest.

    The totals are the sums of the counts over all words. The prior is the counts in both parts together.
    """
    prior = (counts + rest).astype(np.float64)
    prior_total = (total + rest_total).astype(np.float64)
    inside, outside = counts + prior, rest + prior
    inside_rest, outside_rest = total + prior_total - inside, rest_total + prior_total - outside
    with np.errstate(divide="ignore", invalid="ignore"):
        delta = np.log(inside / inside_rest) - np.log(outside / outside_rest)
        z = delta / np.sqrt(1 / inside + 1 / outside)
    return np.where(np.isfinite(z), z, 0.0)


def standing_out(counts: WordCounts, label: int) -> tuple[Word, ...]:
    """Return the words that stand out in texts with a label, in descending order of z."""
    carried, all_carried = counts.carried[:, label], counts.language_carried[:, label]
    z = log_odds(carried, counts.texts - carried, all_carried, counts.language_texts - all_carried)
    z[(carried < LEAST_TEXTS) | (z < LEAST_Z)] = 0.0
    order = sorted(np.flatnonzero(z).tolist(), key=lambda row: (-z[row], counts.words[row]))
    return tuple(
        Word(counts.words[row], counts.languages[row], int(carried[row]), float(z[row])) for row in order[:SHOWN_WORDS]
    )
