"""One text: its words, its sentiment, and what is said of it."""

from __future__ import annotations

from tests.serving.page.browsing import (
    AFRAID,
    HAPPY,
    MARKUP,
    assert_harmless,
    in_words,
)


def test_arabic_is_laid_out_from_the_right_and_its_heavy_word_marked(page, model):
    page.read(AFRAID)
    for name in ("words", "text"):
        assert page.run("return getComputedStyle(arguments[0]).direction", page[name]) == "rtl"
    weights: dict[str, float] = {}
    for token in model.explain(AFRAID):
        word = AFRAID[AFRAID.rfind(" ", 0, token.start + 1) + 1 :].split(" ", maxsplit=1)[0]
        weights[word] = weights.get(word, 0) + token.weight
    assert page.heaviest() == max(weights, key=weights.__getitem__) == "خائف"


def test_places_are_counted_in_code_points(page):
    """Two emojis are two code points but four UTF-16 units: the mark must not slip."""
    text = "📎📎 I am furious"
    page.read(text)
    assert page.heaviest() == "furious"


def test_words_without_spaces_are_told_apart(page):
    page.read("外婆走了以后，我每天都很难过。")
    assert len(page.all("#words mark")) > 1


def test_emojis_alone_are_read(page, model):
    page.read("😂😍")
    assert page.given() == set(model.predict(["😂😍"])[0].labels) != set()
    assert page.heaviest() == "😍"


def test_half_an_emoji_is_read(page):
    page.run("const t = arguments[0]; t.value = 'so happy \\ud83d'; t.dispatchEvent(new Event('input'))", page["text"])
    page.wait(lambda: "joy" in page.given())


def test_unknown_letters_are_said_in_words(page):
    page.read("𐤀𐤁𐤂𐤃")
    assert "does not know these letters" in page["reading-note"].text
    assert page.all("#words mark") == []


def test_the_sentiment_is_said(page, model):
    for text in (HAPPY, "I hate this, what a terrible day", "The train leaves at noon"):
        page.read(text)
        expected = model.predict([text])[0].sentiment
        assert page.all("#sentiment .sentiment")[0].text == in_words(expected)
        assert page["sentiment"].get_property("textContent") == f"Sentiment: {in_words(expected)}"
        said = f"Sentiment: {in_words(expected)}."
        page.wait(lambda said=said: said in page["status"].get_property("textContent"))


def test_long_texts_are_said_to_be_cut(page):
    page.read("happy " * 3000)
    assert "Only the beginning was read" in page["reading-note"].text
    page.put("happy " * 4000)
    page.wait(lambda: "20,000 characters" in page["reading-note"].text)


EMAIL = "Hello,\n\nmy parcel is still not here.\n\nI am furious!\n"


def test_a_pasted_email_is_one_text_unless_its_lines_are_texts(page, model):
    page.read(EMAIL)
    assert page.given() == set(model.predict(EMAIL).labels)
    assert page["lines"].is_displayed()
    assert not page["lines"].is_selected()
    page["lines"].click()
    lines = ["Hello,", "my parcel is still not here.", "I am furious!"]
    page.wait(lambda: [row.text for row in page.all("#rows tbody th")] == lines)
    page["lines"].click()
    page.wait(page["wheel"].is_displayed)
    page.read(HAPPY)
    assert not page["lines"].is_displayed()


def test_markup_in_a_text_stays_text(page):
    page.read(MARKUP)
    assert_harmless(page)
    page.read_lines(MARKUP, HAPPY)
    assert page.all("#rows tbody th")[0].text == MARKUP
    assert_harmless(page)
