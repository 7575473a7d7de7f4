"""The pages beside the page: the glossary and the documentation of the API."""

from __future__ import annotations

from emoglot.emotions import EMOTIONS


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


def test_the_documentation_shows_the_api_and_its_examples(page, service):
    page.browser.get(f"{service.url}/docs")
    page.wait(lambda: page.all(".opblock-summary"))
    assert {found.text for found in page.all(".opblock-summary-path")} >= {"/v1/predict", "/v1/model"}
    page.all(".opblock-post .opblock-summary-control")[0].click()
    page.wait(lambda: any("sorpresa" in found.text for found in page.all(".opblock-post pre")))
    resources = page.run("return performance.getEntriesByType('resource').map(({ name }) => name)")
    assert all(name.startswith(service.url) for name in resources)
    assert not page.errors()
