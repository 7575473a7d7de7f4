"""The sink of a job: scored windows become pieces of a file, and the pieces one file."""

from __future__ import annotations

import csv
import io
import json
import math
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from emoglot.batch.arrow import to_arrow
from emoglot.batch.columns import NAMES, Column, Scored
from emoglot.batch.formats import JSONL, PARQUET, TEXT, Format, delimiter_of
from emoglot.batch.source import Window
from emoglot.errors import DataError, UsageError

DIGITS = 5  # after the point: scores of two machines differ in the seventh


class Sink:
    """Writes windows in one format. The first window settles the columns."""

    def __init__(self, format: Format, added: Sequence[Column]) -> None:
        if format.kind == TEXT:
            raise UsageError("scores have columns: write csv, tsv, jsonl or parquet")
        self.format = format
        self._columns = tuple(added)
        self._added = [column.name for column in added]
        self._schema: pa.Schema | None = None

    def check_columns(self, columns: Sequence[str]) -> None:
        """Refuse to write two columns of one name."""
        taken = [name for name in self._added if name in columns]
        if taken:
            raise UsageError(
                f"the input has a column {taken[0]!r} already: name ours otherwise, with --prefix emoglot_"
            )

    def settle(self, schema: pa.Schema) -> None:
        """Take the columns from the source, where it says them before its rows."""
        self.check_columns(schema.names)
        self._schema = schema

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

    def encode(self, window: Window, scored: Scored) -> bytes:
        """Return the piece of the file that a window becomes."""
        if self.format.kind == PARQUET:
            return self._encode_parquet(window, scored)
        encode = self._encode_json if self.format.kind == JSONL else self._encode_csv
        columns = [_rounded(values) if isinstance(values, np.ndarray) else values for values in scored.values]
        return self.format.pack("".join(encode(window, columns)).encode("utf-8"))

    def join(self, pieces: Sequence[Path], target: Path) -> None:
        """Make one file of the pieces."""
        if self.format.kind == PARQUET:
            self._join_parquet(pieces, target)
            return
        with target.open("wb") as output:
            for piece in pieces:
                with piece.open("rb") as part:
                    shutil.copyfileobj(part, output)

    def _encode_json(self, window: Window, columns: list[list[Any]]) -> Iterator[str]:
        for record, added in zip(window.rows(), zip(*columns, strict=True), strict=True):
            self.check_columns(tuple(record))
            yield _json(record | dict(zip(self._added, added, strict=True))) + "\n"

    def _encode_csv(self, window: Window, columns: list[list[Any]]) -> Iterator[str]:
        rows = _Rows()
        writer = csv.writer(rows, delimiter=self._delimiter)
        records = window.rows()
        names = self._columns_of(records)
        if self._schema is None:
            self._schema = pa.schema([(name, pa.string()) for name in names])
        if window.number == 0:
            writer.writerow([*names, *self._added])
        joined = [
            [",".join(cell) for cell in values] if column.kind == NAMES else [_cell(cell) for cell in values]
            for column, values in zip(self._columns, columns, strict=True)
        ]
        for record, added in zip(records, zip(*joined, strict=True), strict=True):
            writer.writerow([*(_cell(record.get(name)) for name in names), *added])
        yield from rows

    def _columns_of(self, records: Sequence[dict[str, Any]]) -> list[str]:
        """Give the columns that were settled or, from the first rows, are now; refuse rows that have others."""
        found = dict.fromkeys(name for record in records for name in record)
        if self._schema is None:
            self.check_columns(tuple(found))
            return list(found)
        columns = list(self._schema.names)
        if unknown := [name for name in found if name not in columns]:
            raise DataError(f"the first rows have no {unknown[0]!r}, which a later one has: write jsonl")
        return columns

    def _encode_parquet(self, window: Window, scored: Scored) -> bytes:
        buffer = pa.BufferOutputStream()
        try:
            table = self._table(window.records) if window.table is None else window.table
            self._schema = self._schema or table.schema
            for column, values in zip(self._columns, scored.values, strict=True):
                table = table.append_column(column.name, to_arrow(column, values))
            parquet.write_table(table, buffer, compression="zstd")
        except (pa.ArrowException, TypeError, OverflowError) as error:
            raise DataError(f"the rows do not fit the columns of Parquet: {error}; write jsonl") from error
        return buffer.getvalue().to_pybytes()  # type: ignore[no-any-return]

    def _table(self, records: Sequence[dict[str, Any]]) -> pa.Table:
        """Put records into columns; of those that no row settled before, Arrow finds the types."""
        types = {field.name: field.type for field in self._schema or ()}
        columns = self._columns_of(records)
        arrays = [_array([record.get(name) for record in records], types.get(name)) for name in columns]
        return pa.Table.from_arrays(arrays, names=columns)

    def _join_parquet(self, pieces: Sequence[Path], target: Path) -> None:
        first = parquet.read_schema(pieces[0])
        with parquet.ParquetWriter(target, first, compression="zstd") as writer:
            for piece in pieces:
                writer.write_table(parquet.read_table(piece, schema=first))


def _array(values: list[Any], settled: pa.DataType | None) -> pa.Array:
    """Make a column; Arrow would leave out what a settled type has no place for inside of objects."""
    if settled is not None and pa.types.is_nested(settled):
        both = [pa.schema([("column", kind)]) for kind in (settled, pa.array(values).type)]
        if pa.unify_schemas(both, promote_options="permissive").field(0).type != settled:
            raise pa.ArrowInvalid(f"the first rows are {settled}, a later one has more")
    return pa.array(values, settled)


class _Rows(list[str]):
    r"""What a csv.writer writes. It quotes a lone \r only if rows end in \r\n; here they end in \n all the same."""

    def write(self, row: str) -> None:
        self.append(row.removesuffix("\r\n") + "\n")


def _rounded(scores: Any) -> list[float | None]:
    """Return scores as they are written, None for those that are missing."""
    values = np.round(scores.astype(np.float64), DIGITS).tolist()
    return [None if math.isnan(value) else value for value in values]


def _cell(value: Any) -> Any:
    """Write what CSV has no form for as JSON, and bytes as text."""
    if isinstance(value, (list, dict, bool)):
        return _json(value)
    return _text(value) if isinstance(value, bytes) else value


def _json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, default=_text, allow_nan=False)
    except ValueError:  # JSON has no NaN
        return json.dumps(_without_nan(value), ensure_ascii=False, default=_text)


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nan(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_without_nan(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
