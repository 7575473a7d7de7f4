"""The sections of a report with results, each a function that returns None if there is nothing to show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from emoglot.report import charts
from emoglot.report.aggregate import GroupShares, Summary
from emoglot.report.evidence import Evidence
from emoglot.report.options import Options
from emoglot.report.parts import (
    Section,
    captioned,
    card,
    cards,
    folded,
    language_attribute,
    paragraph,
    shortened,
    table,
)
from emoglot.report.texts import Example, Texts
from emoglot.report.words import LEAST_Z, Word, WordCounts, standing_out

_NAMED_LABELS = 3
_WHAT_SHARES_ARE = (
    "A text can carry several emotions, so shares do not add up to 100 %. The whisker on a bar and the two numbers "
    "after the share are its 95 % interval."
)
_WHAT_INTERVALS_ARE = (
    "An interval shows how much a share would vary between samples of texts like these. It does not include the "
    "mistakes of the model, which can be larger: see the section on languages."
)
_WHAT_DOTS_ARE = (
    "A dot is the share of the group's texts, the line through it the 95 % interval, the dashed line the share in all "
    "texts. Every chart has its own scale, from 0. If intervals overlap widely, a difference may be chance."
)
_WHAT_WORDS_ARE = (
    "Words and emoji that are more frequent in texts with the emotion than in the others; larger words stand out "
    "more clearly. The number is how many texts with the emotion contain the word. In scripts without spaces between "
    "words, pairs or triples of characters are used instead."
)
_HOW_WORDS_ARE_FOUND = (
    "Log-odds ratio with an informative Dirichlet prior, which is the counts of all texts (Monroe, Colaresi and Quinn "
    f"2008); z of at least {LEAST_Z:g}; a word counts once per text. These words hint at topics. They are not the "
    "reasons of the model."
)
_WHAT_EXAMPLES_ARE = (
    "The texts with the highest scores of each emotion, from 0 to 1; a text that occurs several times is shown once. "
    "They are the clearest cases for the model, not typical ones."
)


@dataclass(frozen=True)
class Report:
    """The content of the page."""

    file: Path
    options: Options
    summary: Summary
    evidence: Evidence
    texts: Texts | None

    def order(self) -> list[int]:
        """Return the indices of labels in descending order of their share in all texts."""
        shares = self.summary.overall.shares
        return sorted(range(len(shares)), key=lambda index: (-shares[index].count, index))

    def carried(self) -> list[tuple[int, str]]:
        """Return the labels that occur, with their indices, in descending order of their share."""
        shares = self.summary.overall.shares
        return [(index, self.summary.labels[index]) for index in self.order() if shares[index].count]


def lead(report: Report) -> str:
    """Return the main result in one paragraph."""
    summary, overall = report.summary, report.summary.overall
    top = [f"{label} ({charts.percent(overall.shares[index].value)})" for index, label in report.carried()]
    span = f", {summary.timeline.first} to {summary.timeline.last}" if summary.timeline else ""
    texts = "1 text" if overall.texts == 1 else f"{overall.texts:,} texts"
    if not top:
        return paragraph(f"{texts}{span}. No emotion was found in any of them.", "lead")
    none = f"{charts.percent(overall.none.value)} carry none of the {len(summary.labels)} emotions."
    return paragraph(f"{texts}{span}. Found most often: {', '.join(top[:_NAMED_LABELS])}. {none}", "lead")


def shares(report: Report) -> Section:
    """Return the section on the share of texts with each label."""
    labels, overall = report.summary.labels, report.summary.overall
    bars = [
        charts.Bar(labels[index], overall.shares[index], charts.colour_of(labels[index])) for index in report.order()
    ]
    bars.append(charts.Bar("none of these", overall.none, charts.OTHER))
    content = [
        paragraph(f"Shares of the {overall.texts:,} texts that could be read. {_WHAT_SHARES_ARE}"),
        paragraph(_WHAT_INTERVALS_ARE, "note"),
        _never_given(report),
        _bars("Share of texts that carry each emotion", "emotion", bars),
    ]
    return Section("shares", "Emotions", "How many texts carry each emotion", "\n".join(content))


def _bars(title: str, kind: str, bars: list[charts.Bar]) -> str:
    """Return bars with a table of the same numbers."""
    header = (kind, "share", "95 % interval, %", "texts")
    rows = [
        (bar.name, charts.percent(bar.share.value), charts.interval(bar.share), f"{bar.share.count:,}") for bar in bars
    ]
    values = table(title, header, rows, frozenset({1, 2, 3}))
    return f'<figure class="chart">{charts.bars(title, bars)}{folded("Show as a table", values)}</figure>'


def _never_given(report: Report) -> str:
    """Return a note on labels that the model gives only if it knows the language."""
    counts = dict(zip(report.summary.labels, (share.count for share in report.summary.overall.shares), strict=True))
    silent = [label for label in report.evidence.never_given if counts.get(label) == 0]
    if not silent:
        return ""
    told = f"{', '.join(silent)}: the model predicts these only if the language of the texts is set while scoring,"
    return paragraph(f"{told} so a share of 0 means nothing.", "note")


def over_time(report: Report) -> Section | None:
    """Return the section on shares over time, with a small chart per label."""
    timeline = report.summary.timeline
    if timeline is None:
        return None
    figures = [
        captioned(label, charts.colour_of(label), charts.line(label, index, timeline))
        for index, label in report.carried()
    ]
    told = (
        f"Share of texts by {timeline.unit}; the band is the 95 % interval. Every chart has its own scale, from 0. The "
        f"first and the last {timeline.unit} may be incomplete. Times with a zone are in UTC."
    )
    if timeline.outside:
        told += f" Left out here: {timeline.outside:,} texts whose time is missing, invalid or far off the others."
    values = _cells(
        f"Share of texts by {timeline.unit}", timeline.unit, [cell for cell in timeline.points if cell], report
    )
    return Section("time", "Over time", "Over time", f"{paragraph(told)}{cards(figures)}{values}")


def by_group(report: Report) -> Section | None:
    """Return the section on shares per group, with a small chart per label."""
    summary, groups, name = report.summary, report.summary.groups, report.options.group or ""
    if not groups:
        return None
    figures = [
        captioned(label, charts.colour_of(label), charts.dots(label, index, groups, summary.overall.shares[index]))
        for index, label in report.carried()
    ]
    is_folded = summary.group_values > len(groups)
    count = f"The {len(groups) - 1} largest of {summary.group_values:,} groups, and all others together."
    told = count if is_folded else f"{len(groups)} groups."
    values = _cells(f"Share of texts by {name}", name, list(groups), report)
    return Section(
        "groups", f"By {name}", f"By {name}", f"{paragraph(f'{told} {_WHAT_DOTS_ARE}')}{cards(figures)}{values}"
    )


def _cells(title: str, kind: str, cells: list[GroupShares], report: Report) -> str:
    """Return a collapsed table with one line per cell and two columns per label."""
    header = [kind, "texts"]
    for _, label in report.carried():
        header += [f"{label}, %", "95 %"]
    lines = []
    for cell in cells:
        line = [cell.name, f"{cell.texts:,}"]
        for index, _ in report.carried():
            line += [f"{100 * cell.shares[index].value:.1f}", charts.interval(cell.shares[index])]
        lines.append(line)
    return folded("Show as a table", table(title, header, lines, frozenset(range(1, len(header)))))


def sentiment(report: Report) -> Section | None:
    """Return the section on the shares of sentiments."""
    found = report.summary.sentiments
    bars = [charts.Bar(name, share, charts.colour_of(name)) for name, share in found]
    if not bars:
        return None
    return Section("sentiment", "Sentiment", "Sentiment", _bars("Share of texts by sentiment", "sentiment", bars))


def words(report: Report) -> Section | None:
    """Return the section on the words that stand out for each label."""
    if report.texts is None or not report.carried():
        return None
    counts = report.texts.words
    told = _WHAT_WORDS_ARE
    if any(counts.languages):
        told += " Words are compared with others of the same language."
    if counts.missed:
        told += f" Words in fewer than about {counts.missed:,} texts may be missing."
    found = [(label, standing_out(counts, index)) for index, label in report.carried()]
    silent = ", ".join(label for label, listed in found if not listed)
    content = [
        paragraph(told),
        paragraph(_HOW_WORDS_ARE_FOUND, "note"),
        paragraph(f"No word stands out clearly for: {silent}.", "note") if silent else "",
        cards([card(label, charts.colour_of(label), _words(listed, counts)) for label, listed in found if listed]),
    ]
    return Section("words", "Words", "Words that stand out", "".join(content))


def _words(found: Sequence[Word], counts: WordCounts) -> str:
    with_language = len({language for language in counts.languages if language}) > 1
    return f'<ul class="words">{"".join(_word(word, found[0].z, with_language) for word in found)}</ul>'


def _word(word: Word, highest: float, with_language: bool) -> str:
    language = f"{escape(word.language)} " if with_language and word.language else ""
    shown = f"<bdi{language_attribute(word.language)}>{escape(word.word)}</bdi>"
    count = f'<span class="count">{language}{word.texts:,}</span>'
    return f'<li style="--weight:{word.z / highest:.2f}">{shown} {count}</li>'


def examples(report: Report) -> Section | None:
    """Return the section with the highest-scoring texts."""
    if report.texts is None or not report.carried():
        return None
    found = [
        card(
            label,
            charts.colour_of(label),
            f'<ul class="examples">{"".join(map(_example, report.texts.examples[index]))}</ul>',
        )
        for index, label in report.carried()
    ]
    return Section("examples", "Examples", "The strongest examples", f"{paragraph(_WHAT_EXAMPLES_ARE)}{cards(found)}")


def _example(example: Example) -> str:
    language = f" · {escape(example.language)}" if example.language else ""
    text = escape(shortened(example.text))
    return (
        f'<li><blockquote dir="auto"{language_attribute(example.language)}>{text}</blockquote>'
        f'<span class="about">score {example.score:.2f}{language}</span></li>'
    )
