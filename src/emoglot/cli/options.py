"""Options that several commands take, each described once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from emoglot.cli.output import warn_of_bad_lines
from emoglot.errors import UsageError

if TYPE_CHECKING:
    from emoglot.data.dataset import Dataset

Format = Annotated[str | None, typer.Option("--format", help="The files' format; recognised by content if not given.")]
SkipBad = Annotated[bool, typer.Option("--skip-bad", help="Drop malformed lines and report how many.")]
TextColumn = Annotated[str | None, typer.Option(help="The column with the text.")]
LabelColumns = Annotated[str | None, typer.Option(help="Columns of 0 and 1, one for each label, comma separated.")]
LabelsColumn = Annotated[str | None, typer.Option(help="The column that lists a row's labels.")]
LanguageColumn = Annotated[str | None, typer.Option(help="The column with the language code.")]
Model = Annotated[Path | None, typer.Option("--model", help="A model folder; by default the model in the package.")]
EncoderOption = Annotated[str | None, typer.Option("--encoder", help="Where the model's encoder is now, if it moved.")]


@dataclass(frozen=True)
class Reading:
    """How data files are to be read."""

    format: str | None
    skip_bad: bool
    text_column: str | None
    label_columns: str | None
    labels_column: str | None
    language_column: str | None

    def options(self) -> dict[str, Any]:
        """Give the arguments of `emoglot.read`."""
        names = [name.strip() for name in self.label_columns.split(",")] if self.label_columns else None
        return {**asdict(self), "label_columns": names}


def check_new(out: Path) -> None:
    """Refuse to write over anything."""
    if out.exists():
        raise UsageError(f"{out} exists already: give another --out")


def read_all(paths: Sequence[Path], reading: Reading, known_labels: Sequence[str] = ()) -> Dataset:
    """Read and concatenate data files, saying what was dropped."""
    from emoglot.data import read
    from emoglot.data.dataset import concatenate

    data = concatenate(read(path, **reading.options(), known_labels=known_labels) for path in paths)
    warn_of_bad_lines(data.bad_lines, len(data))
    return data
