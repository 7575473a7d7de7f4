"""The added columns as Arrow arrays."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from emoglot.batch.columns import FLAG, NAMES, SCORE, TEXT, AddedColumn

TYPES = {NAMES: pa.list_(pa.string()), SCORE: pa.float32(), TEXT: pa.string(), FLAG: pa.bool_()}


def to_arrow(column: AddedColumn, values: Any) -> pa.Array:
    """Return the values of a column; NaN becomes null."""
    return pa.array(values, TYPES[column.kind], from_pandas=True)
