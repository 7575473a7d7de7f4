"""The page in a real browser, against the real service and the model in the package."""

from __future__ import annotations

import csv
import io
import random
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import emoglot
from emoglot.emotions import EMOTIONS
from emoglot.languages import list_languages
from emoglot.strictness import STEPS, Strictness
from emoglot.thresholds import NEVER
from tests.conftest import QUICK
from tests.service import Running, running

pytest.importorskip("fastapi", reason="the page's service needs: pip install 'emoglot[serve]'")
pytest.importorskip("selenium", reason="THE PAGE IS NOT TESTED: pip install selenium")

from selenium import webdriver
from selenium.common.exceptions import NoAlertPresentException, StaleElementReferenceException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select
from selenium.webdriver.support.wait import WebDriverWait

PAGE = Path(emoglot.__file__).parent / "server" / "page"
FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
)
SECONDS = 30  # a busy machine may take its time; nothing waits longer than it must
PRIMARY = ("joy", "trust", "fear", "surprise", "sadness", "disgust", "anger", "anticipation")
HAPPY = "I am so happy, what a wonderful day!"
AFRAID = "أنا خائف جدا من الغد"
MARKUP = "<img src=x onerror=alert(1)><script>alert(2)</script> so happy"
# A few texts at a time, so that a small file already takes several requests.
LIMITS = ("--max-texts", 4, "--max-characters", 20_000)


class Page:
    """The page in a browser, and what a person does with it and sees of it."""

    def __init__(self, browser: webdriver.Chrome, url: str, downloads: Path) -> None:
        self.browser, self.url, self.downloads = browser, url, downloads

    def __getitem__(self, name: str) -> Any:
        return self.browser.find_element(By.ID, name)

    def all(self, selector: str) -> list[Any]:
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def run(self, script: str, *arguments: object) -> Any:
        return self.browser.execute_script(script, *arguments)

    def module(self, name: str, expression: str, *arguments: object) -> Any:
        script = f"const done = arguments[arguments.length - 1]; import('{self.url}/page/{name}')"
        return self.browser.execute_async_script(f"{script}.then((it) => done({expression}))", *arguments)

    def wait(self, condition: Any) -> Any:
        patience = WebDriverWait(self.browser, SECONDS, 0.05, ignored_exceptions=[StaleElementReferenceException])
        return patience.until(lambda _: condition())

    def open(self) -> Page:
        self.browser.get(self.url)
        self.wait(lambda: self.all("#scores li"))
        return self

    def put(self, text: str) -> None:
        """Paste a text, as ChromeDriver cannot type beyond the basic plane."""
        self.run(
            "const t = arguments[0]; t.value = arguments[1]; t.dispatchEvent(new Event('input'))", self["text"], text
        )

    def read(self, text: str) -> None:
        self.put(text)
        self.wait(lambda: self["words"].get_property("textContent") == text)

    def read_lines(self, *lines: str) -> None:
        self.put("\n".join(lines))
        self.wait(lambda: len(self.all("#rows tbody tr")) == len(lines))

    def give(self, file: Path, texts: int) -> None:
        self["file"].send_keys(str(file))
        self.wait(lambda: self["many-note"].text.startswith(f"{texts} text") and not self["running"].is_displayed())

    def download(self) -> list[list[str]]:
        before = set(self.downloads.iterdir())
        self["download"].click()
        (file,) = self.wait(lambda: [path for path in set(self.downloads.iterdir()) - before if path.suffix == ".csv"])
        content = file.read_bytes()
        assert content.startswith(b"\xef\xbb\xbf")
        return list(csv.reader(io.StringIO(content.decode("utf-8-sig"), newline="")))

    def given(self) -> set[str]:
        return set(self.run("return [...document.querySelectorAll('#scores .given')].map((it) => it.dataset.label)"))

    def heaviest(self) -> str:
        marks = self.all("#words mark")
        weights = [self.run("return parseInt(arguments[0].style.getPropertyValue('--weight'))", mark) for mark in marks]
        return marks[weights.index(max(weights))].text

    def width(self, width: int, *, scheme: str = "light") -> None:
        size = {"width": width, "height": 740, "deviceScaleFactor": 1, "mobile": width < 500}
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        features = {"prefers-color-scheme": scheme, "prefers-reduced-motion": "reduce"}
        wanted = [{"name": name, "value": value} for name, value in features.items()]
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": wanted})

    def errors(self) -> list[str]:
        return [entry["message"] for entry in self.browser.get_log("browser") if entry["level"] == "SEVERE"]


