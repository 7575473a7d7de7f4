"""`emoglot score`: adds scores to the rows of files of any size."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from emoglot.cli import options
from emoglot.cli.output import (
    ask,
    closable_output,
    explained_output,
    kept_when_interrupted,
    note,
    progress_bars,
    show_messages,
    warn,
)
from emoglot.errors import RejectedRowsError, UsageError

if TYPE_CHECKING:
    from emoglot.batch.scoring import ModelSource
    from emoglot.batch.source import Source
    from emoglot.batch.window import InputColumns, Window

LOCAL, RAY = "local", "ray"
_PAUSE = 30.0  # seconds between progress lines, if there is no progress bar


@dataclass(frozen=True)
class InputOptions:
    """How the files are read."""

    text_column: options.TextColumn = None
    id_column: Annotated[
        str | None, options.reading_option("NAME", "Column that identifies a row in the list of rejected rows.")
    ] = None
    language_column: Annotated[
        str | None, options.reading_option("NAME", "Column with the language, by code or name. Default: recognised.")
    ] = None
    in_format: Annotated[
        str | None,
        options.reading_option(
            "NAME", "Format of IN: csv, tsv, jsonl, parquet, txt, xlsx, ods or xls. Default: recognised."
        ),
    ] = None
    encoding: options.Encoding = None
    delimiter: options.Delimiter = None

    def columns(self) -> InputColumns:
        """Return the columns with the text, the id and the language."""
        from emoglot.batch.window import InputColumns

        return InputColumns(self.text_column, self.id_column, self.language_column)


@dataclass(frozen=True)
class OutputOptions:
    """How the file is written."""

    prefix: Annotated[str, options.option("TEXT", "Prefix of the names of the added columns, such as emoglot_.")] = ""
    out_format: Annotated[
        str | None, options.option("NAME", "Format of OUT: csv, tsv, jsonl or parquet. Default: by its name.")
    ] = None
    resume: Annotated[bool, options.flag("--resume", "Continue a job that was interrupted.")] = False
    overwrite: Annotated[
        bool, options.flag("--overwrite", "Replace OUT and its list of rejected rows if they exist.")
    ] = False
    make_folders: Annotated[
        bool, options.flag("--make-folders", "Create the folder of OUT if it is missing, without asking.")
    ] = False


@dataclass(frozen=True)
class EngineOptions:
    """Where the job runs."""

    jobs: Annotated[
        int | None,
        options.option("N", "Number of processes, with two threads each. Default: enough for all cores.", min=1),
    ] = None
    engine: Annotated[str, options.option("NAME", "local, or ray for a cluster.")] = LOCAL
    address: Annotated[str | None, options.option("URL", "Address of a Ray cluster, such as ray://head:10001.")] = None


@options.expanded
def score(
    *,
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="IN... OUT",
            help="Files or folders to read (CSV, TSV, JSONL, Parquet, xlsx, ods, xls, text; also gz, zip and zst; "
            "- for stdin), then the file to write (CSV, TSV, JSONL or Parquet; also gz and zst; - for stdout).",
        ),
    ],
    chosen: options.ModelOptions,
    labels: options.LabelOptions,
    given: InputOptions,
    output: OutputOptions,
    engine: EngineOptions,
) -> None:
    """Add emotions to every row of files of any size.

    Writes the rows in the same order, with all their columns and new ones: labels, the score of each label, sentiment
    and language. Rows that cannot be scored are listed in OUT.rejects.jsonl, and the exit code is 7. With --engine ray,
    IN may be a URL.
    """
    from emoglot.batch.scoring import ModelSource

    if len(paths) < 2:
        raise UsageError(f"score needs at least one IN, followed by OUT, got {' '.join(paths)}")
    model = ModelSource(
        chosen.model, chosen.encoder, labels.language, given.language_column, labels.precision, labels.recall
    )
    if engine.engine == RAY:
        _score_on_ray(paths, model, given, output, engine)
    elif engine.engine != LOCAL:
        raise UsageError(f"--engine must be {LOCAL} or {RAY}, got {engine.engine!r}")
    elif engine.address is not None:
        raise UsageError(f"--address needs a cluster, got {engine.address} without one: add --engine {RAY}")
    else:
        _score_here(paths, model, given, output, engine.jobs)


def _score_here(
    paths: list[str], model: ModelSource, given: InputOptions, output: OutputOptions, jobs: int | None
) -> None:
    from emoglot.batch.score import score_file
    from emoglot.batch.scoring import default_jobs
    from emoglot.data.formats import STANDARD, format_of
    from emoglot.data.streams import Reading

    *sources, target = paths
    show_messages()
    make_folders = output.make_folders
    if not (folder := Path(target).parent).is_dir():  # that of `-` is the current folder
        make_folders = make_folders or ask(f"{folder} does not exist. Create it?")
    closable = closable_output() if target == STANDARD else nullcontext()
    pieces = Path(f"{target}.parts")
    kept = kept_when_interrupted(f"what was scored, in {pieces},", pieces.exists, "the same command with --resume")
    with (
        closable,
        explained_output(Path(target)),
        nullcontext() if STANDARD in paths else kept,
        progress_bars(_PAUSE) as update,
    ):
        tally = score_file(
            sources,
            target,
            format_of(target, output.out_format),
            given.columns(),
            model,
            reading=Reading(given.in_format, given.encoding, given.delimiter),
            prefix=output.prefix,
            jobs=jobs or default_jobs(),
            resume=output.resume,
            overwrite=output.overwrite,
            make_folders=make_folders,
            on_window=_Speed(update, tells_rejects=target == STANDARD).on_window,
        )
    scored = tally.rows - tally.rejected
    note(f"{scored} {'row' if scored == 1 else 'rows'} scored")
    if tally.rejected:
        where = f": {tally.rejects}" if tally.rejects else ""
        rows = "row" if tally.rows == 1 else "rows"
        raise RejectedRowsError(f"{tally.rejected} of {tally.rows} {rows} could not be scored{where}")


def _score_on_ray(
    paths: list[str], model: ModelSource, given: InputOptions, output: OutputOptions, engine: EngineOptions
) -> None:
    from emoglot.batch.cluster import score_on_ray
    from emoglot.data.formats import check_kind, format_of, named_format

    local = {
        "--id-column": given.id_column,
        "--encoding": given.encoding,
        "--delimiter": given.delimiter,
        "--resume": output.resume,
        "--overwrite": output.overwrite,
        "--make-folders": output.make_folders,
    }
    if ignored := [name for name, value in local.items() if value]:
        raise UsageError(f"{ignored[0]} is not supported on a cluster: remove it, or score on one machine")
    source, *others, target = paths
    if others:
        raise UsageError(
            f"on a cluster, IN must be one file, folder or URL, got {len(paths) - 1}: put them into a folder"
        )
    kind = check_kind(given.in_format) or named_format(source).kind
    if kind is None:
        raise UsageError(f"the format of {source} cannot be recognised by its name: set --in-format")
    written = format_of(target, output.out_format).kind
    assert written is not None
    score_on_ray(
        *(source, target, kind, written),
        replace(given.columns(), text=given.text_column or "text"),
        model,
        prefix=output.prefix,
        address=engine.address,
        actors=engine.jobs,
    )


class _Speed:
    """Shows the speed, and the rejected rows if they are not written to a file."""

    def __init__(self, update: Callable[..., None], *, tells_rejects: bool) -> None:
        self._update = update
        self._tells_rejects = tells_rejects
        self._began = time.perf_counter()
        self._texts = 0

    def on_window(self, window: Window, source: Source) -> None:
        """Count a window that was written."""
        self._texts += len(window.texts)
        done, total = source.progress()
        rate = self._texts / (time.perf_counter() - self._began)
        self._update("scoring", done, total or done + 1, f"{self._texts:,} texts, {rate:,.0f} a second")
        for reject in window.rejects if self._tells_rejects else ():
            where = f"{reject.file}, line" if reject.file else "line"
            warn(f"{where} {reject.line}: {reject.reason}")
