"""Scoring on a Ray cluster: Ray reads, distributes, retries and writes; this module scores the batches."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import compute, fs
from pyarrow import csv as arrow_csv

from emoglot.batch.columns import LABELS
from emoglot.batch.frame import score_frame
from emoglot.batch.scoring import ModelSource
from emoglot.batch.window import WINDOW_ROWS, InputColumns
from emoglot.data.formats import CSV, JSONL, PARQUET, TEXT, delimiter_of
from emoglot.errors import DataError, UsageError, needs_extra

with needs_extra("ray", "scoring on a cluster"):
    import ray
    import ray.data

# Set for clusters that emoglot starts; a running cluster keeps its own setting.
RAY_TELEMETRY = "RAY_USAGE_STATS_ENABLED"
WRITTEN = (CSV, JSONL, PARQUET)
SUCCESS = "_SUCCESS"  # the file that marks complete output, named as in Hadoop and Spark


class Scorer:
    """An actor that loads the model once and scores batches."""

    def __init__(self, model: ModelSource, columns: InputColumns, prefix: str) -> None:
        self._model = model.load()
        self._options: dict[str, Any] = {
            "language": model.language,
            "precision": model.precision,
            "recall": model.recall,
        }
        self._columns = columns
        self._prefix = prefix

    def __call__(self, batch: pa.Table) -> pa.Table:
        """Add the scores; a row without a text gets none."""
        return score_frame(batch, self._columns.text or "text", model=self._model, prefix=self._prefix, **self._options)


def score_on_ray(
    source: str,
    target: str,
    source_kind: str,
    target_kind: str,
    columns: InputColumns,
    model: ModelSource,
    *,
    prefix: str = "",
    address: str | None = None,
    actors: int | None = None,
) -> None:
    """Score files that every machine of a cluster can read into a folder of files; `_SUCCESS` marks it as complete.

    Source and target are paths or URLs such as s3://bucket/posts; the source may be a folder.
    """
    if model.language_column is not None:
        raise UsageError(
            "--language-column is not supported on a cluster: use --language, or score each language separately"
        )
    if target_kind not in WRITTEN:
        raise UsageError(f"on a cluster, write one of {', '.join(WRITTEN)}, got {target_kind}")
    system, folder = _located(target)
    if system.get_file_info(folder).type != fs.FileType.NotFound:
        raise UsageError(f"{target} already exists: choose another name")
    if not ray.is_initialized():
        os.environ.setdefault(RAY_TELEMETRY, "0")
        ray.init(address=address, log_to_driver=False, logging_level=logging.WARNING)
    ray.data.DataContext.get_current().execution_options.preserve_order = True
    # By default as many actors as fit on the cluster; the number changes with the number of machines.
    pool = ray.data.ActorPoolStrategy(size=actors) if actors else ray.data.ActorPoolStrategy(min_size=1)
    scored = _read(source, source_kind, columns).map_batches(
        Scorer,
        batch_format="pyarrow",
        batch_size=WINDOW_ROWS,
        fn_constructor_args=(model, columns, prefix),
        compute=pool,
        num_cpus=1,
        scheduling_strategy="SPREAD",  # over all machines, instead of filling one after the other
    )
    if target_kind == CSV:
        scored = scored.map_batches(_join_labels, fn_args=(f"{prefix}{LABELS}",), batch_format="pyarrow")
    write = {PARQUET: scored.write_parquet, JSONL: scored.write_json, CSV: scored.write_csv}[target_kind]
    write(target)
    with system.open_output_stream(f"{folder}/{SUCCESS}"):
        pass


def _join_labels(batch: pa.Table, column: str) -> pa.Table:
    """Join lists of labels, since CSV has no lists."""
    place = batch.column_names.index(column)
    return batch.set_column(place, column, compute.binary_join(batch.column(column), ","))


def _read(source: str, kind: str, columns: InputColumns) -> Any:
    if kind == PARQUET:
        return ray.data.read_parquet(source)
    if kind == JSONL:
        return ray.data.read_json(source)  # through Arrow, which reads "007" as text
    if kind == TEXT:
        return ray.data.read_text(source).rename_columns({"text": columns.text or "text"})
    parsing = arrow_csv.ParseOptions(delimiter=delimiter_of(kind), newlines_in_values=True)
    names = _header(source, parsing)
    columns.find(names, source)
    # As on one machine, cells are kept as they are: 007 stays 007.
    as_written = arrow_csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False)
    return ray.data.read_csv(source, parse_options=parsing, convert_options=as_written)


def _located(name: str) -> tuple[fs.FileSystem, str]:
    return fs.FileSystem.from_uri(name) if "://" in name else (fs.LocalFileSystem(), str(Path(name).resolve()))


def _header(source: str, parsing: Any) -> list[str]:
    system, path = _located(source)
    if system.get_file_info(path).type == fs.FileType.Directory:
        inside = system.get_file_info(fs.FileSelector(path, recursive=True))
        path = min((info.path for info in inside if info.type == fs.FileType.File), default=path)
    try:
        with system.open_input_stream(path) as stream:
            return list(arrow_csv.open_csv(stream, parse_options=parsing).schema.names)
    except (OSError, pa.ArrowException) as error:
        raise DataError(f"{source} cannot be read: {error}") from error
