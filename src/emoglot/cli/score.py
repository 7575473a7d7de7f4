"""`emoglot score`: files of any size in, the same rows with scores out."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated

import typer

from emoglot.cli import options
from emoglot.cli.output import kept_when_interrupted, note, progress_bars, warn
from emoglot.errors import RejectedRowsError, UsageError

if TYPE_CHECKING:
    from emoglot.batch.source import Source, Window

LOCAL, RAY = "local", "ray"
_PAUSE = 30.0  # seconds between lines where there is no bar


def score(
    source: Annotated[str, typer.Argument(metavar="IN", help="A CSV, TSV, JSONL, Parquet or text file; - for stdin.")],
    target: Annotated[str, typer.Argument(metavar="OUT", help="A CSV, TSV, JSONL or Parquet file; - for stdout.")],
    text_column: Annotated[str, typer.Option(help="The column with the text.")] = "text",
    id_column: Annotated[str | None, typer.Option(help="The column that names a row in the list of rejects.")] = None,
    language: options.Language = None,
    language_column: Annotated[str | None, typer.Option(help="The column with the language of each text.")] = None,
    precision: options.Precision = None,
    recall: options.Recall = None,
    prefix: Annotated[str, typer.Option(help="What our columns begin with, such as emoglot_.")] = "",
    in_format: Annotated[str | None, typer.Option(help="csv, tsv, jsonl, parquet or txt, if IN does not tell.")] = None,
    out_format: Annotated[str | None, typer.Option(help="csv, tsv, jsonl or parquet, if OUT does not tell.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a job that was killed.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace OUT if it exists.")] = False,
    jobs: Annotated[int | None, typer.Option(min=1, help="Processes of two threads; by default for all cores.")] = None,
    engine: Annotated[str, typer.Option(help="local, or ray for a cluster; then IN may be a folder or URL.")] = "local",
    address: Annotated[str | None, typer.Option(help="The address of a Ray cluster, such as ray://head:10001.")] = None,
    model: options.Model = None,
    encoder: options.EncoderOption = None,
) -> None:
    """Score every text of a file; the other columns are kept, and the order of rows."""
    from emoglot.batch.formats import STANDARD, format_of
    from emoglot.batch.score import score_file
    from emoglot.batch.scoring import Model, default_jobs
    from emoglot.batch.source import Columns

    place = Model(model, encoder, language, language_column, precision, recall)
    columns = Columns(text_column, id_column, language_column)
    formats = format_of(source, in_format), format_of(target, out_format)
    if engine == RAY:
        from emoglot.batch.cluster import score_on_ray

        kinds = formats[0].kind, formats[1].kind
        score_on_ray(source, target, *kinds, columns, place, prefix=prefix, address=address, actors=jobs)
        return
    if engine != LOCAL:
        raise UsageError(f"an engine is {LOCAL} or {RAY}, got {engine!r}")
    through_pipe = STANDARD in (source, target)
    interrupted = (
        nullcontext() if through_pipe else kept_when_interrupted("every window that was written (give --resume)")
    )
    with interrupted, progress_bars(_PAUSE) as update:
        tally = score_file(
            source,
            target,
            *formats,
            columns,
            place,
            prefix=prefix,
            jobs=jobs or default_jobs(),
            resume=resume,
            overwrite=overwrite,
            on_window=_Speed(update, tells_rejects=target == STANDARD).on_window,
        )
    note(f"{tally.rows - tally.rejected} rows scored")
    if tally.rejected:
        where = f": {tally.rejects}" if tally.rejects else ""
        raise RejectedRowsError(f"{tally.rejected} of {tally.rows} rows could not be scored{where}")


class _Speed:
    """Tells the bar how fast it goes, and the user of rejects for which there is no file."""

    def __init__(self, update: Callable[..., None], *, tells_rejects: bool) -> None:
        self._update = update
        self._tells_rejects = tells_rejects
        self._began = time.perf_counter()
        self._texts = 0

    def on_window(self, window: Window, source: Source) -> None:
        """Take a window that is written into account."""
        self._texts += len(window.texts)
        done, total = source.progress()
        rate = self._texts / (time.perf_counter() - self._began)
        self._update("scoring", done, total or done + 1, f"{self._texts:,} texts, {rate:,.0f} a second")
        for reject in window.rejects if self._tells_rejects else ():
            warn(f"line {reject.line}: {reject.reason}")
