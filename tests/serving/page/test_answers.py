"""What the page does with the answers of the service: late, busy, dead, refusing."""

from __future__ import annotations

import re

import pytest

from tests.service import running
from tests.serving.page.browsing import (
    AFRAID,
    HAPPY,
    PAGE,
    Keys,
    Page,
)


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


@pytest.mark.parametrize(("status", "said"), [(413, "more than the service accepts"), (422, "texts 3: too odd")])
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


def test_nothing_is_asked_of_another_host(page, service):
    page.read(HAPPY)
    page.read_lines(HAPPY, AFRAID)
    asked = page.run("return performance.getEntriesByType('resource').map((entry) => entry.name)")
    assert any(address.endswith("/v1/predict") for address in asked)
    assert all(address.startswith(service.url + "/") for address in asked)
    for file in PAGE.iterdir():
        addresses = re.findall(r"(?:https?:)?//[\w.-]+\.\w+[^\s\"')]*", file.read_text(encoding="utf-8"))
        assert [address for address in addresses if "www.w3.org" not in address] == [], file.name
