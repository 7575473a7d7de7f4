"""A table with named columns, read into memory from any tabular format."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from emoglot.data.lines import MalformedLineError
from emoglot.data.records import Numbered, open_records
from emoglot.data.streams import Reading, open_path
from emoglot.errors import DataError


@dataclass(frozen=True)
class Table:
    """The columns of a file and its records, each with its line (in Parquet: its row) counted from 1."""

    path: Path
    columns: tuple[str, ...]
    records: tuple[Numbered, ...]


def read_table(path: Path, reading: Reading) -> Table:
    """Read a table; the columns of JSONL are the keys in order of appearance."""
    with open_path(path, reading) as stream:
        opened = open_records(stream, reading)
        stream.announce()
        records = tuple(opened.rows)
    columns = opened.columns
    if columns is None:
        if not records:
            raise DataError(f"a data file needs at least one row, {path} is empty")
        objects = (record for _, record in records if not isinstance(record, MalformedLineError))
        columns = tuple(dict.fromkeys(key for record in objects for key in record))
    return Table(path, columns, records)
