"""A browser with the page open, against the real service and the model in the package."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import emoglot
from tests.service import Running, running

if TYPE_CHECKING:  # without a browser, the tests are skipped where they import it
    from selenium import webdriver

    from tests.serving.page.browsing import Page

# A few texts at a time, so that a small file already takes several requests.
LIMITS = ("--max-texts", 4, "--max-characters", 20_000)


@pytest.fixture(scope="session")
def model() -> emoglot.Model:
    return emoglot.load()


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("service"), *LIMITS) as found:
        yield found


@pytest.fixture(scope="session")
def downloads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("downloads")


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory, downloads: Path) -> Iterator[webdriver.Chrome]:
    from tests.serving.page.browsing import open_browser

    found = open_browser(tmp_path_factory.mktemp("browser"), downloads)
    yield found
    found.quit()


@pytest.fixture
def page(browser: webdriver.Chrome, service: Running, downloads: Path) -> Iterator[Page]:
    """A fresh page, which must not have complained of anything when the test is over."""
    from tests.serving.page.browsing import Page

    browser.get_log("browser")
    opened = Page(browser, service.url, downloads)
    opened.width(1280)
    yield opened.open()
    assert opened.errors() == []
