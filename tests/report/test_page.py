"""The page of a report: what it shows, what it never does, its command, and how a browser shows it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from emoglot.cli import app
from emoglot.errors import DataError, EmoglotError, MissingExtraError, UsageError

pytest.importorskip("polars", reason="THE REPORT IS NOT TESTED: pip install 'emoglot[report]'")

import polars as pl

from emoglot.report.charts import nice_top
from emoglot.report.evidence import find_language, read_evidence
from emoglot.report.options import Options
from emoglot.report.write import write_report
from tests.scored import ROWS, many, page_of, records, write


@pytest.fixture
def scored(tmp_path: Path) -> Path:
    return write(tmp_path / "scored.parquet", records())


# The page


class Elements(HTMLParser):
    """Collects the tags of a page, and their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def test_what_users_wrote_is_never_markup_and_nothing_is_fetched(scored):
    page = page_of(scored, time="when", group="source", title="<i>Mine</i>")
    elements = Elements(page).tags
    tags = {tag for tag, _ in elements}
    assert not tags & {"script", "img", "b", "i", "link", "iframe", "object", "image", "use"}
    assert "&lt;script&gt;alert(" in page
    assert "&lt;b&gt;forum&lt;/b&gt;" in page
    assert "&lt;i&gt;Mine&lt;/i&gt;" in page
    for _, attributes in elements:
        assert not {"src", "srcset", "xlink:href"} & set(attributes)
        assert not any(name.startswith("on") for name in attributes)
        assert attributes.get("href", "#").startswith("#")
    style = page[page.index("<style>") : page.index("</style>")]
    assert "url(" not in style
    assert "@import" not in style


def test_a_language_that_is_no_code_is_no_attribute(tmp_path):
    path = write(tmp_path / "a.parquet", many(30, language=lambda row: 'en" onclick="alert(1)'))
    assert not any("onclick" in attributes for _, attributes in Elements(page_of(path)).tags)


def test_without_texts_there_is_no_text_and_no_word(scored):
    page = page_of(scored, with_texts=False, group="source")
    for text, *_ in ROWS:
        assert text is None or text not in page
    assert "happy" not in page
    assert "Words that stand out" not in page
    assert "--no-texts" in page


def test_every_link_leads_somewhere_and_every_chart_is_described(scored):
    elements = Elements(page_of(scored, time="when", group="source")).tags
    ids = [attributes["id"] for _, attributes in elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {attributes["href"][1:] for tag, attributes in elements if tag == "a"} <= set(ids)
    charts = [attributes for tag, attributes in elements if tag == "svg"]
    assert len(charts) == 1 + 3 + 3
    assert all(chart["role"] == "img" and chart["aria-label"] for chart in charts)


def test_the_page_says_what_was_measured_of_the_languages(tmp_path):
    evidence = read_evidence(None)
    english = find_language("en-GB", evidence.languages)
    assert english.code == "en"
    others = {label: 0.1 for label in evidence.labels if label != "joy"}
    rows = many(30, language=lambda row: "en-GB" if row % 2 else "xx")
    page = page_of(write(tmp_path / "a.parquet", [row | others for row in rows]))
    assert f'<td class="number">{100 * english.macro_f1:.0f}</td>' in page
    assert "not measured: do not rely on it" in page
    assert "50.0\N{NO-BREAK SPACE}% of the texts are in languages in which the model is weak" in page


def test_a_file_without_rows_or_without_labels_still_has_a_page(tmp_path):
    empty = tmp_path / "empty.parquet"
    pl.DataFrame(records()).clear().write_parquet(empty)
    assert "0 texts" in page_of(empty, time="when", group="source")
    bare = write(tmp_path / "bare.csv", [{"text": "a", "labels": [], "joy": 0.1}])
    assert "No emotion was found" in page_of(bare)


@pytest.mark.parametrize("highest", [0.0004, 0.003, 0.02, 0.11, 0.24, 0.5, 0.73, 1.0])
def test_an_axis_ends_at_a_round_number_not_far_above(highest):
    top, step = nice_top(highest)
    assert max(highest, 0.001) <= top + 1e-9 <= max(2 * highest, 0.001) + 1e-8
    assert top / step == pytest.approx(round(top / step))
    assert round(top / step) <= 5


# The command


def run(*arguments: object) -> Any:
    return CliRunner().invoke(app, ["report", *map(str, arguments)])


def test_the_command_writes_a_page_and_overwrites_only_when_told(tmp_path, scored):
    out = tmp_path / "report.html"
    found = run(scored, "--out", out, "--time", "when", "--group", "source", "--cluster", "source")
    assert found.exit_code == 0, found.output
    assert "5 texts, 2 rows left out" in found.output
    written = out.read_text(encoding="utf-8")
    assert written.startswith("<!doctype html>")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.html", "scored.parquet"]
    again = run(scored, "--out", out)
    assert isinstance(again.exception, UsageError)
    assert "--overwrite" in str(again.exception)
    assert out.read_text(encoding="utf-8") == written
    assert run(scored, "--out", out, "--overwrite", "--title", "Mine").exit_code == 0
    assert "<title>Mine</title>" in out.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"time": "wen"}, "has no column 'wen': did you mean 'when'"),
        ({"group": "quelle"}, "has no column 'quelle'.*another column for the groups"),
        ({"text": "texts"}, "did you mean 'text'.*leave the texts out"),
        ({"prefix": "x_"}, "needs a column 'x_labels'"),
        ({"model": Path("nowhere")}, "no model folder nowhere"),
    ],
)
def test_a_wrong_option_is_one_sentence(scored, options, message):
    with pytest.raises(EmoglotError, match=message):
        page_of(scored, **options)


