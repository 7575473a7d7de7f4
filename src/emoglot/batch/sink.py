"""The sink of a job: scored windows become pieces of a file, and the pieces one file."""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import parquet

from emoglot.batch.formats import JSONL, PARQUET, TEXT, Format, delimiter_of
from emoglot.batch.frame import LABELS
from emoglot.batch.source import Window
from emoglot.errors import DataError, UsageError
from emoglot.labels import names_where

DIGITS = 5  # after the point: scores of two machines differ in the seventh


class Sink:
    """Writes windows in one format. The first window settles the columns."""

    def __init__(self, format: Format, labels: Sequence[str], prefix: str) -> None:
        if format.kind == TEXT:
            raise UsageError("scores have columns: write csv, tsv, jsonl or parquet")
        self.format = format
        self._labels = tuple(labels)
        self._added = [f"{prefix}{LABELS}", *(f"{prefix}{label}" for label in labels)]
        self._schema: pa.Schema | None = None

    def check_columns(self, columns: Sequence[str]) -> None:
        """Refuse to write two columns of one name."""
        taken = [name for name in self._added if name in columns]
        if taken:
            raise UsageError(f"the input has a column {taken[0]!r} already: give another --prefix for ours")

    def settle(self, columns: Sequence[str]) -> None:
        """Take the columns from the source, where it says them before its rows."""
        self.check_columns(columns)
        if self.format.kind != PARQUET:  # which knows their types, too
            self._schema = pa.schema([(name, pa.string()) for name in columns])

    def settle_as(self, piece: Path) -> None:
        """Take the columns from a piece that was written before."""
        if self.format.kind == PARQUET:
            schema = parquet.read_schema(piece)
            self._schema = pa.schema([column for column in schema if column.name not in self._added])
        elif self.format.kind != JSONL:
            with piece.open("rb") as packed:
                text = io.TextIOWrapper(self.format.unpacked(packed), encoding="utf-8", newline="")
                header = next(csv.reader(text, delimiter=self._delimiter))
            self._schema = pa.schema([(name, pa.string()) for name in header[: -len(self._added)]])

    @property
    def _delimiter(self) -> str:
        return delimiter_of(self.format.kind)

    def encode(self, window: Window, scores: NDArray[np.float32], chosen: NDArray[np.bool_]) -> bytes:
        """Give the piece of the file that a window becomes."""
        names = [list(names_where(row, self._labels)) for row in chosen]
        if self.format.kind == PARQUET:
            return self._encode_parquet(window, scores, names)
        rounded = np.round(scores.astype(np.float64), DIGITS).tolist()
        encode = self._encode_json if self.format.kind == JSONL else self._encode_csv
        return self.format.pack("".join(encode(window, rounded, names)).encode("utf-8"))

    def join(self, pieces: Sequence[Path], target: Path) -> None:
        """Make one file of the pieces."""
        if self.format.kind == PARQUET:
            self._join_parquet(pieces, target)
            return
        with target.open("wb") as output:
            for piece in pieces:
                with piece.open("rb") as part:
                    shutil.copyfileobj(part, output)

    def _encode_json(self, window: Window, scores: list[list[float]], names: list[list[str]]) -> Iterator[str]:
        for record, row, given in zip(_records(window), scores, names, strict=True):
            self.check_columns(tuple(record))
            added = dict(zip(self._added, [given, *row], strict=True))
            yield json.dumps(record | added, ensure_ascii=False, default=str) + "\n"

    def _encode_csv(self, window: Window, scores: list[list[float]], names: list[list[str]]) -> Iterator[str]:
        buffer = io.StringIO()
        writer = csv.writer(buffer, delimiter=self._delimiter, lineterminator="\n")
        records = _records(window)
        columns = self._settle_columns(records)
        if window.number == 0:
            writer.writerow([*columns, *self._added])
        for record, row, given in zip(records, scores, names, strict=True):
            if unknown := set(record) - set(columns):
                raise DataError(f"the first row has no {sorted(unknown)[0]!r}, which a later one has: write jsonl")
            writer.writerow([*(_cell(record.get(name)) for name in columns), ",".join(given), *row])
        yield buffer.getvalue()

    def _settle_columns(self, records: Sequence[dict[str, Any]]) -> list[str]:
        if self._schema is None:
            columns = dict.fromkeys(name for record in records for name in record)
            self.check_columns(tuple(columns))
            self._schema = pa.schema([(name, pa.string()) for name in columns])
        return list(self._schema.names)

    def _encode_parquet(self, window: Window, scores: NDArray[np.float32], names: list[list[str]]) -> bytes:
        table = window.table
        if table is None:
            try:
                table = pa.Table.from_pylist(window.records, schema=self._schema)
            except (pa.ArrowException, TypeError) as error:
                raise DataError(f"the rows do not fit the columns of Parquet: {error}; write jsonl") from error
        if self._schema is None:
            self.check_columns(table.column_names)
            self._schema = table.schema
        table = table.append_column(self._added[0], pa.array(names, pa.list_(pa.string())))
        for name, column in zip(self._added[1:], scores.T, strict=True):
            table = table.append_column(name, pa.array(column, pa.float32()))
        buffer = pa.BufferOutputStream()
        parquet.write_table(table, buffer, compression="zstd")
        return buffer.getvalue().to_pybytes()  # type: ignore[no-any-return]

    def _join_parquet(self, pieces: Sequence[Path], target: Path) -> None:
        first = parquet.read_schema(pieces[0])
        with parquet.ParquetWriter(target, first, compression="zstd") as writer:
            for piece in pieces:
                writer.write_table(parquet.read_table(piece, schema=first))


def _records(window: Window) -> list[dict[str, Any]]:
    return window.records if window.table is None else window.table.to_pylist()


def _cell(value: Any) -> Any:
    """Write what CSV has no form for as JSON."""
    return json.dumps(value, ensure_ascii=False, default=str) if isinstance(value, (list, dict, bool)) else value