@pytest.fixture(scope="module")
def model() -> emoglot.EmotionClassifier:
    return emoglot.load()


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("service"), *LIMITS) as found:
        yield found


@pytest.fixture(scope="module")
def downloads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("downloads")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory, downloads: Path) -> Iterator[webdriver.Chrome]:
    names = ("chromium", "chromium-browser", "google-chrome")
    chromium, driver = next(filter(None, map(shutil.which, names)), None), shutil.which("chromedriver")
    if not chromium or not driver:
        pytest.skip("THE PAGE IS NOT TESTED: it needs a browser, apt install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (*FLAGS.split(), f"--user-data-dir={tmp_path_factory.mktemp('browser')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    options.add_experimental_option("prefs", {"download.default_directory": str(downloads)})
    found = webdriver.Chrome(options=options, service=Service(driver))
    found.set_script_timeout(SECONDS)
    yield found
    found.quit()


@pytest.fixture
def page(browser: webdriver.Chrome, service: Running, downloads: Path) -> Iterator[Page]:
    """A fresh page, which must not have complained of anything when the test is over."""
    browser.get_log("browser")
    opened = Page(browser, service.url, downloads)
    opened.width(1280)
    yield opened.open()
    assert opened.errors() == []


def lengths(page: Page) -> dict[str, float]:
    """Measure the petals as they are drawn."""
    script = "return new DOMMatrix(getComputedStyle(arguments[0].querySelector('.fill')).transform).a"
    petals = page.all("#wheel .petal")
    return {petal.get_attribute("data-label"): page.run(script, petal) for petal in petals}


def test_the_wheel_fills_while_typing(page, model):
    page["text"].send_keys(HAPPY)
    page.wait(lambda: page["words"].text == HAPPY)
    expected = model.predict([HAPPY])[0]
    drawn = lengths(page)
    assert set(drawn) == set(model.labels_)
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


def drawn_threshold(petal: Any) -> float | None:
    """Measure how far out the line across a petal lies; None if there is none."""
    path = petal.find_element(By.CSS_SELECTOR, ".threshold").get_attribute("d")
    return -float(re.match(r"M[^,]+,(.+)H", path)[1]) if path else None


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
    thresholds = dict(zip(model.labels_, model.state.thresholds_for(language), strict=True))
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
    text = "📎📎 I am so happy"
    page.read(text)
    assert page.heaviest() == "happy"


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


def test_texts_without_scores_are_left_out_of_the_summary(page, model):
    lines = [HAPPY, "𐤀𐤁𐤂𐤃", AFRAID, "\u200b"]
    page.read_lines(*lines)
    page.wait(lambda: page["many-note"].text.startswith("4 texts read."))
    assert "1 text in letters that the model does not know." in page["many-note"].text
    assert "1 text with nothing to read." in page["many-note"].text
    rows = [[cell.text for cell in row.find_elements(By.TAG_NAME, "td")] for row in page.all("#rows tbody tr")]
    for row, said in ((rows[1], "The model does not know these letters."), (rows[3], "There is nothing to read.")):
        assert [row[0], *row[3:]] == [said, *[""] * len(model.labels_)]
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


def test_the_sentiment_is_said(page, model):
    for text in (HAPPY, "I hate this, what a terrible day", "The train leaves at noon"):
        page.read(text)
        expected = model.predict([text])[0].sentiment
        assert page.all("#sentiment .sentiment")[0].text == in_words(expected)
        assert page["sentiment"].get_property("textContent") == f"Sentiment: {in_words(expected)}"
        said = f"Sentiment: {in_words(expected)}."
        page.wait(lambda said=said: said in page["status"].get_property("textContent"))


def test_the_summary_shares_out_the_sentiment(page, model):
    lines = [HAPPY, "I hate this, what a terrible day", "What a joy", "The train leaves at noon", "𐤀𐤁𐤂𐤃"]
    page.read_lines(*lines)
    found = [prediction.sentiment.name for prediction in model.predict(lines[:4])]
    rows = {row.get_attribute("data-sentiment"): row for row in page.all("#sentiments tbody tr")}
    assert list(rows) == ["positive", "negative", "neutral", "mixed"]
    for name, row in rows.items():
        texts = found.count(name)
        assert row.find_element(By.TAG_NAME, "td").text == f"{texts} ({25 * texts} %)"


def test_long_texts_are_said_to_be_cut(page):
    page.read("happy " * 3000)
    assert "Only the beginning was read" in page["reading-note"].text
    page.put("happy " * 4000)
    page.wait(lambda: "20,000 characters" in page["reading-note"].text)


def assert_harmless(page: Page) -> None:
    with pytest.raises(NoAlertPresentException):
        _ = page.browser.switch_to.alert
    assert len(page.all("script")) == len(page.all("img")) == 1  # the page's own


def test_markup_in_a_text_stays_text(page):
    page.read(MARKUP)
    assert_harmless(page)
    page.read_lines(MARKUP, HAPPY)
    assert page.all("#rows tbody th")[0].text == MARKUP
    assert_harmless(page)


def test_markup_in_a_file_stays_text(page, tmp_path):
    file = tmp_path / "<b>bold.csv"
    write_csv(file, [["<img src=x onerror=alert(3)>", "text"], [MARKUP, MARKUP]])
    page.give(file, 1)
    assert page["many-title"].text == file.name
    assert page.all("#rows tbody th")[0].text == MARKUP
    assert [option.text for option in Select(page["column"]).options] == ["<img src=x onerror=alert(3)>", "text"]
    assert_harmless(page)


def in_words(sentiment: emoglot.Sentiment | None) -> str:
    return f"{sentiment.name} {sentiment.score:.2f}" if sentiment else ""


def language_name(code: str | None) -> str:
    return next((language.name for language in list_languages() if language.code == code), code or "")


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
            *(f"{expected.scores[name]:.2f}" for name in model.labels_),
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


def write_csv(file: Path, rows: list[list[str]], delimiter: str = ",") -> None:
    with file.open("w", encoding="utf-8-sig", newline="") as output:
        csv.writer(output, delimiter=delimiter).writerows(rows)


ROWS = [
    ["id", "=header", "text", "joy"],
    ["1", "plain", HAPPY, "yes"],
    ["2", "=1+1", 'She said "no", and left', ""],
    ["3", "-5", "two\nlines; of\r\nsadness", "x"],
    ["4", "@cmd", AFRAID, "+3"],
    ["5", "\ttab", "=HYPERLINK(1)", " padded "],
    ["6", "", "", ""],
]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_file_comes_back_with_its_columns_and_scores(page, model, tmp_path, delimiter):
    write_csv(tmp_path / "rows.csv", ROWS, delimiter)
    page.give(tmp_path / "rows.csv", len(ROWS) - 1)
    assert Select(page["column"]).first_selected_option.text == "text"
    header, *body = page.download()
    # The user's own column "joy" keeps its name; ours gets another.
    ours = ["labels", *(f"emoglot {name}" if name == "joy" else name for name in model.labels_)]
    ours += ["sentiment", "sentiment_score", "language", "truncated", "unreadable"]
    assert header == ["id", "'=header", "text", "joy", *ours]
    assert len(body) == len(ROWS) - 1
    for row, original, expected in zip(body, ROWS[1:], model.predict([row[2] for row in ROWS[1:]]), strict=True):
        assert row[:4] == [f"'{cell}" if cell.startswith(("=", "-", "@", "+", "\t")) else cell for cell in original]
        assert row[4] == "; ".join(expected.labels)
        scores, others = row[5 : 5 + len(model.labels_)], row[5 + len(model.labels_) :]
        if not expected.scores:  # the last one, which is empty
            assert [*scores, *others] == [""] * (len(model.labels_) + 3) + ["false", "false"]
            continue
        assert [float(cell) for cell in scores] == pytest.approx(list(expected.scores.values()), abs=1e-4)
        assert others[0] == expected.sentiment.name
        assert float(others[1]) == pytest.approx(expected.sentiment.score, abs=1e-4)
        assert others[2:] == [expected.language or "", "false", "false"]


def test_another_column_can_be_read(page, model, tmp_path):
    write_csv(tmp_path / "rows.csv", [["first", "second"], [HAPPY + " " + HAPPY, "I am furious with you"]])
    page.give(tmp_path / "rows.csv", 1)
    assert Select(page["column"]).first_selected_option.text == "first"  # the longest
    Select(page["column"]).select_by_visible_text("second")
    page.wait(lambda: [row.text for row in page.all("#rows tbody th")] == ["I am furious with you"])
    assert page.download()[1][2] == "; ".join(model.predict(["I am furious with you"])[0].labels)


def test_a_file_without_names_loses_no_row(page, tmp_path):
    write_csv(tmp_path / "rows.csv", [["1", HAPPY], ["2", AFRAID]])
    page.give(tmp_path / "rows.csv", 1)
    page["header"].click()
    page.wait(lambda: page["many-note"].text.startswith("2 texts"))
    assert [row.text for row in page.all("#rows tbody th")] == [HAPPY, AFRAID]


def test_a_file_can_be_dropped_and_closed(page):
    script = """
    const data = new DataTransfer();
    data.items.add(new File([arguments[1]], "lines.txt"));
    arguments[0].dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
    """
    page.run(script, page["text"], f"{HAPPY}\n\n{AFRAID}, {HAPPY}\n")
    page.wait(lambda: [row.text for row in page.all("#rows tbody th")] == [HAPPY, f"{AFRAID}, {HAPPY}"])
    page["close"].click()
    page.wait(page["wheel"].is_displayed)


@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf", b"text\r\n", b"\n\n"])
def test_a_file_without_texts_is_no_trouble(page, tmp_path, content):
    (tmp_path / "empty.csv").write_bytes(content)
    page.give(tmp_path / "empty.csv", 0)
    assert page.all("#rows tbody tr") == []
    assert len(page.download()) == 1


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "cp1252"])
def test_files_of_other_programs_are_read(page, tmp_path, encoding):
    (tmp_path / "rows.csv").write_bytes("id;text\r\n1;Qué alegría\r\n".encode(encoding))
    page.give(tmp_path / "rows.csv", 1)
    assert page.all("#rows tbody th")[0].text == "Qué alegría"


