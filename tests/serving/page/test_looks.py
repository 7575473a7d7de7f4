"""Looks: widths, colours and contrast."""

from __future__ import annotations

import re

import pytest

from tests.serving.page.browsing import (
    AFRAID,
    HAPPY,
    write_csv,
)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 800, 1280])
def test_nothing_sticks_out_sideways(page, width, scheme, tmp_path):
    page.width(width, scheme=scheme)
    fits = "return document.documentElement.scrollWidth <= innerWidth"
    assert page.run(fits)
    page.read("a" * 300 + " happy " + "🎉" * 100)
    assert page.run(fits)
    boxes = page.run(
        "return [...document.querySelectorAll('#wheel text')].map((it) => it.getBoundingClientRect().toJSON())"
    )
    assert all(box["left"] >= 0 and box["right"] <= width for box in boxes)
    page.read_lines("a" * 300, AFRAID, HAPPY)
    assert page.run(fits)
    write_csv(tmp_path / f"{'long' * 40}.csv", [["text", "b" * 200], [HAPPY, "x"]])
    page.give(tmp_path / f"{'long' * 40}.csv", 1)
    assert page.run(fits)


def test_dark_mode_is_dark(page):
    brightness = {}
    for scheme in ("light", "dark"):
        page.width(1280, scheme=scheme)
        colour = page.run("return getComputedStyle(document.body).backgroundColor")
        brightness[scheme] = sum(map(int, re.findall(r"\d+", colour)[:3]))
    assert brightness["dark"] < 150
    assert brightness["light"] > 600


def luminance(colour: str) -> float:
    """Relative luminance as WCAG defines it."""
    parts = [int(colour[index : index + 2], 16) / 255 for index in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_what_is_behind_it(page, scheme):
    page.width(1280, scheme=scheme)
    names = ("paper", "card", "ink", "soft", "accent", "alarm", "marker", "ghost", "field-line")
    read = (
        "const style = getComputedStyle(document.documentElement); return style.getPropertyValue(arguments[0]).trim()"
    )
    colours = {name: page.run(read, f"--{name}") for name in names}

    def contrast(one: str, other: str) -> float:
        dark, light = sorted((luminance(colours[one]), luminance(colours[other])))
        return (light + 0.05) / (dark + 0.05)

    for text in ("ink", "soft", "accent", "alarm"):
        assert min(contrast(text, "paper"), contrast(text, "card")) >= 4.5, text
    assert contrast("ink", "marker") >= 4.5
    assert min(contrast("field-line", "paper"), contrast("field-line", "card")) >= 3  # the edges of what can be used
