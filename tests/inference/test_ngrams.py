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
from emoglot.errors import TrainingError
from emoglot.inference.ngrams import (
    KNOWN_ENOUGH,
    KNOWN_LITTLE,
    Ngrams,
    WideChannel,
    count_ngrams,
)
from emoglot.training.ngrams import LEAST_TEXTS, choose_ngrams, fit_wide, match_spread
from tests.conftest import LABELS, SENTENCES, make_dataset

CONFIG = WideConfig(enabled=True, buckets=2**14)
TEXTS = [text for text, _, _ in SENTENCES]


def dense(texts: list[str], config: WideConfig = CONFIG) -> np.ndarray:
    counts = count_ngrams(texts, config)
    matrix = np.zeros((counts.texts, config.buckets), dtype=np.int64)
    np.add.at(matrix, (counts.rows, counts.buckets), counts.counts)  # a bucket may hold several n-grams
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


def matrix_of(channel_ngrams: Ngrams, texts: list[str]) -> sparse.csr_matrix:
    counts = count_ngrams(texts, CONFIG)
    known = channel_ngrams.are_known(counts)
    values = (channel_ngrams.tf_idf(counts, known)[known], (counts.rows[known], counts.buckets[known]))
    return sparse.csr_matrix(values, shape=(len(texts), CONFIG.buckets))


def test_tf_idf_is_scikit_learns():
    """Of all n-grams, each in a column of its own; those of one text then count for the length of a text alone."""
    counts = count_ngrams(TEXTS, CONFIG)
    ngrams = choose_ngrams(counts, CONFIG.buckets)
    names, column = np.unique(counts.buckets << 8 | counts.signs, return_inverse=True)
    every = sparse.csr_matrix((counts.counts, (counts.rows, column)), shape=(len(TEXTS), len(names)))
    theirs = TfidfTransformer(sublinear_tf=True).fit_transform(every)
    expected = np.asarray(theirs[counts.rows, column]).ravel()
    known = ngrams.are_known(counts)
    is_of_one_text = np.asarray((every > 0).sum(axis=0)).ravel()[column] < LEAST_TEXTS
    assert ngrams.tf_idf(counts, known)[known] == pytest.approx(expected[known], abs=1e-3)  # idf is kept in float16
    assert is_of_one_text[~known].mean() > 0.95  # the others lost their bucket to one of more texts
    assert not is_of_one_text[known].any()


def test_a_bucket_belongs_to_the_ngram_of_most_texts():
    texts = ["joy", "joy", "joy", "rage", "rage"]
    one_bucket = WideConfig(word_ngrams=1, char_ngrams=1, buckets=1)
    ngrams = choose_ngrams(count_ngrams(texts, one_bucket), 1)
    assert ngrams.are_known(count_ngrams(texts, one_bucket)).tolist() == [True, True, True, False, False]


def test_logits_are_those_of_the_regression():
    data = make_dataset(1)
    channel = fit_wide(TEXTS, data.targets, data.sources, CONFIG)
    matrix = matrix_of(channel.ngrams, TEXTS)
    for label in range(len(LABELS)):
        model = LogisticRegression(C=CONFIG.regularisation, solver="liblinear", random_state=0).fit(
            matrix, data.targets[:, label]
        )
        assert channel.logits(TEXTS)[0][:, label] == pytest.approx(model.decision_function(matrix), abs=2e-3)


def test_the_channel_has_a_say_as_far_as_it_knows_the_text():
    data = make_dataset(1)
    channel = fit_wide(TEXTS, data.targets, data.sources, CONFIG)
    texts = [TEXTS[0] * 2, "ᏣᎳᎩ ᎦᏬᏂᎯᏍᏗ", f"{TEXTS[0]} ᏣᎳᎩ ᎦᏬᏂᎯᏍᏗ ᎠᏂᎦᏚᏩᎩ"]
    logits, known = channel.logits(texts)
    network = np.random.default_rng(0).normal(size=logits.shape).astype(np.float32)
    joined = channel.join(network, texts)
    assert known[1] < KNOWN_LITTLE < known[2] < known[0]
    assert (joined[1] == network[1]).all()
    for row in (0, 2):
        weight = 0.5 * min(1, (known[row] - KNOWN_LITTLE) / (KNOWN_ENOUGH - KNOWN_LITTLE))
        assert joined[row] == pytest.approx(network[row] + weight * (logits[row] - network[row]), abs=1e-5)


