"""The last sections of a report: quality per language, rows left out, method."""

from __future__ import annotations

from datetime import date

from emoglot import __version__
from emoglot.report import charts
from emoglot.report.aggregate import Summary
from emoglot.report.evidence import find_language, verdict
from emoglot.report.intervals import RESAMPLES
from emoglot.report.options import Options
from emoglot.report.parts import Section, definitions, paragraph, table
from emoglot.report.sections import Report
from emoglot.report.source import CLUSTERS

_SHOWN_LANGUAGES = 30
_MEANING = (
    "Macro-F1 compares the model's labels with those of people, on texts that it was not trained on: 0 is no match, "
    "100 a perfect one, and all emotions count the same. κ compares its labels of translations with its labels of the "
    "English original: 0 is chance, 1 full agreement. A model that makes the same mistakes everywhere still shows "
    "whether a share rises or falls. Read a text yourself before you quote its labels."
)
_INDEPENDENT = (
    "Texts are assumed to be independent. If one author wrote many of them, the intervals are too narrow; the option "
    "--cluster names the column of authors."
)


def languages(report: Report) -> Section:
    """Return the section on the languages of the file and the quality of the model in them."""
    evidence = report.evidence
    if set(report.summary.labels) != set(evidence.labels):
        told = f"The emotions in the file are not those of {evidence.name}, whose measured quality does not apply here."
        content = paragraph(f"{told} The option --model names the model that scored the file.", "warning")
    elif not evidence.languages:
        told = f"The quality of {evidence.name} was not measured in any language."
        content = paragraph(f"{told} Read some texts yourself before you rely on the shares.", "warning")
    else:
        listed = _languages_found(report) if report.summary.languages else _languages_known(report)
        content = f"{listed}{paragraph(_MEANING, 'note')}"
    return Section("languages", "Quality", "Languages, and how well the model reads them", content)


def _languages_found(report: Report) -> str:
    total, measured = max(1, report.summary.overall.texts), report.evidence.languages
    rows, weak = [], 0
    for count in report.summary.languages:
        language = find_language(count.name, measured)
        weak += count.texts if language is None or language.weak else 0
        rows.append(
            (
                f"{language.name} ({count.name})" if language else count.name,
                f"{count.texts:,}",
                charts.percent(count.texts / total),
                "–" if language is None or language.macro_f1 is None else f"{100 * language.macro_f1:.0f}",
                "–" if language is None or language.agreement is None else f"{language.agreement:.2f}",
                verdict(language),
            )
        )
    header = ("language", "texts", "share", "macro-F1", "κ", "in plain words")
    hidden = len(rows) - _SHOWN_LANGUAGES
    more = paragraph(f"And {hidden} more with fewer texts.", "note") if hidden > 0 else ""
    told = (
        f"{charts.percent(weak / total)} of the texts are in languages in which the model is weak or was not measured."
    )
    values = table("Languages found in the file", header, rows[:_SHOWN_LANGUAGES], frozenset({1, 2, 3, 4}))
    warning = paragraph(told, "warning") if weak else ""
    return f"{warning}{values}{more}"


def _languages_known(report: Report) -> str:
    known = report.evidence.languages
    measured = sorted(language.macro_f1 for language in known if language.macro_f1 is not None)
    middle = f"{100 * measured[len(measured) // 2]:.0f}" if measured else "unknown"
    return paragraph(
        "The file has no language column, so the languages of its texts are not known. The model reads "
        f"{len(known)} languages, {sum(language.weak for language in known)} of which are weak. {len(measured)} were "
        f"compared with people, with a median macro-F1 of {middle}. The command emoglot languages lists them all."
    )


def rows(report: Report) -> Section:
    """Return the section on the rows of the file."""
    counts = report.summary.rows
    lines = [
        ("in the file", f"{counts.total:,}"),
        ("without scores, since the text is missing or could not be scored: left out", f"{counts.unscored:,}"),
        ("empty, or in letters that the model does not know: left out", f"{counts.unreadable:,}"),
        ("counted", f"{counts.readable:,}"),
        ("counted, though only the beginning of the text was read", f"{counts.truncated:,}"),
    ]
    values = table("Rows of the file", ("rows", "number"), lines, frozenset({1}))
    return Section("rows", "Rows", "Rows that were left out", values)


def how_it_was_made(report: Report, made_on: date) -> Section:
    """Return the section on how to reproduce the page."""
    summary = report.summary
    pairs = [
        ("File", report.file.name),
        ("Rows", f"{summary.rows.total:,}"),
        ("Dates", f"{summary.timeline.first} to {summary.timeline.last}" if summary.timeline else "not used"),
        ("Model", f"{report.evidence.name}, as named for this report; the file itself does not record it"),
        ("Emotions", ", ".join(summary.labels)),
        ("Options", _told_options(report.options)),
        ("Intervals", _told_intervals(summary)),
        ("Made with", f"emoglot {__version__} on {made_on.isoformat()}"),
    ]
    return Section("method", "Method", "How this was made", definitions(pairs))


def _told_options(options: Options) -> str:
    given = (
        ("--time", options.time),
        ("--date-format", options.date_format),
        ("--group", options.group),
        ("--cluster", options.cluster),
        ("--language-column", options.language),
        ("--prefix", options.prefix),
        ("--text-column", options.text if options.with_texts else None),
        ("--no-texts", None if options.with_texts else ""),
    )
    return " ".join(f"{name} {value}".strip() for name, value in given if value is not None) or "none"


def _told_intervals(summary: Summary) -> str:
    if summary.clusters > 1:
        return (
            f"Bootstrap over {summary.clusters:,} clusters, into which the values of --cluster are hashed (at "
            f"most {CLUSTERS:,}): {RESAMPLES:,} resamples, in which the count of a cluster has a Poisson distribution "
            "of mean 1; the interval is the middle 95 % of the shares. Where no text carries an emotion, the upper end "
            "is 3 divided by the number of clusters; texts of a single cluster have an interval from 0 to 100 %."
        )
    return (
        f"Bootstrap: {RESAMPLES:,} resamples of as many texts with replacement; the interval is the middle 95 % of the "
        "shares. Where no text carries an emotion, the upper end is 3 divided by the number of texts. "
        f"{_INDEPENDENT}"
    )
