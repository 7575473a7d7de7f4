"""Creates the report of a scored file."""

from __future__ import annotations

from datetime import date
from pathlib import Path

from emoglot.encoders.features import Progress
from emoglot.errors import UsageError
from emoglot.files import write_whole
from emoglot.labels import SEMEVAL_LABELS
from emoglot.report.aggregate import MISSING, summarise
from emoglot.report.evidence import read_evidence
from emoglot.report.options import Options
from emoglot.report.page import render_page
from emoglot.report.sections import Report
from emoglot.report.source import open_scored, polars_errors
from emoglot.report.texts import read_texts

_WORD_LANGUAGES = 12  # most frequent languages whose words are compared


def make_report(
    path: Path,
    options: Options | None = None,
    *,
    name: str | None = None,
    on_texts: Progress = lambda done, total: None,
) -> tuple[str, Report]:
    """Return the page about a scored file and its content; `name` replaces the name of the file in it."""
    options = options or Options()
    evidence = read_evidence(options.model)
    scored = open_scored(path, options, tuple(dict.fromkeys((*evidence.labels, *SEMEVAL_LABELS))))
    with polars_errors(path):
        summary = summarise(scored)
        languages = [count.name for count in summary.languages if count.name != MISSING][:_WORD_LANGUAGES]
        readable = summary.rows.readable
        texts = read_texts(scored, languages, lambda done: on_texts(done, readable)) if options.with_texts else None
    report = Report(Path(name or path.name), options, summary, evidence, texts)
    return render_page(report, date.today()), report


def write_report(
    path: Path,
    out: Path,
    options: Options | None = None,
    *,
    overwrite: bool = False,
    on_texts: Progress = lambda done, total: None,
) -> Report:
    """Write the page about a scored file; an existing one is replaced only with `overwrite`."""
    if out.is_dir() or not out.parent.is_dir():
        raise UsageError(
            f"--out must be a file in a folder that exists, got {out}: create the folder, or choose another --out"
        )
    if out.exists() and path.exists() and out.samefile(path):
        raise UsageError(f"--out must not be the scored file itself, got {out}: choose another --out")
    if out.exists() and not overwrite:
        raise UsageError(f"{out} already exists: choose another --out, or replace it with --overwrite")
    html, report = make_report(path, options, on_texts=on_texts)
    write_whole(out, html)
    return report