def test_a_long_file_shows_its_beginning_and_downloads_whole(page, tmp_path):
    write_csv(tmp_path / "long.csv", [["text"], *([f"so happy {index}"] for index in range(230))])
    page.give(tmp_path / "long.csv", 230)
    assert len(page.all("#rows tbody tr")) == 200
    assert "first 200" in page["many-note"].text
    assert [row[0] for row in page.download()[1:]] == [f"so happy {index}" for index in range(230)]


def test_a_report_of_a_file_can_be_downloaded(page, tmp_path):
    pytest.importorskip("polars")
    rows = [[f"so happy {day}", f"2026-03-{day:02d}", "shop" if day % 2 else "=cmd"] for day in range(1, 11)]
    write_csv(tmp_path / "posts.csv", [["text", "when", "source"], *rows])
    page.give(tmp_path / "posts.csv", 10)
    Select(page["time"]).select_by_visible_text("when")
    Select(page["group"]).select_by_visible_text("source")
    page["report"].click()
    (file,) = page.wait(lambda: list(page.downloads.glob("posts-report*.html")))
    report = file.read_text(encoding="utf-8")
    assert "Emotions in posts.csv" in report
    assert "10 texts" in report
    assert "shop" in report
    assert page["report"].is_enabled()


def test_reading_can_be_stopped(page, tmp_path):
    """The service answers once, then never: what was read stays, and the rest is empty in the download."""
    hang = """
    const ask = window.fetch;
    let asked = 0;
    window.fetch = (path, options) => ++asked === 1 ? ask(path, options) : new Promise((_, reject) =>
      options.signal.addEventListener("abort", () => reject(options.signal.reason)));
    """
    page.run(hang)
    write_csv(tmp_path / "rows.csv", [["text"], *([f"so happy {index}"] for index in range(10))])
    page["file"].send_keys(str(tmp_path / "rows.csv"))
    page.wait(lambda: page["many-note"].text == "4 of 10 texts read.")
    page["stop"].click()
    page.wait(lambda: not page["running"].is_displayed())
    rows = page.download()[1:]
    assert [row[1] != "" for row in rows] == [True] * 4 + [False] * 6


