"""Makes a report of a scored file, and writes it where nothing is."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path

from emoglot.errors import UsageError
from emoglot.features import Progress
from emoglot.files import write_whole
from emoglot.labels import SEMEVAL_LABELS
from emoglot.report.aggregate import MISSING, summarise
from emoglot.report.evidence import read_evidence
from emoglot.report.options import Options
from emoglot.report.page import render
from emoglot.report.sections import Report
from emoglot.report.source import explained, open_scored
from emoglot.report.texts import read_texts

_WORD_LANGUAGES = 12  # whose words are compared; of rarer ones there is too little text


def make_report(
    path: Path, options: Options | None = None, *, name: str | None = None, on_texts: Progress | None = None
) -> tuple[str, Report]:
    """Return the page about a scored file and what it shows; `name` is what the file is called in it."""
    options = options or Options()
    evidence = read_evidence(options.model)
    scored = open_scored(path, options, tuple(dict.fromkeys((*evidence.labels, *SEMEVAL_LABELS))))
    with explained(path):
        summary = summarise(scored)
        languages = [count.name for count in summary.languages if count.name != MISSING][:_WORD_LANGUAGES]
        count = _counter(summary.rows.readable, on_texts)
        texts = read_texts(scored, languages, count) if options.with_texts else None
    report = Report(Path(name or path.name), options, summary, evidence, texts)
    return render(report, date.today()), report


def _counter(total: int, on_texts: Progress | None) -> Callable[[int], None]:
    """Return a function that adds up batches and says how far we are."""
    done = 0

    def count(rows: int) -> None:
        nonlocal done
        done += rows
        if on_texts:
            on_texts(done, total)

    return count


def write_report(
    path: Path,
    out: Path,
    options: Options | None = None,
    *,
    overwrite: bool = False,
    on_texts: Progress | None = None,
) -> Report:
    """Write the page about a scored file; one that is there is replaced only with `overwrite`."""
    if out.is_dir() or not out.parent.is_dir():
        raise UsageError(
            f"--out must be a file in a folder that exists, got {out}: make the folder, or give another --out"
        )
    if out.exists() and path.exists() and out.samefile(path):
        raise UsageError(f"--out must not be the scored file itself, got {out}: give another --out")
    if out.exists() and not overwrite:
        raise UsageError(f"{out} exists already: give --overwrite to replace it, or another --out")
    html, report = make_report(path, options, on_texts=on_texts)
    write_whole(out, html)
    return report
