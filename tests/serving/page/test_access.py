"""Keyboard and screen reader."""

from __future__ import annotations

from tests.serving.page.browsing import (
    AFRAID,
    HAPPY,
    ROWS,
    ActionChains,
    By,
    Keys,
    write_csv,
)


def test_everything_is_reached_by_keyboard(page, tmp_path):
    write_csv(tmp_path / "rows.csv", ROWS)
    page.give(tmp_path / "rows.csv", len(ROWS) - 1)
    page.run("document.activeElement.blur(); getSelection().removeAllRanges(); scrollTo(0, 0)")
    page["text"].click()
    reached = []
    while len(reached) < 40:
        focused = page.browser.switch_to.active_element
        reached.append(focused.get_attribute("id") or focused.accessible_name)
        if focused.tag_name not in ("body", "html"):
            assert page.run("return getComputedStyle(arguments[0]).outlineStyle", focused) != "none", reached[-1]
        ActionChains(page.browser).send_keys(Keys.TAB).perform()  # a file input would take it for a name
        if page.browser.switch_to.active_element == page["text"] or reached[-1] == "About this model":
            break
    wanted = ["text", "English", "language", "file", "download", "close", "column", "header"]
    wanted += ["Every text with its emotions", "About this model"]
    places = [reached.index(name) for name in wanted]
    assert places == sorted(places)


def test_examples_work_by_keyboard(page, model):
    for button in page.all(".examples button"):
        button.send_keys(Keys.ENTER)
        text = button.get_attribute("title")
        page.wait(lambda text=text: page["words"].get_property("textContent") == text)
        assert page.given() == set(model.predict([text])[0].labels) != set()


def test_everything_has_a_name(page):
    """What a screen reader needs: a language, one main heading, names for all that can be used, captions for tables."""
    page.read_lines(HAPPY, AFRAID)
    assert page.run("return document.documentElement.lang") == "en"
    assert len(page.all("h1")) == len(page.all("main")) == 1
    assert page.run(
        "return [...document.querySelectorAll('input, select, textarea, progress')].every((it) => it.labels.length)"
    )
    for named in page.all("button, #wheel, [role=region], summary"):
        assert page.run("return arguments[0].textContent.trim()", named) or named.accessible_name
    assert page["text"].accessible_name == "Your text"
    assert page["wheel"].get_attribute("role") == "img"
    for table in page.all("main table"):
        assert table.find_element(By.TAG_NAME, "caption").text
        assert all(cell.get_attribute("scope") for cell in table.find_elements(By.TAG_NAME, "th"))
    ids = page.run("return [...document.querySelectorAll('[id]')].map((it) => it.id)")
    assert len(ids) == len(set(ids))
    rows = page.all("#rows tbody tr")
    page.width(360)
    assert all(row.aria_role == "row" for row in rows)  # though a phone shows them as blocks
