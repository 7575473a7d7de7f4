"""HTML elements of sections; all text from files is escaped here."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

_LANGUAGE_TAG = re.compile(r"[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*")
_SHOWN_CHARACTERS = 280
NO_BREAK = "\N{NO-BREAK SPACE}"


@dataclass(frozen=True)
class Section:
    """A section of the page: its anchor, its name in links, its title and its HTML."""

    id: str
    short: str
    title: str
    content: str


def paragraph(text: str, name: str = "") -> str:
    """Return a paragraph of plain text, without line breaks before percent signs."""
    attribute = f' class="{name}"' if name else ""
    return f"<p{attribute}>{escape(text.replace(' %', NO_BREAK + '%'))}</p>"


def table(caption: str, header: Sequence[str], rows: Sequence[Sequence[str]], numbers: frozenset[int]) -> str:
    """Return a table that can be scrolled by keyboard; `numbers` are the right-aligned columns."""
    heads = "".join(
        f'<th scope="col"{_number(index, numbers)}>{escape(name)}</th>' for index, name in enumerate(header)
    )
    lines = []
    for first, *cells in rows:
        values = "".join(f"<td{_number(index, numbers)}>{escape(cell)}</td>" for index, cell in enumerate(cells, 1))
        lines.append(f'<tr><th scope="row" dir="auto">{escape(first)}</th>{values}</tr>')
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(caption)}"><table>'
        f"<caption>{escape(caption)}</caption><thead><tr>{heads}</tr></thead>"
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


def _number(index: int, numbers: frozenset[int]) -> str:
    return ' class="number"' if index in numbers else ""


def folded(summary: str, content: str) -> str:
    """Return collapsed content with a summary line."""
    return f"<details><summary>{escape(summary)}</summary>{content}</details>"


def captioned(label: str, colour: str, chart: str) -> str:
    """Return a small chart with the name of its label."""
    return f'<figure class="chart"><figcaption>{_swatch(colour)}{escape(label)}</figcaption>{chart}</figure>'


def card(label: str, colour: str, content: str) -> str:
    """Return content with the name of its label."""
    return f'<div class="card"><h3>{_swatch(colour)}{escape(label)}</h3>{content}</div>'


def cards(content: Sequence[str]) -> str:
    """Return cards or small charts in a grid."""
    return f'<div class="grid-of">{"".join(content)}</div>'


def _swatch(colour: str) -> str:
    return f'<span class="swatch {colour}"></span>'


def language_attribute(code: str | None) -> str:
    """Return the lang attribute for screen readers, if the code is valid."""
    return f' lang="{code}"' if code and _LANGUAGE_TAG.fullmatch(code) else ""


def shortened(text: str) -> str:
    """Return a text, truncated at a space if it is long."""
    text = re.sub(r"\s*\n\s*", "\n", text.strip())
    if len(text) <= _SHOWN_CHARACTERS:
        return text
    cut = text[:_SHOWN_CHARACTERS]
    return f"{cut.rsplit(' ', 1)[0] if ' ' in cut[_SHOWN_CHARACTERS // 2 :] else cut} …"


def definitions(pairs: Sequence[tuple[str, str]]) -> str:
    """Return a definition list."""
    return f"<dl>{''.join(f'<dt>{escape(name)}</dt><dd>{escape(value)}</dd>' for name, value in pairs)}</dl>"
