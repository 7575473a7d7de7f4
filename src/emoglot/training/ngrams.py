"""Fits the wide channel: chooses the n-grams to keep and trains one logistic regression per label."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emoglot.config import WideConfig
from emoglot.errors import TrainingError, needs_extra
from emoglot.inference.ngrams import Counts, Ngrams, WideChannel, count_ngrams
from emoglot.labels import UNKNOWN, Targets

with needs_extra("train", "training the wide channel"):
    from scipy import sparse
    from sklearn.linear_model import LogisticRegression

# An n-gram that occurs in fewer texts is no evidence; three in four occur in one text only.
LEAST_TEXTS = 2


def fit_wide(
    texts: Sequence[str],
    targets: Targets,
    sources: Sequence[str],
    config: WideConfig,
    zero_weight: Callable[[str], float] = lambda dataset: 1.0,
) -> WideChannel:
    """Fit one logistic regression per label on the rows that annotate it; duplicate rows count once.

    With several datasets, each has a bias, an extra column that is dropped after training. `zero_weight` returns, for
    a dataset, the weight of a row's absent labels where the row has another label.
    """
    rows = [row for row in _without_copies(texts, targets, sources) if sources[row] not in config.without_sources]
    if not rows:
        raise TrainingError(f"n-grams need a dataset that is not in wide.without_sources: {config.without_sources}")
    texts, targets, sources = [texts[row] for row in rows], targets[rows], [sources[row] for row in rows]
    counts = count_ngrams(texts, config)
    ngrams = choose_ngrams(counts, config.buckets)
    matrix = _feature_matrix(counts, ngrams, sources, config.buckets)
    has_another = (targets == 1).any(axis=1)
    absent_weights = np.where(has_another, [zero_weight(source) for source in sources], 1.0)
    weights = np.zeros((config.buckets, targets.shape[1]), dtype=np.float32)
    bias = np.zeros(targets.shape[1], dtype=np.float32)
    for label, target in enumerate(targets.T):
        known = target != UNKNOWN
        if len(np.unique(target[known])) < 2:  # one class only
            continue
        sample_weight = np.where(target == 0, absent_weights, 1.0)[known]
        model = LogisticRegression(C=config.regularisation, solver="liblinear", random_state=0)
        model.fit(matrix[known], target[known], sample_weight=sample_weight)
        weights[:, label] = model.coef_[0, : config.buckets]
        bias[label] = model.intercept_[0]
    return WideChannel.of(config, ngrams, weights, bias)


def _feature_matrix(counts: Counts, ngrams: Ngrams, sources: Sequence[str], buckets: int) -> Any:
    """Return the tf-idf of the known n-grams as a sparse matrix, with one indicator column for each dataset."""
    known = ngrams.are_known(counts)
    places = (counts.rows[known], counts.buckets[known])
    matrix = sparse.csr_matrix((ngrams.tf_idf(counts, known)[known], places), shape=(counts.texts, buckets))
    names, source_of = np.unique(sources, return_inverse=True)
    if len(names) == 1:
        return matrix
    return sparse.hstack([matrix, sparse.eye(len(names), format="csr", dtype=np.float32)[source_of]], format="csr")


def _without_copies(texts: Sequence[str], targets: Targets, sources: Sequence[str]) -> list[int]:
    """Return the first of identical rows; rows repeated for the network would make rare n-grams look frequent."""
    first_row: dict[tuple[str, str, bytes], int] = {}
    for row, (text, source) in enumerate(zip(texts, sources, strict=True)):
        first_row.setdefault((text, source, targets[row].tobytes()), row)
    return list(first_row.values())


def match_spread(channel: WideChannel, texts: Sequence[str], network: NDArray[np.float32]) -> WideChannel:
    """Rescale a channel so that its logits on held-out texts have the mean and spread of the network's, per label."""
    own, _ = channel.logits(texts)
    spread = own.std(axis=0)
    scale = np.where(spread > 0, network.std(axis=0) / np.where(spread > 0, spread, 1), 0).astype(np.float32)
    return channel.rescaled(scale, network.mean(axis=0) - scale * own.mean(axis=0))


def choose_ngrams(counts: Counts, buckets: int) -> Ngrams:
    """Keep the most frequent n-gram of each bucket, with idf = ln((1 + texts) / (1 + texts that contain it)) + 1."""
    found, frequency = np.unique(counts.buckets << 8 | counts.signs, return_counts=True)
    order = np.argsort(frequency, kind="stable")  # of several assigned to one bucket, the last stays
    order = order[frequency[order] >= LEAST_TEXTS]
    signs, idf = np.zeros(buckets, dtype=np.uint8), np.zeros(buckets, dtype=np.float16)
    signs[found[order] >> 8] = found[order].astype(np.uint8)
    idf[found[order] >> 8] = np.log((1 + counts.texts) / (1 + frequency[order])) + 1
    return Ngrams(signs, idf, np.array([np.log((1 + counts.texts) / 2) + 1], dtype=np.float16))