def test_what_is_no_scored_file_is_refused(tmp_path, scored):
    with pytest.raises(DataError, match="there is no file"):
        page_of(tmp_path / "missing.parquet")
    plain = write(tmp_path / "plain.csv", [{"text": "a", "number": 3}])
    with pytest.raises(DataError, match=r"not a scored file: it needs a column 'labels'.*it has 'text', 'number'"):
        page_of(plain)
    for name in ("broken.parquet", "empty.csv", "broken.jsonl"):
        (tmp_path / name).write_bytes(b"" if name == "empty.csv" else b"no such thing")
        with pytest.raises(DataError, match=f"{name} cannot be read as a scored file"):
            page_of(tmp_path / name)
    with pytest.raises(UsageError, match="csv, tsv, jsonl or parquet"):
        page_of(write(tmp_path / "a.csv", records()).rename(tmp_path / "a.txt"))
    with pytest.raises(UsageError, match="must not be the scored file itself"):
        write_report(scored, scored, overwrite=True)
    with pytest.raises(UsageError, match="folder that exists"):
        write_report(scored, tmp_path / "no" / "report.html")


def test_without_polars_the_extra_is_named(tmp_path):
    code = "import sys; sys.modules['polars'] = None; sys.argv = ['emoglot', 'report', 'a.csv', '--out', 'b.html']; "
    found = subprocess.run(
        [sys.executable, "-c", f"{code}from emoglot.cli import main; main()"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == MissingExtraError.exit_code
    assert "pip install 'emoglot[report]'" in found.stderr


# In a browser


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Any]:
    pytest.importorskip("selenium", reason="THE PAGE OF A REPORT IS NOT TESTED: pip install selenium")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    names = ("chromium", "chromium-browser", "google-chrome")
    chromium, driver = next(filter(None, map(shutil.which, names)), None), shutil.which("chromedriver")
    if not chromium or not driver:
        pytest.skip("THE PAGE OF A REPORT IS NOT TESTED: it needs a browser, apt install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    flags = "--headless=new --no-sandbox --disable-gpu --no-first-run --disable-background-networking --disable-sync"
    for flag in (*flags.split(), f"--user-data-dir={tmp_path / 'browser'}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    found = webdriver.Chrome(options=options, service=Service(driver))
    yield found
    found.quit()


def test_a_browser_shows_it_light_dark_and_narrow_and_fetches_nothing(tmp_path, scored, browser):
    out = tmp_path / "report.html"
    write_report(scored, out, Options(time="when", group="source"))
    browser.get_log("performance")
    browser.get(out.as_uri())
    sent = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [one["params"]["request"]["url"] for one in sent if one["method"] == "Network.requestWillBeSent"]
    # The browser's own first tab may still be loading.
    assert [url for url in asked if not url.startswith(("chrome:", "data:"))] == [out.as_uri()]
    headings = browser.execute_script("return [...document.querySelectorAll('h1, h2')].map((it) => it.textContent)")
    assert headings[:4] == ["Emotions in scored.parquet", "How many texts carry each emotion", "Over time", "By source"]
    directions = "return [...document.querySelectorAll('blockquote')].map((it) => getComputedStyle(it).direction)"
    assert sorted(browser.execute_script(directions)) == ["ltr", "ltr", "ltr", "ltr", "rtl"]
    papers = {}
    for scheme in ("light", "dark"):
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        papers[scheme] = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    brightness = {scheme: sum(map(int, re.findall(r"\d+", paper)[:3])) for scheme, paper in papers.items()}
    assert brightness["dark"] < 150
    assert brightness["light"] > 600
    size = {"width": 360, "height": 740, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 360
    assert [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []


def test_a_keyboard_reaches_the_skip_link_first(tmp_path, scored, browser):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    out = tmp_path / "report.html"
    write_report(scored, out)
    browser.get(out.as_uri())
    browser.find_element(By.TAG_NAME, "body").send_keys(Keys.TAB)
    assert browser.switch_to.active_element.text == "Skip to the results"
    browser.switch_to.active_element.send_keys(Keys.ENTER)
    assert browser.switch_to.active_element.get_attribute("id") == "main"
