"""Several texts: the table, the summary and the download."""

from __future__ import annotations

from tests.serving.page.browsing import (
    AFRAID,
    HAPPY,
    RECOGNISE,
    By,
    in_words,
    language_name,
)


def test_texts_without_scores_are_left_out_of_the_summary(page, model):
    lines = [HAPPY, "𐤀𐤁𐤂𐤃", AFRAID, "\u200b"]
    page.read_lines(*lines)
    page.wait(lambda: page["many-note"].text.startswith("4 texts read."))
    assert "1 text in letters that the model does not know." in page["many-note"].text
    assert "1 text with nothing to read." in page["many-note"].text
    rows = [[cell.text for cell in row.find_elements(By.TAG_NAME, "td")] for row in page.all("#rows tbody tr")]
    for row, said in ((rows[1], "The model does not know these letters."), (rows[3], "There is nothing to read.")):
        assert [row[0], *row[3:]] == [said, *[""] * len(model.labels)]
        assert row[1] == ""
    happy, afraid = model.predict([HAPPY, AFRAID])
    for row in page.all("#summary tbody tr"):
        name = row.get_attribute("data-label")
        carriers = (name in happy.labels) + (name in afraid.labels)
        mean = (happy.scores[name] + afraid.scores[name]) / 2
        cells = [cell.text for cell in row.find_elements(By.TAG_NAME, "td")]
        assert cells == [f"{carriers} ({50 * carriers} %)", f"{mean:.2f}"]
    header, *body = page.download()
    scores = slice(header.index("labels") + 1, header.index("language"))
    assert [all(row[scores]) for row in body] == [True, False, True, False]
    assert [any(row[scores]) for row in body] == [True, False, True, False]
    assert [row[header.index("unreadable")] for row in body] == ["false", "true", "false", "false"]
    page.read_lines("𐤀𐤁𐤂𐤃", "\u200b")
    page.wait(lambda: page["many-note"].text.startswith("2 texts read."))
    assert {cell.text for cell in page.all("#summary td:last-child")} == {""}


def test_the_download_says_what_was_cut(page):
    page.read_lines("happy " * 3000, "happy " * 4000, HAPPY)
    header, *body = page.download()
    assert [row[header.index("truncated")] for row in body] == ["true", "true", "false"]


def test_the_summary_shares_out_the_sentiment(page, model):
    lines = [HAPPY, "I hate this, what a terrible day", "What a joy", "The train leaves at noon", "𐤀𐤁𐤂𐤃"]
    page.read_lines(*lines)
    found = [prediction.sentiment.name for prediction in model.predict(lines[:4])]
    rows = {row.get_attribute("data-sentiment"): row for row in page.all("#sentiments tbody tr")}
    assert list(rows) == ["positive", "negative", "neutral", "mixed"]
    for name, row in rows.items():
        texts = found.count(name)
        assert row.find_element(By.TAG_NAME, "td").text == f"{texts} ({25 * texts} %)"


def test_several_lines_become_a_table_and_a_summary(page, model):
    lines = [HAPPY, AFRAID, "I am furious with you", "The train leaves at noon", "😍", "So sad", "Te quiero"]
    page.read_lines(*lines)
    page.wait(lambda: page["many-note"].text == "7 texts read.")
    assert not page["wheel"].is_displayed()
    predictions = model.predict(lines)
    for row, text, expected in zip(page.all("#rows tbody tr"), lines, predictions, strict=True):
        cells = [cell.text for cell in row.find_elements(By.CSS_SELECTOR, "th, td")]
        assert cells == [
            text,
            ", ".join(expected.labels) or "none",
            in_words(expected.sentiment),
            language_name(expected.language),
            *(f"{expected.scores[name]:.2f}" for name in model.labels),
        ]
    right_to_left = page.all("#rows .clamped")[1]
    assert page.run("return getComputedStyle(arguments[0]).direction", right_to_left) == "rtl"
    for row in page.all("#summary tbody tr"):
        name = row.get_attribute("data-label")
        carriers = sum(name in prediction.labels for prediction in predictions)
        mean = sum(prediction.scores[name] for prediction in predictions) / len(lines)
        assert [cell.text for cell in row.find_elements(By.CSS_SELECTOR, "td")] == [
            f"{carriers} ({round(100 * carriers / len(lines))} %)",
            f"{mean:.2f}",
        ]
    page.read(HAPPY)  # one line again: the wheel is back
    assert page["wheel"].is_displayed()


def test_a_download_has_the_texts_that_were_read(page, model):
    """And not those that came after, to which the service has not answered."""
    page.read_lines(HAPPY, AFRAID)
    page.run("window.fetch = async () => { throw new TypeError('away') }")
    page.put("\n".join(["A plain fact about tables", HAPPY, AFRAID]))
    page.wait(lambda: "does not answer" in page["problem"].text)
    rows = [(row[0], row[1]) for row in page.download()[1:]]
    assert rows == [
        (text, ",".join(found.labels))
        for text, found in zip((HAPPY, AFRAID), model.predict([HAPPY, AFRAID]), strict=True)
    ]


def test_recognised_languages_are_a_column(page):
    page.run(RECOGNISE, "es")
    page.read_lines("Qué alegría", "Te quiero")
    names = [heading.text for heading in page.all("#rows thead th")]
    column = names.index("Language") + 1
    assert [cell.text for cell in page.all(f"#rows tbody tr > :nth-child({column})")] == ["Spanish"] * 2
    header, *body = page.download()
    assert [row[header.index("language")] for row in body] == ["es"] * 2
    assert not page["language-note"].is_displayed()
