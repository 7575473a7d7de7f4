"""The slider for a precision."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import emoglot
from emoglot.inference.strictness import STEPS, Strictness
from emoglot.inference.thresholds import NEVER
from tests.service import running
from tests.serving.page.browsing import By, Keys, Page, webdriver

PRECISIONS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)


@pytest.fixture(scope="module")
def strict(trained: emoglot.Model) -> emoglot.Model:
    """A model with thresholds around its scores for every precision; two labels are never precise enough."""
    table = np.tile(np.linspace(0.41, 0.51, STEPS), (len(trained.labels), 1))
    table[trained.labels.index("fear"), 70:] = NEVER
    table[trained.labels.index("joy"), 85:] = NEVER
    state = replace(trained.state, strictness=Strictness(table, table))
    return emoglot.Model(state, trained.encoder)


@pytest.fixture(scope="module")
def strict_page(
    browser: webdriver.Chrome,
    downloads: Path,
    strict: emoglot.Model,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Page]:
    folder = tmp_path_factory.mktemp("strict")
    with running(folder, "--model", strict.save(folder / "strict")) as found:
        page = Page(browser, found.url, downloads)
        page.width(1280)
        yield page
        assert page.errors() == []


def test_a_stricter_page_asks_for_precision(strict_page, strict):
    page = strict_page.open()
    text = "I am furious about this awful service"
    page.read(text)
    slider = page["strictness"]
    assert slider.accessible_name == "How strict"
    assert (slider.get_attribute("aria-valuetext"), page["strictness-words"].text) == ("balanced", "balanced")
    words = {0.5: "5 times in 10", 0.8: "8 times in 10", 0.95: "19 times in 20"}
    for precision in PRECISIONS:
        page.run("window.answered = document.getElementById('scores').firstChild")
        slider.send_keys(Keys.ARROW_RIGHT)
        page.wait(lambda: page.run("return document.getElementById('scores').firstChild !== window.answered"))
        if precision in words:
            assert slider.get_attribute("aria-valuetext") == f"right at least {words[precision]}"
        assert page["strictness-words"].text == slider.get_attribute("aria-valuetext")
        assert page.given() == set(strict.predict([text], precision=precision)[0].labels)
        thresholds = dict(zip(strict.labels, strict.strictness.thresholds(precision, None), strict=True))
        for row in page.all("#scores li"):
            line = row.find_elements(By.CSS_SELECTOR, ".meter i")
            drawn = [float(page.run("return arguments[0].style.getPropertyValue('--at')", tick)) for tick in line]
            wanted = thresholds[row.get_attribute("data-label")]
            assert drawn == ([] if wanted > 1 else [pytest.approx(wanted)])
        never = " and ".join(strict.strictness.never_given(strict.labels, precision, None))
        said = {"": "", "fear": "fear is never predicted.", "fear and joy": "fear and joy are never predicted."}[never]
        assert page["strictness-note"].text == (said and f"At this strictness {said}")
    slider.send_keys(Keys.HOME)
    page.wait(lambda: page.given() == set(strict.predict([text])[0].labels))
    assert not page["strictness-note"].is_displayed()
    assert slider.get_attribute("aria-valuetext") == "balanced"


def test_a_table_is_read_again_when_the_strictness_changes(strict_page, strict):
    page = strict_page.open()
    lines = ["I am furious about this awful service", "What a wonderful day, I am so happy", "I love you"]
    page.read_lines(*lines)
    page["strictness"].send_keys(Keys.END)
    expected = [", ".join(found.labels) or "none" for found in strict.predict(lines, precision=PRECISIONS[-1])]
    page.wait(lambda: [cell.text for cell in page.all("#rows .labels")] == expected)
    assert page["strictness-note"].text == "At this strictness fear and joy are never predicted."
    assert page.all("#sentiments td") == []  # this model has not learnt it
    assert not page["sentiments"].is_displayed()
    assert "Sentiment" not in [heading.text for heading in page.all("#rows thead th")]
    assert not {"sentiment", "sentiment_score"} & set(page.download()[0])


@pytest.mark.parametrize(
    ("never", "said"),
    [
        ([], ""),
        (["fear"], "At this strictness fear is never predicted."),
        (["fear", "trust"], "At this strictness fear and trust are never predicted."),
        (["fear", "joy", "trust"], "At this strictness fear, joy and trust are never predicted."),
        (["fear", "joy", "trust", "love"], "At this strictness no label is ever predicted."),
    ],
)
def test_what_is_never_given_is_named(page, never, said):
    assert page.module("strictness.js", "it.neverInWords(arguments[0], 4)", never) == said


def test_a_model_without_a_table_of_precision_has_no_slider(page, model):
    assert page["strictness"].is_displayed() == (model.state.strictness is not None)