def test_csv_agrees_with_python(page):
    """Whatever Python's csv writes is read the same, and what the page writes Python reads the same."""
    chance = random.Random(7)
    rows = [["a", "b"]]
    rows += [["".join(chance.choices('",;\t\r\n =é😀x', k=chance.randrange(6))) for _ in range(2)] for _ in range(300)]
    for delimiter in ",;\t":
        output = io.StringIO(newline="")
        csv.writer(output, delimiter=delimiter).writerows(rows)
        assert page.module("csv.js", "it.parse(arguments[0])", output.getvalue()) == rows
    written = page.module("csv.js", "it.write(arguments[0])", rows)
    guarded = [[f"'{cell}" if cell.startswith(("=", "\t", "\r")) else cell for cell in row] for row in rows]
    assert list(csv.reader(io.StringIO(written.removeprefix("\ufeff"), newline=""))) == guarded


def test_a_stray_quote_does_not_swallow_the_file(page):
    content = 'id\ttext\n1\t"Never again\n2\t"So" he said\n'
    assert page.module("csv.js", "it.parse(arguments[0])", content) == [
        ["id", "text"],
        ["1", '"Never again'],
        ["2", '"So" he said'],
    ]


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


# A service that takes every text for one in a language, unless the question names another, or none.
RECOGNISE = """
const ask = window.fetch;
const code = arguments[0];
window.asked = [];
window.fetch = async (path, options) => {
  const question = JSON.parse(options.body);
  window.asked.push(question);
  const recognised = question.language ? {} : { language: code };
  const answer = await ask(path, { ...options, body: JSON.stringify({ ...question, ...recognised }) });
  return answer;
};
"""