def test_a_text_without_tokens_stays_without_a_score():
    data = make_dataset(1)
    channel = fit_wide(TEXTS, data.targets, data.sources, CONFIG)
    nothing = np.full((2, len(LABELS)), -np.inf, dtype=np.float32)
    assert (channel.join(nothing, ["", TEXTS[0]]) == -np.inf).all()


def test_unknown_rows_teach_nothing():
    data = make_dataset(1)
    targets = data.targets.copy()
    targets[8:, 0] = -1
    partly = fit_wide(TEXTS, targets, data.sources, CONFIG)
    weights = np.abs(partly.all_weights[:, 0])
    only_in_unknown = dense(TEXTS[8:]).sum(axis=0).astype(bool) & ~dense(TEXTS[:8]).sum(axis=0).astype(bool)
    assert weights[only_in_unknown].max() == 0
    assert weights.max() > 0


def test_copies_of_a_row_count_as_one():
    data = make_dataset(1)
    once = fit_wide(TEXTS, data.targets, data.sources, CONFIG)
    twice = fit_wide(TEXTS * 2, np.tile(data.targets, (2, 1)), data.sources * 2, CONFIG)
    assert all(np.array_equal(twice.logits(TEXTS)[part], once.logits(TEXTS)[part]) for part in (0, 1))


def test_datasets_can_be_left_to_the_network():
    data = make_dataset(1)
    sources = ["ours"] * 8 + ["projected"] * (len(TEXTS) - 8)
    without = WideConfig(enabled=True, buckets=2**14, without_sources=["projected"])
    channel, expected = (
        fit_wide(TEXTS, data.targets, sources, without),
        fit_wide(TEXTS[:8], data.targets[:8], sources[:8], CONFIG),
    )
    assert np.array_equal(channel.logits(TEXTS)[0], expected.logits(TEXTS)[0])
    with pytest.raises(TrainingError, match="without_sources"):
        fit_wide(TEXTS[8:], data.targets[8:], sources[8:], without)


def test_a_label_that_never_varies_gets_no_say():
    data = make_dataset(1)
    targets = data.targets.copy()
    targets[:, 1] = 0
    channel = fit_wide(TEXTS, targets, data.sources, CONFIG)
    assert (channel.logits(TEXTS)[0][:, 1] == 0).all()


def test_matching_gives_the_mean_and_spread_of_the_network():
    data = make_dataset(1)
    channel = fit_wide(TEXTS, data.targets, data.sources, CONFIG)
    network = np.random.default_rng(0).normal(-2, 3, (len(TEXTS), len(LABELS))).astype(np.float32)
    matched, _ = match_spread(channel, TEXTS, network).logits(TEXTS)
    assert matched.mean(axis=0) == pytest.approx(network.mean(axis=0), abs=0.02)
    assert matched.std(axis=0) == pytest.approx(network.std(axis=0), rel=0.02)


def test_no_text_gives_no_logits():
    ngrams = Ngrams(np.zeros(2**14, np.uint8), np.ones(2**14, np.float16), np.ones(1, np.float16))
    channel = WideChannel.of(CONFIG, ngrams, np.ones((2**14, 2), np.float32), np.zeros(2, np.float32))
    assert channel.logits([])[0].shape == (0, 2)
    logits, known = channel.logits(["", " "])
    assert logits.tolist() == [[0, 0], [0, 0]]
    assert known.tolist() == [0, 0]


def test_a_per_dataset_bias_keeps_words_from_being_blamed_for_their_annotators():
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
            (channel.logits([f"hotel review: {text}" for text in TEXTS])[0] - channel.logits(TEXTS)[0])[:, 0].mean()
        )
    apart, together = raised
    assert apart < 0.5 * together


def test_labels_not_chosen_count_as_little_as_their_dataset_says():
    """Annotators of one dataset had to choose between joy and love: that they chose love says little about joy."""
    texts = ["so glad", "so glad", "love it", "love it", "the train", "a table"]
    texts = [f"{text} {number}" for number, text in enumerate(texts)]
    targets = np.array([[1, 0], [1, 0], [0, 1], [0, 1], [0, 0], [0, 0]], dtype=np.int8)
    config = WideConfig(enabled=True, buckets=2**12)
    joy = [
        fit_wide(texts, targets, ["forced"] * 6, config, {"forced": weight}.__getitem__).logits(["love it 2"])[0][0, 0]
        for weight in (1.0, 0.1)
    ]
    assert joy[0] < joy[1]
