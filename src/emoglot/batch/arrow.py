"""The added columns in an Arrow table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from emoglot.batch.columns import FLAG, NAMES, SCORE, TEXT, AddedColumn

TYPES = {NAMES: pa.list_(pa.string()), SCORE: pa.float32(), TEXT: pa.string(), FLAG: pa.bool_()}


def with_columns(table: pa.Table, added: Iterable[tuple[AddedColumn, Any]]) -> pa.Table:
    """Return a table with added columns; NaN becomes null."""
    for column, values in added:
        table = table.append_column(column.name, pa.array(values, TYPES[column.kind], from_pandas=True))
    return table
