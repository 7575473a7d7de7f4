"""The options of a report."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Options:
    """The columns and choices of a report; a column that is None is found by its usual name, or not used.

    `cluster` is a column whose rows are not independent, such as the author; intervals account for this. `prefix` is
    that of `emoglot score --prefix`; None finds it. `date_format` is that of the column `time`, such as
    `%d/%m/%Y %H:%M`; None recognises it.
    """

    text: str | None = None
    time: str | None = None
    group: str | None = None
    cluster: str | None = None
    language: str | None = None
    prefix: str | None = None
    with_texts: bool = True
    title: str | None = None
    model: Path | None = None
    date_format: str | None = None
