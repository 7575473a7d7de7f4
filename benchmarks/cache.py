"""Compares reading token vectors from the cache with HDF5 with one dataset per text, as in the authors' code.

    python -m benchmarks.cache      # needs h5py

The vectors of each text are read once, in shuffled batches of 32, padded as for training. Both files are in the page
cache after the first pass, so that formats are compared and not disks.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from benchmarks.training import BATCH, DIM, ROWS, make_labelled
from emoglot.encoders.features import Features, Segment


def batches() -> list[np.ndarray]:
    return np.split(np.random.default_rng(1).permutation(ROWS), range(BATCH, ROWS, BATCH))


def read_ours(features: Features) -> None:
    for rows in batches():
        torch.from_numpy(features.pad(rows)[0]).float()


def write_hdf5(features: Features, path: Path) -> None:
    import h5py

    with h5py.File(path, "w") as file:
        for row in range(ROWS):
            file.create_dataset(str(row), data=features.vectors(row).astype(np.float64))


def read_hdf5(path: Path) -> None:
    import h5py

    with h5py.File(path, "r") as file:
        for rows in batches():
            vectors = [file[str(row)][:] for row in rows]
            padded = np.zeros((len(vectors), max(map(len, vectors)), DIM), dtype=np.float32)
            for row, found in enumerate(vectors):
                padded[row, : len(found)] = found


def seconds(run: Callable[[], None]) -> float:
    run()  # into the page cache
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def main() -> None:
    made = make_labelled().inputs
    with tempfile.TemporaryDirectory() as scratch:
        (segment,) = made.segments
        keys = np.arange(2 * ROWS, dtype=np.uint64).view(np.uint8).reshape(ROWS, 16)
        whole = Segment(keys, np.append(0, made.places[:, 2]), segment.spans, segment.vectors)
        ours = Features((Segment.open(whole.write(Path(scratch) / "ours")),), made.places, DIM)
        path = Path(scratch) / "theirs.h5"
        write_hdf5(made, path)
        own, theirs = seconds(lambda: read_ours(ours)), seconds(lambda: read_hdf5(path))
    print(f"emoglot {own:.2f} s, HDF5 {theirs:.2f} s for {ROWS:,} texts")
    print(f"ratio {theirs / own:.1f}")


if __name__ == "__main__":
    main()
