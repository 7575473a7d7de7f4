"""Compares one epoch on features of the size of E-c (three languages) with plain loops of the same network.

    python -m benchmarks.training      # needs h5py

The first loop is a simple `DataLoader` that reads the float64 vectors of each text from HDF5; the second is optimised,
with all vectors in memory as float32. Both shuffle, pad a batch to its longest row and run `nn.LSTM` on packed
sequences. All use all cores, batch 32, two bidirectional layers of 128. The first loop takes minutes, so it runs on
every eighth row.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from torch.utils.data import DataLoader
from torch.utils.data import Dataset as TorchDataset

from emoglot.config import Config, LossConfig
from emoglot.data.dataset import Dataset
from emoglot.encoders.features import Features, Segment
from emoglot.labels import SEMEVAL_LABELS
from emoglot.training.loss import DynamicWeighting, total_loss
from emoglot.training.part import Part
from emoglot.training.trainer import HeadLearner, Trainer

ROWS, DIM, LABELS, BATCH = 12_677, 512, len(SEMEVAL_LABELS), 32

Batch = tuple[torch.Tensor, torch.Tensor, torch.Tensor]  # vectors, lengths, targets


def make_labelled() -> Part:
    """Return random vectors, with lengths like those of tweets: 28 tokens on average, from 3 to 80."""
    random = np.random.default_rng(0)
    lengths = np.clip(random.gamma(5, 5.6, ROWS).astype(np.int64), 3, 80)
    ends = np.cumsum(lengths)
    vectors = random.standard_normal((ends[-1], DIM), dtype=np.float32).astype(np.float16)
    segment = Segment(
        np.zeros((0, 16), np.uint8), np.zeros(1, np.int64), np.zeros((len(vectors), 2), np.int32), vectors
    )
    places = np.stack([np.zeros(ROWS, np.int64), ends - lengths, ends], axis=1)
    targets = (random.random((ROWS, LABELS)) < 0.2).astype(np.int8)
    texts, sources = ("",) * ROWS, ("made",) * ROWS
    data = Dataset(texts, targets, SEMEVAL_LABELS, languages=sources, sources=sources)
    return Part(data, texts, Features((segment,), places, DIM))


class PlainHead(nn.Module):
    """The same network on packed sequences."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(DIM, 128, num_layers=2, bidirectional=True, batch_first=True, dropout=0.2201)
        self.attention = nn.Linear(256, 1, bias=False)
        self.output = nn.Linear(256, LABELS)

    def forward(self, vectors: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        packed = pack_padded_sequence(vectors, lengths, batch_first=True, enforce_sorted=False)
        states, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        mask = torch.arange(states.shape[1]) < lengths[:, None]
        beta = torch.softmax(self.attention(states)[..., 0].masked_fill(~mask, -torch.inf), dim=1)
        return self.output((beta[:, None] @ states)[:, 0])


class StoredTexts(TorchDataset[tuple[torch.Tensor, torch.Tensor]]):
    """The vectors of each text in a separate dataset, as float64."""

    def __init__(self, path: Path, labelled: Part, rows: range) -> None:
        import h5py

        with h5py.File(path, "w") as file:
            for row in rows:
                file.create_dataset(str(row), data=labelled.inputs.vectors(row).astype(np.float64))
        self._file, self._rows, self._targets = h5py.File(path, "r"), rows, labelled.targets

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        row = self._rows[index]
        return torch.from_numpy(self._file[str(row)][:]), torch.from_numpy(self._targets[row])


def collate(items: list[tuple[torch.Tensor, torch.Tensor]]) -> Batch:
    vectors, targets = zip(*items, strict=True)
    return (
        pad_sequence(list(vectors), batch_first=True),
        torch.tensor([len(one) for one in vectors]),
        torch.stack(targets),
    )


def float64_epoch(labelled: Part, every: int) -> float:
    """Return the seconds of an epoch, estimated from every n-th row."""
    with tempfile.TemporaryDirectory() as scratch:
        stored = StoredTexts(Path(scratch) / "vectors.h5", labelled, range(0, ROWS, every))
        loader: Any = DataLoader(stored, BATCH, shuffle=True, collate_fn=collate)
        return every * run_epoch(PlainHead().double(), loader)


def float32_epoch(labelled: Part) -> float:
    rows = [labelled.inputs.vectors(row).astype(np.float32) for row in range(ROWS)]
    batches = np.split(np.random.default_rng(1).permutation(ROWS), range(BATCH, ROWS, BATCH))
    targets = labelled.targets
    pairs = ([(torch.from_numpy(rows[row]), torch.from_numpy(targets[row])) for row in batch] for batch in batches)
    return run_epoch(PlainHead(), map(collate, pairs))


def run_epoch(head: nn.Module, batches: Iterable[Batch]) -> float:
    weighting = DynamicWeighting(LABELS, 0.3)
    optimiser = torch.optim.Adam(head.parameters())
    began = time.perf_counter()
    for vectors, lengths, targets in batches:
        loss = total_loss(head(vectors, lengths), targets, LossConfig(), weighting)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return time.perf_counter() - began


def our_epoch(labelled: Part) -> float:
    config = Config().override({"training.batch_size": BATCH})
    trainer = Trainer(HeadLearner(config, DIM), labelled, config, torch.device("cpu"))
    trainer.start()
    began = time.perf_counter()
    trainer.run_epoch(number=1)
    return time.perf_counter() - began


def main() -> None:
    labelled = make_labelled()
    ours = our_epoch(labelled)
    print(f"emoglot {ours:.1f} s an epoch, {torch.get_num_threads()} threads")
    for name, theirs in (
        ("a DataLoader of float64 from HDF5", float64_epoch(labelled, every=8)),
        ("a loop on float32 in memory", float32_epoch(labelled)),
    ):
        print(f"{name} {theirs:.1f} s, ratio {theirs / ours:.2f}", flush=True)


if __name__ == "__main__":
    main()
