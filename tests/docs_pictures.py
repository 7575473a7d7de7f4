"""The pictures of README and the documentation.

`python -m tests.docs_pictures` takes them again (`make docs-pictures`). It needs Chromium, and fonts for the scripts
that the page shows, such as those of Noto.
"""

from __future__ import annotations

import base64
import csv
import subprocess
import sys
import tempfile
from datetime import date, timedelta
from pathlib import Path

from tests.docs_blocks import ROOT
from tests.service import running
from tests.serving.page.browsing import Page, Select, open_browser, webdriver

IMAGES = ROOT / "docs" / "images"
POSTS = ROOT / "examples" / "posts.csv"
SENTENCES = ROOT / "examples" / "sample.tsv"
TEXT = "Que sorpresa tan bonita, ¡no me lo esperaba!"
WIDTH, HEIGHT = 1100, 1240


def main() -> None:
    """Take all pictures."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        browser = open_browser(folder / "profile", folder)
        browser.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": True})
        try:
            with running(folder) as service:
                take_page(Page(browser, service.url, folder))
            take_report(browser, folder)
        finally:
            browser.quit()


def take_page(page: Page) -> None:
    """Take the page of the service with a sentence, then with a file."""
    page.width(WIDTH)
    page.open()
    page.read(TEXT)
    save(page.browser, "page", end=".legend")
    page.give(POSTS, 24)
    Select(page["time"]).select_by_visible_text("created_at")
    Select(page["group"]).select_by_visible_text("source")
    save(page.browser, "table", start=".scroller", end=".scroller")


def take_report(browser: webdriver.Chrome, folder: Path) -> None:
    """Take the first section of a report, and of one of more texts the section over time."""
    open_report(browser, POSTS, "Messages to the shop")
    save(browser, "report", end="#shares")
    open_report(browser, write_dated(folder / "sentences.csv"), "Sentences")
    save(browser, "report-time", start="#time", end="#time")


def open_report(browser: webdriver.Chrome, table: Path, title: str) -> None:
    """Score a table and open its report."""
    with tempfile.TemporaryDirectory() as folder:
        scored, report = Path(folder) / "scored.csv", Path(folder) / "report.html"
        emoglot = [sys.executable, "-m", "emoglot"]
        subprocess.run([*emoglot, "score", table, scored], check=True)
        options = ["--time", "created_at", "--group", "source", "--title", title]
        subprocess.run([*emoglot, "report", scored, "--out", report, *options], check=True)
        browser.get(report.as_uri())


def write_dated(path: Path) -> Path:
    """Write the sentences of examples/ with days of half a year, one after another."""
    with SENTENCES.open(encoding="utf-8", newline="") as file:
        texts = [row["text"] for row in csv.DictReader(file, delimiter="\t")]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["created_at", "source", "text"])
        for row, text in enumerate(texts):
            day = date(2026, 1, 1) + timedelta(days=181 * row // len(texts))
            writer.writerow([day, ("forum", "mail")[row % 2], text])
    return path


def save(browser: webdriver.Chrome, name: str, *, end: str, start: str = "body") -> None:
    """Write a picture from the top of one element to the bottom of another, at most HEIGHT high."""
    script = (
        "const box = document.querySelector(arguments[0]).getBoundingClientRect();"
        "return [box.top + scrollY, box.bottom + scrollY];"
    )
    top = max(0, browser.execute_script(script, start)[0] - 16)
    bottom = browser.execute_script(script, end)[1] + 24
    clip = {"x": 0, "y": top, "width": WIDTH, "height": min(HEIGHT, bottom - top), "scale": 1}
    taken = browser.execute_cdp_cmd("Page.captureScreenshot", {"clip": clip, "captureBeyondViewport": True})
    (IMAGES / f"{name}.png").write_bytes(base64.b64decode(taken["data"]))


if __name__ == "__main__":
    main()
