"""Tables with named columns, read from CSV, TSV, JSONL or Parquet into one form."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from emoglot.data.cells import check_count, shown
from emoglot.data.csvrecords import csv_records
from emoglot.data.lines import MalformedLineError, check_text, numbered_lines, read_bytes, read_text
from emoglot.errors import DataError, MissingExtraError

Record: TypeAlias = Mapping[str, object]
NumberedRecord: TypeAlias = tuple[int, Record | MalformedLineError]


@dataclass(frozen=True)
class Table:
    """The columns of a file and its records, each with its line (in Parquet: its row) counted from 1."""

    path: Path
    columns: tuple[str, ...]
    records: tuple[NumberedRecord, ...]

    def __post_init__(self) -> None:
        repeated = sorted({name for name in self.columns if name and self.columns.count(name) > 1})
        if repeated:
            raise DataError(f"columns must differ from one another, {self.path} has {repeated[0]!r} more than once")


def read_csv(path: Path) -> Table:
    """Read comma separated values, the first record being the header."""
    return _read_delimited(path, ",")


def read_tsv(path: Path) -> Table:
    """Read tab separated values with the quoting of CSV, the first record being the header."""
    return _read_delimited(path, "\t")


def read_jsonl(path: Path) -> Table:
    """Read one JSON object per line; the columns are the keys in order of appearance."""
    records = tuple((number, _json_record(line)) for number, line in numbered_lines(read_text(path)))
    objects = (record for _, record in records if not isinstance(record, MalformedLineError))
    return Table(path, tuple(dict.fromkeys(key for record in objects for key in record)), records)


def read_parquet(path: Path) -> Table:
    """Read a Parquet file, for which pyarrow must be installed."""
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise MissingExtraError("pyarrow", "parquet", "reading Parquet files") from None
    try:
        content = parquet.read_table(io.BytesIO(read_bytes(path)))
        rows: list[dict[str, Any]] = content.to_pylist()
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        raise DataError(f"{path} is not a readable Parquet file: {error}") from error
    return Table(path, tuple(content.column_names), tuple(enumerate(rows, start=1)))


def _read_delimited(path: Path, delimiter: str) -> Table:
    (_, header), *records = csv_records(read_text(path), delimiter)
    if isinstance(header, MalformedLineError):
        raise DataError(f"the header of {path} is malformed: {header}")
    columns = tuple(name.strip() for name in header)
    return Table(path, columns, tuple(_named(records, columns)))


def _named(
    records: Iterable[tuple[int, list[str] | MalformedLineError]], columns: tuple[str, ...]
) -> Iterable[NumberedRecord]:
    for line, fields in records:
        if isinstance(fields, MalformedLineError):
            yield line, fields
            continue
        try:
            check_count(fields, len(columns))
        except MalformedLineError as error:
            yield line, error
        else:
            yield line, dict(zip(columns, fields, strict=True))


def _json_record(line: str) -> Record | MalformedLineError:
    try:
        check_text(line)
        value = json.loads(line)
    except MalformedLineError as error:
        return error
    except (ValueError, RecursionError) as error:  # a ValueError is also what a number of 5,000 digits raises
        return MalformedLineError(f"a line must be a JSON object, got {shown(line)} ({error})")
    if not isinstance(value, dict):
        return MalformedLineError(f"a line must be a JSON object, got {shown(line)}")
    return value