def test_a_recognised_language_is_named_with_its_quality_and_thresholds(page, model):
    own, none = "sw", "any"
    page.run(RECOGNISE, own)
    options = [option.get_attribute("value") for option in Select(page["language"]).options]
    assert options[:2] == ["", none]
    assert Select(page["language"]).first_selected_option.text == "recognise"
    page.read("Nina furaha sana")
    assert page["language-note"].text.startswith("Recognised as Swahili: macro F1 of ")
    assert "thresholds of its own" in page["language-note"].text
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
        assert is_own or "thresholds of its own" not in page["language-note"].text


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
    assert page["language-note"].text == "Recognised as xx: nobody has measured this language."


def test_recognised_languages_are_a_column(page):
    page.run(RECOGNISE, "es")
    page.read_lines("Qué alegría", "Te quiero")
    names = [heading.text for heading in page.all("#rows thead th")]
    column = names.index("Language") + 1
    assert [cell.text for cell in page.all(f"#rows tbody tr > :nth-child({column})")] == ["Spanish"] * 2
    header, *body = page.download()
    assert [row[header.index("language")] for row in body] == ["es"] * 2
    assert not page["language-note"].is_displayed()


@pytest.fixture(scope="module")
def strict(trained: emoglot.EmotionClassifier) -> emoglot.EmotionClassifier:
    """A model with thresholds around its scores for every precision; two labels are never precise enough."""
    table = np.tile(np.linspace(0.41, 0.51, STEPS), (len(trained.labels_), 1))
    table[trained.labels_.index("fear"), 70:] = NEVER
    table[trained.labels_.index("joy"), 85:] = NEVER
    state = replace(trained.state, strictness=Strictness(table, table))
    return emoglot.EmotionClassifier._from_state(state, trained.encoder)


