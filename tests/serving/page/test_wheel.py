"""The wheel: petals, thresholds, and when it is empty."""

from __future__ import annotations

import re

import pytest

import emoglot
from tests.conftest import QUICK
from tests.service import running
from tests.serving.page.browsing import (
    HAPPY,
    PRIMARY,
    By,
    Page,
    drawn_threshold,
    lengths,
)


def test_the_wheel_fills_while_typing(page, model):
    page["text"].send_keys(HAPPY)
    page.wait(lambda: page["words"].text == HAPPY)
    expected = model.predict([HAPPY])[0]
    drawn = lengths(page)
    assert set(drawn) == set(model.labels)
    assert max(PRIMARY, key=drawn.__getitem__) == "joy"
    # In proportion to the scores, among the primary emotions and among the dyads, which are smaller.
    for name, length in drawn.items():
        unit = drawn["joy" if name in PRIMARY else "love"] / expected.scores["joy" if name in PRIMARY else "love"]
        assert length == pytest.approx(expected.scores[name] * unit, abs=0.01)
    assert {petal.get_attribute("data-label") for petal in page.all("#wheel .given")} == set(expected.labels)
    assert page.given() == set(expected.labels)
    assert page["given"].text.startswith("joy ")
    for name in expected.labels:
        assert f"{name} {expected.scores[name]:.2f}" in page["wheel"].get_attribute("aria-label")
    page.wait(lambda: "joy" in page["status"].get_property("textContent"))  # what a screen reader says


def test_every_petal_shows_its_threshold(page, model):
    """A line lies across the petal where its length would be at that score; a label that is never given has none."""
    page.read(HAPPY)
    scale = {
        name: length / score
        for name, length, score in (
            (name, lengths(page)[name], model.predict([HAPPY])[0].scores[name]) for name in ("joy", "love")
        )
    }
    (language,) = model.analyse([HAPPY]).sure_languages()
    thresholds = dict(zip(model.labels, model.state.thresholds_for(language, named=False), strict=True))
    for petal in page.all("#wheel .petal"):
        name = petal.get_attribute("data-label")
        unit = scale["joy" if name in PRIMARY else "love"]
        if thresholds[name] > 1:
            assert drawn_threshold(petal) is None
            continue
        assert drawn_threshold(petal) == pytest.approx(thresholds[name] * unit, abs=0.1)


def test_opposites_face_each_other_and_dyads_touch_their_parts(page):
    turns = {
        petal.get_attribute("data-label"): float(
            re.search(r"rotate\(([\d.]+)\)", petal.find_element(By.TAG_NAME, "g").get_attribute("transform"))[1]
        )
        for petal in page.all("#wheel .petal")
    }
    for one, other in zip(PRIMARY[:4], PRIMARY[4:], strict=True):
        assert abs(turns[one] - turns[other]) == 180
    assert turns["love"] == (turns["joy"] + turns["trust"]) / 2
    assert turns["optimism"] == (turns["anticipation"] + 360) / 2
    assert turns["sadness"] < turns["pessimism"] < turns["anticipation"]
    assert len(page.all("#wheel .join")) == 3


def test_nothing_typed_shows_nothing(page):
    page.read(HAPPY)
    page.put("")
    page.wait(lambda: not page.given())
    assert not page["reading"].is_displayed()
    assert set(lengths(page).values()) == {0}


@pytest.mark.parametrize(("text", "said"), [("𐤀𐤁𐤂𐤃", "does not know these letters"), ("\u200b", "nothing to read")])
def test_a_text_without_scores_has_an_empty_wheel(page, text, said):
    page.read(HAPPY)
    assert page["sentiment"].is_displayed()
    page.read(text)
    assert said in page["reading-note"].text
    assert set(lengths(page).values()) == {0}
    assert all(score.text == "" for score in page.all("#wheel .score"))
    assert not page["scores"].is_displayed()
    assert not page["given"].is_displayed()
    assert not page["sentiment"].is_displayed()
    page.wait(lambda: said in page["status"].get_property("textContent"))
    page.read(HAPPY)  # and all is there again
    assert page["scores"].is_displayed()
    assert "joy" in page.given()


def test_labels_of_ones_own_are_shown_without_a_wheel(browser, downloads, tmp_path):
    texts = [f"{text} {number}" for number in range(16) for text in ("what a fine thing", "broken again")]
    labels = [{"praise <b>"}, {"complaint"}] * 16
    own = emoglot.EmotionClassifier("tiny", config=QUICK, cache=tmp_path / "cache").fit(texts, labels).model_
    with running(tmp_path, "--model", own.save(tmp_path / "own")) as found:
        page = Page(browser, found.url, downloads).open()
        page.read("a fine thing")
        assert not page["wheel"].is_displayed()
        assert {item.get_attribute("data-label") for item in page.all("#scores li")} == set(own.labels)
        assert page.given() == set(own.predict(["a fine thing"])[0].labels)
        page.read_lines("fine", "broken")
        assert page.errors() == []
