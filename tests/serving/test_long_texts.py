"""Long texts and heavy requests: what they cost, and that their answers are those of the local model."""

from __future__ import annotations

import pytest

import emoglot
from emoglot.serving.schemas import PredictRequest
from emoglot.serving.service import EXPLAIN_COST, _item
from emoglot.text.limit import READ_CHARACTERS
from tests.service import results_of, running

SENTENCES = (
    "I can't believe how beautiful the sunrise was this morning. ",
    "Estoy muy enfadado con el servicio, llevo dos horas esperando. ",
    "أنا سعيد جدا اليوم لأنك معي. ",
    "मुझे आज बहुत खुशी हो रही है। ",
    "外婆走了以后，我每天都很难过。",
    "😀😭😡 ",
)


@pytest.fixture(scope="module")
def bundled() -> emoglot.Model:
    return emoglot.load()


@pytest.mark.parametrize("sentence", SENTENCES)
def test_nothing_that_is_read_is_cut(bundled, sentence):
    """A text of three times as many characters has the scores of its beginning."""
    whole = sentence * (3 * READ_CHARACTERS // len(sentence))
    has_words = any(character.isalnum() for character in sentence)  # of which a reader would miss the end
    assert bundled.predict(whole, "any").truncated == has_words
    assert bundled.predict(whole[:READ_CHARACTERS], "any").scores == bundled.predict(whole, "any").scores


def test_a_text_that_is_cut_is_reported_as_truncated(model_folder, tmp_path):
    with running(tmp_path, "--model", model_folder) as service:
        spaces, words = " " * (READ_CHARACTERS - 5), "so happy " * READ_CHARACTERS
        texts = ["happy" + spaces, "happy" + spaces + "then sad", words]
        results = results_of(service.ask("/v1/predict", {"texts": texts, "explain": True}))
        assert [result["truncated"] for result in results] == [False, True, True]
        assert all(token["end"] <= READ_CHARACTERS for result in results for token in result["tokens"])


def test_the_cost_of_a_text_follows_its_length_up_to_what_is_read():
    def cost(text: str, **options: bool) -> int:
        return _item(text, PredictRequest(text=text, **options), None, None).cost

    assert cost("") >= 1
    assert cost("a" * 100) < cost("a" * 1000) < cost("a" * READ_CHARACTERS)
    assert cost("a" * READ_CHARACTERS) == cost("a" * 10 * READ_CHARACTERS)
    assert cost("愛" * 100) > cost("a" * 100)
    assert cost("a" * 100, explain=True) == EXPLAIN_COST * cost("a" * 100)
