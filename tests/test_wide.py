"""The wide channel: n-grams against a slow count, tf-idf and logits against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression

from emoglot.config import WideConfig
from emoglot.wide import WideChannel, count_ngrams, fit_wide, inverse_document_frequency, match_spread, tf_idf
from tests.conftest import LABELS, SENTENCES, make_dataset

CONFIG = WideConfig(enabled=True, buckets=2**14)
TEXTS = [text for text, _, _ in SENTENCES]


def dense(texts: list[str], config: WideConfig = CONFIG) -> np.ndarray:
    counts = count_ngrams(texts, config)
    matrix = np.zeros((counts.texts, config.buckets), dtype=np.int64)
    matrix[counts.rows, counts.buckets] = counts.counts
    return matrix


def slow_ngrams(text: str, config: WideConfig) -> int:
    """Count the n-grams of a text of plain words, one by one."""
    words = text.split()
    runs = sum(max(0, len(words) - length + 1) for length in range(1, config.word_ngrams + 1))
    padded = f" {' '.join(words)} "
    windows = [
        padded[at : at + size] for size in range(2, config.char_ngrams + 1) for at in range(len(padded) - size + 1)
    ]
    return runs + sum(1 for window in windows if " " not in window[1:-1])


@given(st.lists(st.text("abç हि你", max_size=12), max_size=4))
def test_counts_are_those_of_a_slow_count(texts):
    texts = [" ".join(text.split()) for text in texts]
    expected = [slow_ngrams(text, CONFIG) if text else 0 for text in texts]
    assert dense(texts).sum(axis=1).tolist() == expected


@given(st.lists(st.text(max_size=20), max_size=5))
def test_a_text_counts_the_same_in_any_company(texts):
    texts = [text.encode("utf-8", "ignore").decode() for text in texts]
    config = WideConfig(buckets=2**8)
    together = dense(texts, config)
    for row, text in enumerate(texts):
        assert (dense([text], config)[0] == together[row]).all()


def test_case_does_not_matter_and_signs_stand_apart():
    assert (dense(["STRASSE!"]) == dense(["straße !"])).all()
    assert (dense(["so good"]) != dense(["good so"])).any()


def test_words_with_vowel_signs_stay_whole():
    one_word = count_ngrams(["हिन्दी"], WideConfig(word_ngrams=1, char_ngrams=1, buckets=2**14))
    assert one_word.counts.tolist() == [1]


def test_tf_idf_is_scikit_learns():
    counts = count_ngrams(TEXTS, CONFIG)
    idf = inverse_document_frequency(counts, CONFIG.buckets)
    ours = sparse.csr_matrix((tf_idf(counts, idf), (counts.rows, counts.buckets)), shape=(len(TEXTS), CONFIG.buckets))
    theirs = TfidfTransformer(sublinear_tf=True).fit_transform(sparse.csr_matrix(dense(TEXTS)))
    assert abs(ours - theirs).max() < 1e-3  # idf is kept in float16


def test_logits_are_those_of_the_regression():
    data = make_dataset(1)
    channel = fit_wide(TEXTS, data.targets, data.sources, CONFIG)
    counts = count_ngrams(TEXTS, CONFIG)
    values = (tf_idf(counts, channel.idf), (counts.rows, counts.buckets))
    matrix = sparse.csr_matrix(values, shape=(len(TEXTS), CONFIG.buckets))
    for label in range(len(LABELS)):
        model = LogisticRegression(C=CONFIG.regularisation, solver="liblinear", random_state=0).fit(
            matrix, data.targets[:, label]
        )
        assert channel.logits(TEXTS)[:, label] == pytest.approx(model.decision_function(matrix), abs=2e-3)


def test_unknown_rows_teach_nothing():
    data = make_dataset(1)
    targets = data.targets.copy()
    targets[8:, 0] = -1
    partly = fit_wide(TEXTS, targets, data.sources, CONFIG)
    weights = np.abs(partly.weights[:, 0].astype(np.float64))
    only_in_unknown = dense(TEXTS[8:]).sum(axis=0).astype(bool) & ~dense(TEXTS[:8]).sum(axis=0).astype(bool)
    assert weights[only_in_unknown].max() == 0
    assert weights.max() > 0


def test_a_label_that_never_varies_gets_no_say():
    data = make_dataset(1)
    targets = data.targets.copy()
    targets[:, 1] = 0
    channel = fit_wide(TEXTS, targets, data.sources, CONFIG)
    assert (channel.logits(TEXTS)[:, 1] == 0).all()


def test_matching_gives_the_mean_and_spread_of_the_network():
    data = make_dataset(1)
    channel = fit_wide(TEXTS, data.targets, data.sources, CONFIG)
    network = np.random.default_rng(0).normal(-2, 3, (len(TEXTS), len(LABELS))).astype(np.float32)
    matched = match_spread(channel, channel.logits(TEXTS), network).logits(TEXTS)
    assert matched.mean(axis=0) == pytest.approx(network.mean(axis=0), abs=0.02)
    assert matched.std(axis=0) == pytest.approx(network.std(axis=0), rel=0.02)


def test_no_text_gives_no_logits():
    channel = WideChannel(CONFIG, np.ones(2**14, np.float16), np.ones((2**14, 2), np.float16), np.zeros(2, np.float32))
    assert channel.logits([]).shape == (0, 2)
    assert channel.logits(["", " "]).tolist() == [[0, 0], [0, 0]]


def test_words_are_not_blamed_for_the_habits_of_the_annotators_who_met_them():
    """One dataset's annotators say anger of every text, and its texts all begin alike."""
    data = make_dataset(8)
    theirs = np.arange(len(data)) >= len(data) // 2
    texts = [f"hotel review: {text}" if is_theirs else text for text, is_theirs in zip(data.texts, theirs, strict=True)]
    targets = data.targets.copy()
    targets[theirs, 0] = 1
    raised = []
    for name in ("theirs", "ours"):
        channel = fit_wide(texts, targets, np.where(theirs, name, "ours").tolist(), CONFIG)
        raised.append(
            (channel.logits([f"hotel review: {text}" for text in TEXTS]) - channel.logits(TEXTS))[:, 0].mean()
        )
    apart, together = raised
    assert apart < 0.5 * together
