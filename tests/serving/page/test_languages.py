"""Languages, chosen and recognised."""

from __future__ import annotations

import pytest

from emoglot.evaluation.evidence import list_languages
from tests.serving.page.browsing import (
    AFRAID,
    HAPPY,
    RECOGNISE,
    Select,
    drawn_threshold,
    language_name,
)


def test_a_language_brings_its_thresholds_and_its_quality(page, model):
    text = "Everything is lost; it will only get worse."
    described = {language.code: language for language in list_languages()}
    weak = next(code for code, language in described.items() if language.weak and language.macro_f1 is not None)
    for code in ("de", weak):
        Select(page["language"]).select_by_value(code)
        page.put(text)
        page.wait(lambda code=code: page.given() == set(model.predict([text], code)[0].labels))
        language = described[code]
        assert page["language-note"].text.startswith(language.name)
        assert f"{language.macro_f1:.2f}" in page["language-note"].text
        assert ("weak" in page["language-note"].text) == language.weak


def test_a_recognised_language_is_named_with_its_quality_and_thresholds(page, model):
    own, none = "sw", "any"
    page.run(RECOGNISE, own)
    options = [option.get_attribute("value") for option in Select(page["language"]).options]
    assert options[:2] == ["", none]
    assert Select(page["language"]).first_selected_option.text == "recognise"
    page.read("Nina furaha sana")
    assert page["language-note"].text.startswith("Recognised as Swahili: macro F1 of ")
    assert "its own thresholds" in page["language-note"].text
    page.wait(lambda: "Recognised as Swahili." in page["status"].get_property("textContent"))
    drawn = {petal.get_attribute("data-label"): drawn_threshold(petal) for petal in page.all("#wheel .petal")}
    page.put("")
    page.wait(lambda: not page["language-note"].is_displayed())
    Select(page["language"]).select_by_value(own)  # the thresholds of that language, before a text is read
    page.wait(lambda: page["language-note"].text.startswith("Swahili:"))
    chosen = {petal.get_attribute("data-label"): drawn_threshold(petal) for petal in page.all("#wheel .petal")}
    assert drawn == pytest.approx(chosen)
    Select(page["language"]).select_by_value(none)
    page.wait(lambda: not page["language-note"].is_displayed())
    page.read("Nina furaha")
    assert not page["language-note"].is_displayed()
    assert [question.get("language") for question in page.run("return window.asked")] == [None, none]
    general = {petal.get_attribute("data-label"): drawn_threshold(petal) for petal in page.all("#wheel .petal")}
    assert general != drawn
    assert page.given() == set(model.predict(["Nina furaha"], none)[0].labels)


def test_the_service_recognises_languages(page, model):
    for text, name in (("Qué sorpresa tan bonita, ¡no me lo esperaba!", "Spanish"), (AFRAID, "Arabic")):
        page.read(text)
        assert page["language-note"].text.startswith(f"Recognised as {name}: ")
        is_own = language_name(model.analyse([text]).sure_languages()[0]) == name
        assert is_own or "its own thresholds" not in page["language-note"].text


def test_a_language_that_nobody_measured_goes_by_its_code(page):
    """Whatever the service may name, such as a language that the page's list does not have."""
    name_another = """
    const ask = window.fetch;
    window.fetch = async (path, options) => {
      const answer = await (await ask(path, options)).json();
      for (const result of answer.results) result.language = "xx";
      return { ok: true, json: async () => answer };
    };
    """
    page.run(name_another)
    page.read(HAPPY)
    assert page["language-note"].text == "Recognised as xx: this language was not measured."
