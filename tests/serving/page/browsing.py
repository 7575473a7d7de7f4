"""The page in a browser, and what a person does with it and sees of it."""

from __future__ import annotations

import csv
import io
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

import emoglot
from emoglot.evaluation.evidence import list_languages

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

__all__ = [
    "ActionChains",
    "By",
    "Keys",
    "Select",
    "webdriver",
]  # tests import these from here, so that they are skipped without them

FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
)
PAGE = Path(emoglot.__file__).parent / "serving" / "page"
SECONDS = 30  # a busy machine may take its time; nothing waits longer than it must
PRIMARY = ("joy", "trust", "fear", "surprise", "sadness", "disgust", "anger", "anticipation")
HAPPY = "I am so happy, what a wonderful day!"
AFRAID = "أنا خائف جدا من الغد"
MARKUP = "<img src=x onerror=alert(1)><script>alert(2)</script> so happy"


def open_browser(profile: Path, downloads: Path) -> webdriver.Chrome:
    """Start Chromium; skip the test that needs it where there is none."""
    names = ("chromium", "chromium-browser", "google-chrome")
    chromium, driver = next(filter(None, map(shutil.which, names)), None), shutil.which("chromedriver")
    if not chromium or not driver:
        pytest.skip("THE PAGE IS NOT TESTED: it needs a browser, apt install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (*FLAGS.split(), f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    options.add_experimental_option("prefs", {"download.default_directory": str(downloads)})
    found = webdriver.Chrome(options=options, service=Service(driver))
    found.set_script_timeout(SECONDS)
    return found


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
        return self.browser.execute_async_script(f"{script}.then(async (it) => done(await {expression}))", *arguments)

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

    def split(self, is_split: bool) -> None:
        """Set whether each line is a text of its own."""
        script = "const box = arguments[0]; if (box.checked !== arguments[1]) box.click()"
        self.run(script, self["lines"], is_split)

    def read_lines(self, *lines: str) -> None:
        self.split(True)
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


def lengths(page: Page) -> dict[str, float]:
    """Measure the petals as they are drawn."""
    script = "return new DOMMatrix(getComputedStyle(arguments[0].querySelector('.fill')).transform).a"
    petals = page.all("#wheel .petal")
    return {petal.get_attribute("data-label"): page.run(script, petal) for petal in petals}


def drawn_threshold(petal: Any) -> float | None:
    """Measure how far out the line across a petal lies; None if there is none."""
    path = petal.find_element(By.CSS_SELECTOR, ".threshold").get_attribute("d")
    return -float(re.match(r"M[^,]+,(.+)H", path)[1]) if path else None


def assert_harmless(page: Page) -> None:
    with pytest.raises(NoAlertPresentException):
        _ = page.browser.switch_to.alert
    assert len(page.all("script")) == len(page.all("img")) == 1  # the page's own


def in_words(sentiment: emoglot.Sentiment | None) -> str:
    return f"{sentiment.name} {sentiment.score:.2f}" if sentiment else ""


def language_name(code: str | None) -> str:
    return next((language.name for language in list_languages() if language.code == code), code or "")


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
