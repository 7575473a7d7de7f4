"""The sink of a job: writes scored windows as pieces, and joins the pieces to one file."""

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

from emoglot.batch.columns import NAMES, AddedColumn, Values
from emoglot.batch.window import Window
from emoglot.data.formats import JSONL, PARQUET, Format, decompressed, delimiter_of
from emoglot.errors import DataError, UsageError

DIGITS = 5  # after the decimal point: scores differ between machines in the seventh digit


class UnfitRowsError(DataError):
    """Rows that do not fit the columns of the output; the same job would fail again."""


class TakenColumnError(UsageError):
    """A column of the input with the name of a new one; the same job would fail again."""


def make_sink(format: Format, added: Sequence[AddedColumn]) -> Sink:
    """Return the sink of a format."""
    if format.kind == PARQUET:
        from emoglot.batch.parquet import ParquetSink

        return ParquetSink(format, added)
    return Sink(format, added)


class Sink:
    """Writes windows as CSV, TSV or JSONL. The source or the first window determines the columns."""

    def __init__(self, format: Format, added: Sequence[AddedColumn]) -> None:
        self.format = format
        self.added = [column.name for column in added]
        self._columns = tuple(added)
        self._settled: list[str] | None = None

    def check_columns(self, columns: Sequence[str]) -> None:
        """Raise an error if two columns would have the same name."""
        taken = [name for name in self.added if name in columns]
        if taken:
            raise TakenColumnError(
                f"the input already has a column {taken[0]!r}: use --prefix emoglot_ for the new columns"
            )

    def settle(self, columns: Sequence[str] | None, schema: Any = None) -> None:
        """Set the columns that the source declares, if any."""
        if columns is not None:
            self.check_columns(columns)
            self._settled = list(columns)

    def settle_as(self, piece: Path) -> None:
        """Set the columns to those of an existing piece."""
        if self.format.kind != JSONL:
            with piece.open("rb") as packed:
                stream = decompressed(packed, self.format.compression) if self.format.compression else packed
                text = io.TextIOWrapper(io.BufferedReader(stream), encoding="utf-8", newline="")
                header = next(csv.reader(text, delimiter=delimiter_of(self.format.kind)))
            self._settled = header[: -len(self.added)]

    def encode(self, window: Window, scored: Values) -> bytes:
        """Return a window as a piece of the output."""
        encode = self._encode_json if self.format.kind == JSONL else self._encode_csv
        columns = [_rounded(values) if isinstance(values, np.ndarray) else values for values in scored]
        return self.format.pack("".join(encode(window, columns)).encode("utf-8"))

    def join(self, pieces: Sequence[Path], target: Path) -> None:
        """Join the pieces to one file."""
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
        self._settled = names = self._columns_of(records, window.file)
        if window.number == 0:
            writer.writerow([*names, *self.added])
        joined = [
            [",".join(cell) for cell in values] if column.kind == NAMES else [_cell(cell) for cell in values]
            for column, values in zip(self._columns, columns, strict=True)
        ]
        for record, added in zip(records, zip(*joined, strict=True), strict=True):
            writer.writerow([*(_cell(record.get(name)) for name in names), *added])
        yield from rows

    def _columns_of(self, records: Sequence[dict[str, Any]], file: str | None) -> list[str]:
        """Return the columns, which the first rows set if needed; raise UnfitRowsError for rows with other columns."""
        found = dict.fromkeys(name for record in records for name in record)
        if self._settled is None:
            self.check_columns(tuple(found))
            return list(found)
        if unknown := [name for name in found if name not in self._settled]:
            raise UnfitRowsError(
                f"all rows must have the columns of the first ones, got {unknown[0]!r} in a later row"
                f"{f' of {file}' if file else ''}: write jsonl"
            )
        return self._settled


class _Rows(list[str]):
    r"""The output of a csv.writer, which quotes a lone \r only if rows end in \r\n; converted here to end in \n."""

    def write(self, row: str) -> None:
        self.append(row.removesuffix("\r\n") + "\n")


def _rounded(scores: Any) -> list[float | None]:
    """Return scores rounded for output, None for missing ones."""
    values = np.round(scores.astype(np.float64), DIGITS).tolist()
    return [None if math.isnan(value) else value for value in values]


def _cell(value: Any) -> Any:
    """Return a value as a CSV cell: nested values as JSON, bytes as text."""
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
    if isinstance(value, (list, tuple)):  # an Arrow map is a list of tuples
        return [_without_nan(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
