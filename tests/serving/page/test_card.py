"""The model card under "About this model": rendered, and harmless whatever it holds."""

from __future__ import annotations

import pytest

from tests.serving.page.browsing import MARKUP, assert_harmless

CARD = """---
license: apache-2.0
---
# A *fine* model

It reads `text`, **often** well
and [here](https://example.org/a_b) is more.

## Use

```python
model.predict(["<b>…</b>"])  # **not** bold
```

- one
- two, which
  goes on
1. first

| label | F1 |
|---|---:|
| joy | 71.5 |
| `fear` | 58.5 |
"""


def html_of(page, card: str) -> str:
    """Return what a card is rendered to, as the browser would write it."""
    return page.module("markdown.js", "it.render(arguments[0]).map((block) => block.outerHTML).join('')", card)


def test_the_card_of_the_model_is_rendered(page):
    page.all("#about summary")[0].click()
    page.wait(page["card"].is_displayed)
    assert [heading.text for heading in page.all("#card h2")] == ["emoglot-small"]
    assert "Use" in [heading.text for heading in page.all("#card h3")]
    assert page.all("#card table td")
    shown = page["card"].text
    assert not any(mark in shown for mark in ("|---", "```", "## ", "**"))


def test_every_construct_of_a_card_is_rendered(page):
    link = '<a href="https://example.org/a_b" rel="noreferrer noopener" target="_blank">here</a>'
    code = 'model.predict(["&lt;b&gt;…&lt;/b&gt;"])  # **not** bold'
    assert html_of(page, CARD) == (
        "<h2>A <em>fine</em> model</h2>"
        f"<p>It reads <code>text</code>, <strong>often</strong> well and {link} is more.</p>"
        "<h3>Use</h3>"
        f'<pre tabindex="0"><code>{code}</code></pre>'
        "<ul><li>one</li><li>two, which goes on</li></ul><ol><li>first</li></ol>"
        '<div class="scroller"><table><thead><tr><th scope="col">label</th><th scope="col">F1</th></tr></thead>'
        "<tbody><tr><td>joy</td><td>71.5</td></tr><tr><td><code>fear</code></td><td>58.5</td></tr></tbody></table></div>"
    )


@pytest.mark.parametrize(
    "card",
    [
        MARKUP,
        f"# {MARKUP}",
        f"- **{MARKUP}**",
        f"|{MARKUP}|\n|-|\n|{MARKUP}|",
        "[a](javascript:alert(4))",
        "[a](JaVaScRiPt:alert(5)) [b](data:text/html,x) [c](//example.org)",
        "[<img src=x onerror=alert(6)>](https://example.org)",
    ],
)
def test_markup_in_a_card_stays_text(page, card):
    page.module("markdown.js", "document.getElementById('card').replaceChildren(...it.render(arguments[0]))", card)
    assert page.all("#card img, #card script, #card b") == []
    assert all(link.get_attribute("href").startswith("https://") for link in page.all("#card a"))
    assert_harmless(page)


@pytest.mark.parametrize(
    ("card", "html"),
    [
        ("", ""),
        ("\n\n", ""),
        ("```\nnever closed", '<pre tabindex="0"><code>never closed</code></pre>'),
        ("| a |", "<p>| a |</p>"),
        ("#", "<p>#</p>"),
        ("**", "<p>**</p>"),
        ("`a", "<p>`a</p>"),
        ("---\nnever closed", "<p>--- never closed</p>"),
        ("[]()", "<p><span></span></p>"),
    ],
)
def test_an_odd_card_is_no_trouble(page, card, html):
    assert html_of(page, card) == html


def test_a_long_card_takes_no_long_time(page):
    for piece in ("*", "`", "[", "**a", "[a](", "|", "# ", "- ", "_a ", "a\n"):
        page.module("markdown.js", "it.render(arguments[0].repeat(20000)).length", piece)
