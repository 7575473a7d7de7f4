"""Parquet input and output; columns keep their types."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from emoglot.batch import window as limits
from emoglot.batch.columns import Values
from emoglot.batch.sink import Sink, UnfitRowsError
from emoglot.batch.watch import Watch
from emoglot.batch.window import InputColumns, Reject, Window, not_a_text, text_of
from emoglot.data.columns import check_different
from emoglot.data.streams import Stream
from emoglot.errors import DataError, needs_extra

with needs_extra("parquet", "scoring Parquet files"):
    import pyarrow as pa
    from pyarrow import parquet

from emoglot.batch.arrow import with_columns

_FOOTER_END = 8  # bytes: the length of the footer and the magic number


class ParquetInput:
    """A Parquet file; columns other than the text are passed on unchanged."""

    def __init__(self, stream: Stream, columns: InputColumns, watch: Watch, digest: hashlib.blake2b) -> None:
        self._columns = columns
        self._hash = digest
        self.watch: Watch | None = watch
        self._watch = watch
        try:
            self._file = parquet.ParquetFile(stream.file)
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"{watch.name} is not a readable Parquet file: {error}") from error
        self.schema = self._file.schema_arrow
        check_different(self.schema.names, watch.name)
        self.columns: tuple[str, ...] | None = tuple(self.schema.names)
        self._text = columns.find(self.schema.names, watch.name)
        if self._text != (columns.text or "text"):
            stream.note(f"the texts are in the column {self._text!r}; use --text-column if that is wrong")
        if not _is_text(kind := self.schema.field(self._text).type):
            raise DataError(
                f"the column {self._text!r} must contain strings, got {kind}: convert it, or use --text-column"
            )
        self._rows = 0
        # Where reading continues: the row group, and the number of its rows already read.
        self._group = self._inside = 0
        footer = self._file.metadata.serialized_size + _FOOTER_END
        watch.hash_range(digest, watch.size - footer, footer)

    def progress(self) -> int:
        """Return the number of bytes of the rows that were read."""
        return int(self._watch.size * self._rows // max(1, self._file.metadata.num_rows))

    def skip(self, rows: int) -> int:
        """Skip this many rows; of skipped row groups, only the bytes are read."""
        metadata = self._file.metadata
        while self._group < metadata.num_row_groups:
            count = metadata.row_group(self._group).num_rows
            if self._rows + count > rows:
                break
            self._rows += count
            self._hash_group(self._group)
            self._group += 1
        if self._group < metadata.num_row_groups:
            self._inside = rows - self._rows
            if self._inside:
                self._hash_group(self._group)
        return self._rows + self._inside

    def is_at_end(self) -> bool:
        """Return whether no row is left."""
        return bool(self._rows + self._inside == self._file.metadata.num_rows)

    def windows(self, number: int, read: int) -> Iterator[Window]:
        """Yield the remaining rows in windows."""
        try:
            for batch in self._batches():
                line = self._rows + 1
                self._rows += batch.num_rows
                read += batch.num_rows
                yield self._window(pa.Table.from_batches([batch]), line, Window(number, read=read))
                number += 1
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"{self._watch.name} cannot be read: {error}") from error

    def _batches(self) -> Iterator[pa.RecordBatch]:
        inside = self._inside
        for index in range(self._group, self._file.metadata.num_row_groups):
            if not inside:
                self._hash_group(index)
            # Group by group, so that windows do not depend on where reading began.
            for batch in self._file.iter_batches(limits.WINDOW_ROWS, row_groups=[index]):
                if inside >= batch.num_rows:
                    inside -= batch.num_rows
                    self._rows += batch.num_rows
                else:
                    assert not inside, "a job continues at the beginning of a window"
                    yield batch

    def _hash_group(self, index: int) -> None:
        group = self._file.metadata.row_group(index)
        if not group.num_rows:  # an empty group belongs to no window
            return
        for chunk in map(group.column, range(group.num_columns)):
            first = min(chunk.dictionary_page_offset or chunk.data_page_offset, chunk.data_page_offset)
            self._watch.hash_range(self._hash, first, chunk.total_compressed_size)

    def _window(self, table: pa.Table, line: int, window: Window) -> Window:
        window.digest = self._hash.hexdigest()
        own_ids = to_python(table.column(self._columns.id)) if self._columns.id else [None] * table.num_rows
        kept = []
        for row, value in enumerate(to_python(table.column(self._text))):
            try:
                text = value.decode("utf-8") if isinstance(value, bytes) else text_of(value)
                reason = None if isinstance(text, str) else not_a_text(self._text, text)
            except UnicodeDecodeError as error:
                reason = f"the text must be UTF-8: {error.reason}"
            if reason is not None:
                window.rejects.append(Reject(line + row, reason, own_ids[row]))
                continue
            kept.append(row)
            window.texts.append(text)
        window.table = table if len(kept) == table.num_rows else table.take(kept)
        return window


def _is_text(kind: pa.DataType) -> bool:
    """Return whether a column contains strings or bytes, also as a dictionary, which pandas writes for categories."""
    if pa.types.is_dictionary(kind):
        return _is_text(kind.value_type)
    types = pa.types
    return any(
        check(kind) for check in (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
    )


def to_python(values: pa.Table | pa.ChunkedArray) -> list[Any]:
    """Convert Arrow data to Python objects; raise DataError for dates and bytes that Python cannot represent."""
    try:
        return list(values.to_pylist())
    except (pa.ArrowException, ValueError, OverflowError) as error:
        raise DataError(f"the input has a value that cannot be read: {error}") from error


class ParquetSink(Sink):
    """Writes each window as a Parquet file; all are joined at the end."""

    _schema: pa.Schema | None = None

    def settle(self, columns: Sequence[str] | None, schema: Any = None) -> None:
        """Set the columns that the source declares; without types, they are strings."""
        super().settle(columns)
        if columns is not None:
            self._schema = schema or pa.schema([(name, pa.string()) for name in columns])

    def settle_as(self, piece: Path) -> None:
        """Set the columns to those of an existing piece."""
        self._schema = pa.schema([column for column in parquet.read_schema(piece) if column.name not in self.added])
        self._settled = list(self._schema.names)

    def encode(self, window: Window, scored: Values) -> bytes:
        """Return a window as a piece of the output."""
        buffer = pa.BufferOutputStream()
        try:
            table = self._table(window) if window.table is None else window.table
            if self._schema is None:
                self._schema, self._settled = table.schema, list(table.schema.names)
            table = with_columns(table, zip(self._columns, scored, strict=True))
            parquet.write_table(table, buffer, compression="zstd")
        except (pa.ArrowException, TypeError, OverflowError) as error:
            raise UnfitRowsError(f"the rows do not fit the columns of Parquet: {error}; write jsonl") from error
        return buffer.getvalue().to_pybytes()  # type: ignore[no-any-return]

    def _table(self, window: Window) -> pa.Table:
        """Return records as columns; Arrow infers the types of columns that are not set yet."""
        types = {field.name: field.type for field in self._schema or ()}
        columns = self._columns_of(window.records, window.file)
        arrays = [_array([record.get(name) for record in window.records], types.get(name)) for name in columns]
        return pa.Table.from_arrays(arrays, names=columns)

    def join(self, pieces: Sequence[Path], target: Path) -> None:
        """Join the pieces to one file."""
        first = parquet.read_schema(pieces[0])
        with parquet.ParquetWriter(target, first, compression="zstd") as writer:
            for piece in pieces:
                writer.write_table(parquet.read_table(piece, schema=first))


def _array(values: list[Any], settled: pa.DataType | None) -> pa.Array:
    """Return a column; raise an error if Arrow would silently drop keys of objects that are not in the type."""
    if settled is not None and pa.types.is_nested(settled):
        both = [pa.schema([("column", kind)]) for kind in (settled, pa.array(values).type)]
        if pa.unify_schemas(both, promote_options="permissive").field(0).type != settled:
            raise pa.ArrowInvalid(f"the first rows are {settled}, a later one has more")
    return pa.array(values, settled)
