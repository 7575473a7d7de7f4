"""Compares encoding with and without sorting by length, with the same texts, network and token budget.

    python -m benchmarks.encoding

The network is an XLM-R of six layers of 384 with random weights, which are as fast as trained ones.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np

from emoglot.encoders.features import TOKEN_BUDGET, extract_features
from emoglot.encoders.hub import HubEncoder
from examples.tiny_xlmr import make_xlmr

TEXTS = 1_500


def make_texts() -> list[str]:
    """Return texts of random words, with lengths like those of posts: most short, a few long."""
    random = np.random.default_rng(0)
    words = ["".join(random.choice(list("aeioulnrst"), size)) for size in random.integers(2, 9, 500)]
    lengths = np.clip(random.lognormal(2.7, 0.7, TEXTS).astype(int), 1, 120)
    return [" ".join(random.choice(words, length)) + f" {row}" for row, length in enumerate(lengths)]


def file_order(encoder: HubEncoder, texts: list[str]) -> None:
    """Yield batches in the order of the file, each within the same budget of padded tokens."""
    batch: list[str] = []
    longest = 0
    for text, length in zip(texts, encoder.count_tokens(texts), strict=True):
        longest = max(longest, int(length))
        if batch and longest * (len(batch) + 1) > TOKEN_BUDGET:
            encoder.encode(batch)
            batch, longest = [], int(length)
        batch.append(text)
    encoder.encode(batch)


def main() -> None:
    texts = make_texts()
    with tempfile.TemporaryDirectory() as folder:
        make_xlmr(Path(folder), texts, vocabulary=2000, hidden=384, layers=6)
        encoder = HubEncoder(folder, source=folder)
        encoder.encode(texts[:50])  # warm up
        began = time.perf_counter()
        extract_features(encoder, texts)
        middle = time.perf_counter()
        file_order(encoder, texts)
        ended = time.perf_counter()
    print(f"sorted by length {TEXTS / (middle - began):.0f} texts/s, file order {TEXTS / (ended - middle):.0f} texts/s")
    print(f"ratio {(ended - middle) / (middle - began):.2f}")


if __name__ == "__main__":
    main()
