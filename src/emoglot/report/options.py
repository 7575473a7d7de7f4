"""What a report is asked to show, and which columns of the file it takes for it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Options:
    """Columns and choices of one report; a column that is None is looked for, or left out.

    `cluster` names what makes rows depend on one another, such as an author: intervals then allow for it.
    `prefix` is that of `emoglot score --prefix`; None finds it.
    """

    text: str = "text"
    time: str | None = None
    group: str | None = None
    cluster: str | None = None
    language: str | None = None
    prefix: str | None = None
    with_texts: bool = True
    title: str | None = None
    model: Path | None = None