@pytest.fixture(scope="module")
def strict_page(
    browser: webdriver.Chrome,
    downloads: Path,
    strict: emoglot.EmotionClassifier,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Page]:
    folder = tmp_path_factory.mktemp("strict")
    with running(folder, "--model", strict.save(folder / "strict")) as found:
        page = Page(browser, found.url, downloads)
        page.width(1280)
        yield page
        assert page.errors() == []


PRECISIONS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)


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
        thresholds = dict(zip(strict.labels_, strict.strictness.thresholds(precision, None), strict=True))
        for row in page.all("#scores li"):
            line = row.find_elements(By.CSS_SELECTOR, ".meter i")
            drawn = [float(page.run("return arguments[0].style.getPropertyValue('--at')", tick)) for tick in line]
            wanted = thresholds[row.get_attribute("data-label")]
            assert drawn == ([] if wanted > 1 else [pytest.approx(wanted)])
        never = " and ".join(strict.strictness.never_given(strict.labels_, precision, None))
        said = {"": "", "fear": "fear is never given.", "fear and joy": "fear and joy are never given."}[never]
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
    assert page["strictness-note"].text == "At this strictness fear and joy are never given."
    assert page.all("#sentiments td") == []  # this model has not learnt it
    assert not page["sentiments"].is_displayed()
    assert "Sentiment" not in [heading.text for heading in page.all("#rows thead th")]
    assert not {"sentiment", "sentiment_score"} & set(page.download()[0])


@pytest.mark.parametrize(
    ("never", "said"),
    [
        ([], ""),
        (["fear"], "At this strictness fear is never given."),
        (["fear", "trust"], "At this strictness fear and trust are never given."),
        (["fear", "joy", "trust"], "At this strictness fear, joy and trust are never given."),
        (["fear", "joy", "trust", "love"], "At this strictness nothing is ever given."),
    ],
)
def test_what_is_never_given_is_named(page, never, said):
    assert page.module("strictness.js", "it.neverInWords(arguments[0], 4)", never) == said


def test_a_model_without_a_table_of_precision_has_no_slider(page, model):
    assert page["strictness"].is_displayed() == (model.state.strictness is not None)


def test_the_emotions_are_explained_on_a_page_of_their_own(page, service):
    page.all("footer a")[-1].click()
    page.wait(lambda: page.browser.current_url == f"{service.url}/emotions")
    assert page.all("h1")[0].text == "What the emotions mean"
    assert [heading.text for heading in page.all("h2")] == [emotion.name for emotion in EMOTIONS]
    assert page.all("script") == []
    text = page.all("main")[0].text
    for emotion in EMOTIONS:
        assert all(part in text for part in (emotion.definition, *emotion.examples, *emotion.near_misses))
    colours = {}
    for scheme in ("light", "dark"):
        for width in (360, 1280):
            page.width(width, scheme=scheme)
            assert page.run("return document.documentElement.scrollWidth <= innerWidth")
        colours[scheme] = page.run("return getComputedStyle(document.body).backgroundColor")
    assert colours["light"] != colours["dark"]
    resources = page.run("return performance.getEntriesByType('resource').map(({ name }) => name)")
    assert resources
    assert all(name.startswith(service.url) for name in resources)


def test_an_old_answer_never_replaces_a_newer_one(page):
    """The first answer is held back until the second is shown, by a network that does not know of aborted requests."""
    hold = """
    const ask = window.fetch;
    let asked = 0;
    window.fetch = async (path, { signal, ...options }) => {
      const first = ++asked === 1;
      const answer = await (await ask(path, options)).json();
      if (first) await new Promise((release) => (window.release = release));
      return { ok: true, json: async () => answer };
    };
    """
    page.run(hold)
    page.put("I am furious with you")
    page.wait(lambda: page.run("return Boolean(window.release)"))
    page.read(HAPPY)
    page.browser.execute_async_script("window.release(); setTimeout(arguments[0])")  # after the answer was handled
    assert page["words"].text == HAPPY
    assert "joy" in page.given()


