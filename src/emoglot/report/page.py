"""The page: all sections in one self-contained HTML file."""

from __future__ import annotations

from datetime import date
from html import escape
from importlib import resources

from emoglot import __version__
from emoglot.report import method, sections
from emoglot.report.parts import Section
from emoglot.report.sections import Report

# No scripts, fonts or images: unescaped markup could do no harm.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_SECTIONS = (
    sections.shares,
    sections.over_time,
    sections.by_group,
    sections.sentiment,
    sections.words,
    sections.examples,
    method.languages,
    method.rows,
)


def render_page(report: Report, made_on: date) -> str:
    """Return the page."""
    found = [section for make in _SECTIONS if (section := make(report))]
    found.append(method.how_it_was_made(report, made_on))
    title = report.options.title or f"Emotions in {report.file.name}"
    style = resources.files("emoglot.report").joinpath("style.css").read_text(encoding="utf-8")
    links = "".join(f'<li><a href="#{section.id}">{escape(section.short)}</a></li>' for section in found)
    body = "\n".join(map(_section, found))
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="generator" content="emoglot {__version__}">
<title>{escape(title)}</title>
<style>
{style}</style>
</head>
<body>
<a class="skip" href="#main">Skip to the results</a>
<header>
<p class="kind">Report of emotions</p>
<h1 dir="auto">{escape(title)}</h1>
{sections.lead(report)}
<nav aria-label="Sections"><ul>{links}</ul></nav>
</header>
<main id="main" tabindex="-1">
{body}
</main>
</body>
</html>
"""


def _section(section: Section) -> str:
    return (
        f'<section id="{section.id}" aria-labelledby="{section.id}-title">\n'
        f'<h2 id="{section.id}-title">{escape(section.title)}</h2>\n{section.content}\n</section>'
    )
