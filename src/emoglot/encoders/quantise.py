"""Quantises matrices to bytes, each row with its own scale."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

LEAST_SCALE = 1e-12  # of a row of zeros


def quantise_rows(matrix: NDArray[np.float32], levels: int) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Return a matrix as bytes from −`levels` to `levels`, and the scale of each row."""
    scales = np.maximum(np.abs(matrix).max(axis=1) / levels, LEAST_SCALE).astype(np.float32)
    return np.rint(matrix / scales[:, None]).astype(np.int8), scales
