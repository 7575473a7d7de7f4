"""The page that lists what the emotions mean, made from their definitions."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from html import escape

from emoglot.emotions import EMOTIONS, Emotion

_PAGE = """<!doctype html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <meta name="color-scheme" content="light dark">
  <title>emoglot: what the emotions mean</title>
  <link rel="icon" href="page/icon.svg" type="image/svg+xml">
  <link rel="stylesheet" href="page/style.css">
</head>
<body>
  <header>
    <p class="wordmark"><img src="page/icon.svg" alt="" width="28" height="28"> emoglot</p>
    <h1>What the emotions mean</h1>
    <p class="lead">A text carries an emotion if a reader would say that the author feels it, or that the text
      expresses it. A text may carry several emotions, or none. Naming an emotion is not enough.
      <a href=".">Try your own text</a></p>
  </header>
  <main class="glossary">
{entries}
  </main>
</body>
</html>
"""
_ENTRY = """    <section id="{name}" aria-labelledby="{name}-title">
      <h2 id="{name}-title" data-label="{name}">{name}</h2>
      <p>{definition}</p>
      <h3>Texts that carry it</h3>
      <ul>{examples}</ul>
      <h3>Near misses: texts that do not</h3>
      <ul>{near_misses}</ul>
    </section>"""


@cache
def glossary() -> str:
    """Return the page."""
    return _PAGE.format(entries="\n".join(map(_entry, EMOTIONS)))


def _entry(emotion: Emotion) -> str:
    return _ENTRY.format(
        name=escape(emotion.name),
        definition=escape(emotion.definition),
        examples=_items(emotion.examples),
        near_misses=_items(emotion.near_misses),
    )


def _items(texts: Iterable[str]) -> str:
    return "".join(f'<li dir="auto">{escape(text)}</li>' for text in texts)