def test_a_busy_service_is_asked_again(page):
    busy = """
    const ask = window.fetch;
    window.fetch = async () => {
      window.fetch = ask;
      return new Response('{"detail": "busy"}', { status: 503, headers: { "Retry-After": "1" } });
    };
    """
    page.run(busy)
    page.put(HAPPY)
    page.wait(lambda: "busy" in page["problem"].text)
    page.wait(lambda: "joy" in page.given() and not page["problem"].is_displayed())


def test_a_dead_service_leaves_the_last_result(page):
    page.read(HAPPY)
    offline = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
    page.browser.execute_cdp_cmd("Network.enable", {})
    page.browser.execute_cdp_cmd("Network.emulateNetworkConditions", {"offline": True, **offline})
    try:
        page.put("I am furious")
        page.wait(lambda: "does not answer" in page["problem"].text)
        assert page["words"].text == HAPPY
        assert "joy" in page.given()
    finally:
        page.browser.execute_cdp_cmd("Network.emulateNetworkConditions", {"offline": False, **offline})
    assert [error for error in page.errors() if "ERR_INTERNET_DISCONNECTED" not in error] == []
    page.read("So sad")
    assert not page["problem"].is_displayed()


def test_a_download_has_the_texts_that_were_read(page, model):
    """And not those that came after, to which the service has not answered."""
    page.read_lines(HAPPY, AFRAID)
    page.run("window.fetch = async () => { throw new TypeError('away') }")
    page.put("\n".join(["A plain fact about tables", HAPPY, AFRAID]))
    page.wait(lambda: "does not answer" in page["problem"].text)
    rows = [(row[0], row[1]) for row in page.download()[1:]]
    assert rows == [
        (text, "; ".join(found.labels))
        for text, found in zip((HAPPY, AFRAID), model.predict([HAPPY, AFRAID]), strict=True)
    ]


@pytest.mark.parametrize(("status", "said"), [(413, "more than the service takes"), (422, "texts 3: too odd")])
def test_a_refusal_is_said_in_a_sentence(page, status, said):
    body = '{"detail": "too much"}' if status == 413 else '{"detail": [{"loc": ["texts", 3], "msg": "too odd"}]}'
    page.run("window.fetch = async () => new Response(arguments[0], { status: arguments[1] })", body, status)
    page.put(HAPPY)
    page.wait(lambda: said in page["problem"].text)


def test_a_token_is_asked_for_and_kept_for_the_tab(browser, downloads, tmp_path):
    with running(tmp_path, "--tokens", "open-sesame") as guarded:
        page = Page(browser, guarded.url, downloads)
        browser.get(guarded.url)
        page.wait(page["access"].is_displayed)
        for wrong in ("wrong", "open-sesame”"):
            page["token"].send_keys(wrong, Keys.ENTER)
            page.wait(lambda: "does not accept" in page["problem"].text)
            assert page["access"].is_displayed()
            page["token"].clear()
        page["token"].send_keys("open-sesame", Keys.ENTER)
        page.wait(lambda: not page["access"].is_displayed() and page.all("#scores li"))
        page.read(HAPPY)
        page.open()
        assert not page["access"].is_displayed()
        assert all("401" in error for error in page.errors())
        page.run("sessionStorage.clear()")


def test_labels_of_ones_own_are_shown_without_a_wheel(browser, downloads, tmp_path):
    texts = [f"{text} {number}" for number in range(16) for text in ("what a fine thing", "broken again")]
    labels = [{"praise <b>"}, {"complaint"}] * 16
    own = emoglot.EmotionClassifier("tiny", config=QUICK, cache=tmp_path / "cache").fit(texts, labels)
    with running(tmp_path, "--model", own.save(tmp_path / "own")) as found:
        page = Page(browser, found.url, downloads).open()
        page.read("a fine thing")
        assert not page["wheel"].is_displayed()
        assert {item.get_attribute("data-label") for item in page.all("#scores li")} == set(own.labels_)
        assert page.given() == set(own.predict(["a fine thing"])[0].labels)
        page.read_lines("fine", "broken")
        assert page.errors() == []


