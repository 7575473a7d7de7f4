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

from emoglot.batch.columns import NAMES, AddedColumn, Scored
from emoglot.batch.window import Window
from emoglot.data.formats import JSONL, PARQUET, Format, decompressed, delimiter_of
from emoglot.errors import DataError, UsageError

DIGITS = 5  # after the point: scores of two machines differ in the seventh


def make_sink(format: Format, added: Sequence[AddedColumn]) -> Sink:
    """Return the sink of a format."""
    if format.kind == PARQUET:
        from emoglot.batch.parquet import ParquetSink

        return ParquetSink(format, added)
    return Sink(format, added)


class Sink:
    """Writes windows as CSV, TSV or JSONL. The source or the first window settles the columns."""

    def __init__(self, format: Format, added: Sequence[AddedColumn]) -> None:
        self.format = format
        self.added = [column.name for column in added]
        self._columns = tuple(added)
        self._settled: list[str] | None = None

    def check_columns(self, columns: Sequence[str]) -> None:
        """Refuse to write two columns of one name."""
        taken = [name for name in self.added if name in columns]
        if taken:
            raise UsageError(
                f"the input has a column {taken[0]!r} already: name ours otherwise, with --prefix emoglot_"
            )

    def settle(self, columns: Sequence[str] | None, schema: Any = None) -> None:
        """Set the columns that the source states before its rows, if it does."""
        if columns is not None:
            self.check_columns(columns)
            self._settled = list(columns)

    def settle_as(self, piece: Path) -> None:
        """Set the columns to those of a piece that was written before."""
        if self.format.kind != JSONL:
            with piece.open("rb") as packed:
                stream = decompressed(packed, self.format.compression) if self.format.compression else packed
                text = io.TextIOWrapper(io.BufferedReader(stream), encoding="utf-8", newline="")
                header = next(csv.reader(text, delimiter=delimiter_of(self.format.kind)))
            self._settled = header[: -len(self.added)]

    def encode(self, window: Window, scored: Scored) -> bytes:
        """Return the piece of the file that a window becomes."""
        encode = self._encode_json if self.format.kind == JSONL else self._encode_csv
        columns = [_rounded(values) if isinstance(values, np.ndarray) else values for values in scored.values]
        return self.format.pack("".join(encode(window, columns)).encode("utf-8"))

    def join(self, pieces: Sequence[Path], target: Path) -> None:
        """Write the pieces to one file."""
        with target.open("wb") as output:
            for piece in pieces:
                with piece.open("rb") as part:
                    shutil.copyfileobj(part, output)

    def _encode_json(self, window: Window, columns: list[list[Any]]) -> Iterator[str]:
        for record, added in zip(window.rows(), zip(*columns, strict=True), strict=True):
            self.check_columns(tuple(record))
            yield _json(record | dict(zip(self.added, added, strict=True))) + "\n"

    def _encode_csv(self, window: Window, columns: list[list[Any]]) -> Iterator[str]:
        rows = _Rows()
        writer = csv.writer(rows, delimiter=delimiter_of(self.format.kind))
        records = window.rows()
        self._settled = names = self._columns_of(records)
        if window.number == 0:
            writer.writerow([*names, *self.added])
        joined = [
            [",".join(cell) for cell in values] if column.kind == NAMES else [_cell(cell) for cell in values]
            for column, values in zip(self._columns, columns, strict=True)
        ]
        for record, added in zip(records, zip(*joined, strict=True), strict=True):
            writer.writerow([*(_cell(record.get(name)) for name in names), *added])
        yield from rows

    def _columns_of(self, records: Sequence[dict[str, Any]]) -> list[str]:
        """Return the columns that were settled or, from the first rows, are now; refuse rows that have others."""
        found = dict.fromkeys(name for record in records for name in record)
        if self._settled is None:
            self.check_columns(tuple(found))
            return list(found)
        if unknown := [name for name in found if name not in self._settled]:
            raise DataError(f"the first rows have no {unknown[0]!r}, which a later one has: write jsonl")
        return self._settled


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
    if isinstance(value, (list, tuple)):  # a map of Arrow is a list of tuples
        return [_without_nan(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
