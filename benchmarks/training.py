"""One epoch on features of the size of E-c (three languages): ours against a plain loop of the same network.

    python -m benchmarks.training

The plain loop is what one writes first: a list of arrays, shuffled batches padded to their longest row,
`nn.LSTM` on packed sequences. Both use all cores, batch 32, two bidirectional layers of 128.
"""

from __future__ import annotations

import time

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

from emoglot.config import Config, LossConfig
from emoglot.features import Features, Segment
from emoglot.loss import DynamicWeighting, total_loss
from emoglot.train import Labelled, _Trainer

ROWS, DIM, LABELS, BATCH = 12_677, 512, 11, 32


def make_labelled() -> Labelled:
    """Random vectors; lengths spread like those of tweets: 28 tokens on average, from 3 to 80."""
    random = np.random.default_rng(0)
    lengths = np.clip(random.gamma(5, 5.6, ROWS).astype(np.int64), 3, 80)
    ends = np.cumsum(lengths)
    vectors = random.standard_normal((ends[-1], DIM), dtype=np.float32).astype(np.float16)
    segment = Segment(
        np.zeros((0, 16), np.uint8), np.zeros(1, np.int64), np.zeros((len(vectors), 2), np.int32), vectors
    )
    places = np.stack([np.zeros(ROWS, np.int64), ends - lengths, ends], axis=1)
    targets = (random.random((ROWS, LABELS)) < 0.2).astype(np.int8)
    return Labelled(Features((segment,), places, DIM), targets, ("made",) * ROWS)


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


def plain_epoch(labelled: Labelled) -> float:
    rows = [labelled.features.vectors(row).astype(np.float32) for row in range(ROWS)]
    head, weighting = PlainHead(), DynamicWeighting(LABELS, 0.3)
    optimiser = torch.optim.Adam(head.parameters())
    began = time.perf_counter()
    for batch in np.split(np.random.default_rng(1).permutation(ROWS), range(BATCH, ROWS, BATCH)):
        vectors = pad_sequence([torch.from_numpy(rows[row]) for row in batch], batch_first=True)
        lengths = torch.tensor([len(rows[row]) for row in batch])
        targets = torch.from_numpy(labelled.targets[batch])
        loss = total_loss(head(vectors, lengths), targets, LossConfig(), weighting)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return time.perf_counter() - began


def our_epoch(labelled: Labelled) -> float:
    trainer = _Trainer(labelled, Config().override({"training.batch_size": BATCH}))
    trainer.start()
    began = time.perf_counter()
    trainer.run_epoch(number=1)
    return time.perf_counter() - began


def main() -> None:
    labelled = make_labelled()
    ours, plain = our_epoch(labelled), plain_epoch(labelled)
    print(f"emoglot {ours:.1f} s an epoch, plain loop {plain:.1f} s, {torch.get_num_threads()} threads")
    print(f"ratio {plain / ours:.2f}")


if __name__ == "__main__":
    main()
