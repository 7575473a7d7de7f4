"""What a model says of texts: sentiment by hand, rows that were not read."""

from __future__ import annotations

import numpy as np
import pytest

from emoglot.inference.prediction import SENTIMENTS, Analysis, Sentiment, name_sentiments


def analysis(sentiment: list[list[float]], is_read: list[bool]) -> Analysis:
    count = len(is_read)
    return Analysis(
        np.full((count, 2), 0.5, np.float32),
        np.array(sentiment, np.float32).reshape(count, -1),
        np.array(is_read),
        ~np.array(is_read),
        np.zeros(count, np.bool_),
        ("en",) * count,
        np.ones(count, np.bool_),
        np.ones(count, np.bool_),
    )


@pytest.mark.parametrize(
    ("positive", "negative", "name", "chance"),
    [
        (0.9, 0.2, "positive", 0.72),
        (0.1, 0.7, "negative", 0.63),
        (0.2, 0.3, "neutral", 0.56),
        (0.8, 0.9, "mixed", 0.72),
    ],
)
def test_sentiment_by_hand(positive, negative, name, chance):
    (found,) = analysis([[positive, negative]], [True]).sentiments()
    assert found is not None
    assert (found.name, found.score) == (name, pytest.approx(chance))


def test_the_chances_of_the_four_add_up_to_one():
    outputs = np.random.default_rng(0).random((200, 2)).astype(np.float32)
    names, chances = name_sentiments(outputs)
    assert set(np.unique(names)) == set(range(len(SENTIMENTS)))
    assert (chances >= 0.25).all()  # the likeliest of four


def test_what_was_not_read_has_no_scores_and_no_sentiment():
    found = list(
        analysis([[0.9, 0.1], [0.9, 0.1]], [True, False]).predictions(np.array([[1, 0], [0, 0]], bool), ("a", "b"))
    )
    assert found[0].scores == {"a": 0.5, "b": 0.5}
    assert found[0].sentiment == Sentiment("positive", pytest.approx(0.81))
    assert (found[1].scores, found[1].sentiment, found[1].unreadable) == ({}, None, True)


def test_a_model_that_did_not_learn_sentiment_says_none():
    assert analysis([[], []], [True, True]).sentiments() == [None, None]


def test_rows_can_be_taken_in_any_order():
    whole = analysis([[0.9, 0.1], [0.1, 0.9], [0.5, 0.4]], [True, False, True])
    taken = whole.take([2, 0, 2])
    np.testing.assert_array_equal(taken.sentiment, whole.sentiment[[2, 0, 2]])
    assert taken.is_read.tolist() == [True, True, True]
    assert len(whole.take([])) == 0