def test_the_documentation_shows_the_api_and_its_examples(page, service):
    page.browser.get(f"{service.url}/docs")
    page.wait(lambda: page.all(".opblock-summary"))
    assert {found.text for found in page.all(".opblock-summary-path")} >= {"/v1/predict", "/v1/model"}
    page.all(".opblock-post .opblock-summary-control")[0].click()
    page.wait(lambda: any("sorpresa" in found.text for found in page.all(".opblock-post pre")))
    resources = page.run("return performance.getEntriesByType('resource').map(({ name }) => name)")
    assert all(name.startswith(service.url) for name in resources)
    assert not page.errors()


def test_nothing_is_asked_of_another_host(page, service):
    page.read(HAPPY)
    page.read_lines(HAPPY, AFRAID)
    asked = page.run("return performance.getEntriesByType('resource').map((entry) => entry.name)")
    assert any(address.endswith("/v1/predict") for address in asked)
    assert all(address.startswith(service.url + "/") for address in asked)
    for file in PAGE.iterdir():
        addresses = re.findall(r"(?:https?:)?//[\w.-]+\.\w+[^\s\"')]*", file.read_text(encoding="utf-8"))
        assert [address for address in addresses if "www.w3.org" not in address] == [], file.name


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 800, 1280])
def test_nothing_sticks_out_sideways(page, width, scheme, tmp_path):
    page.width(width, scheme=scheme)
    fits = "return document.documentElement.scrollWidth <= innerWidth"
    assert page.run(fits)
    page.read("a" * 300 + " happy " + "🎉" * 100)
    assert page.run(fits)
    boxes = page.run(
        "return [...document.querySelectorAll('#wheel text')].map((it) => it.getBoundingClientRect().toJSON())"
    )
    assert all(box["left"] >= 0 and box["right"] <= width for box in boxes)
    page.read_lines("a" * 300, AFRAID, HAPPY)
    assert page.run(fits)
    write_csv(tmp_path / f"{'long' * 40}.csv", [["text", "b" * 200], [HAPPY, "x"]])
    page.give(tmp_path / f"{'long' * 40}.csv", 1)
    assert page.run(fits)


def test_dark_mode_is_dark(page):
    brightness = {}
    for scheme in ("light", "dark"):
        page.width(1280, scheme=scheme)
        colour = page.run("return getComputedStyle(document.body).backgroundColor")
        brightness[scheme] = sum(map(int, re.findall(r"\d+", colour)[:3]))
    assert brightness["dark"] < 150
    assert brightness["light"] > 600


def luminance(colour: str) -> float:
    """Relative luminance as WCAG defines it."""
    parts = [int(colour[index : index + 2], 16) / 255 for index in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_what_is_behind_it(page, scheme):
    page.width(1280, scheme=scheme)
    names = ("paper", "card", "ink", "soft", "accent", "alarm", "marker", "ghost", "field-line")
    read = (
        "const style = getComputedStyle(document.documentElement); return style.getPropertyValue(arguments[0]).trim()"
    )
    colours = {name: page.run(read, f"--{name}") for name in names}

    def contrast(one: str, other: str) -> float:
        dark, light = sorted((luminance(colours[one]), luminance(colours[other])))
        return (light + 0.05) / (dark + 0.05)

    for text in ("ink", "soft", "accent", "alarm"):
        assert min(contrast(text, "paper"), contrast(text, "card")) >= 4.5, text
    assert contrast("ink", "marker") >= 4.5
    assert min(contrast("field-line", "paper"), contrast("field-line", "card")) >= 3  # the edges of what can be used


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
    for table in page.all("table"):
        assert table.find_element(By.TAG_NAME, "caption").text
        assert all(cell.get_attribute("scope") for cell in table.find_elements(By.TAG_NAME, "th"))
    ids = page.run("return [...document.querySelectorAll('[id]')].map((it) => it.id)")
    assert len(ids) == len(set(ids))
    rows = page.all("#rows tbody tr")
    page.width(360)
    assert all(row.aria_role == "row" for row in rows)  # though a phone shows them as blocks
