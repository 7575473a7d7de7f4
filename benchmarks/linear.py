"""Measures whether time is linear in the number of rows and in the number of tokens per row.

    python -m benchmarks.linear --data DIR [--plot docs/linear.png]

DIR contains `semeval2018-ec`. For rows, tweets are scored. For tokens, 500 texts of equal length are made of
concatenated tweets. Each point is the best of three runs with all cores.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import emoglot
from emoglot.data.dataset import concatenate
from emoglot.data.registry import read
from emoglot.text.normalise import normalise_text

ROWS = (500, 1000, 2000, 4000, 8000, 16_000)
TOKENS = (8, 16, 32, 64, 128, 256, 500)  # the encoder reads 512
TEXTS = 500
REPEATS = 3


def seconds(model: emoglot.Model, texts: Sequence[str]) -> float:
    """Return the best time to score texts."""
    found = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        model.predict_proba(texts)
        found.append(time.perf_counter() - began)
    return min(found)


def of_tokens(model: emoglot.Model, tweets: Sequence[str], count: int) -> list[str]:
    """Make texts of about `count` tokens each out of normalised tweets."""
    words = iter(" ".join(tweets).split() * (1 + TEXTS * count // 100_000))
    texts = []
    for _ in range(TEXTS):
        text = [next(words) for _ in range(count)]
        # A word has one or more tokens: remove half of the excess until the text fits.
        while (size := int(model.encoder.count_tokens([" ".join(text)])[0])) > count:
            del text[-max(1, (size - count) // 2) :]
        texts.append(" ".join(text))
    return texts


def straightness(x: Sequence[float], y: Sequence[float]) -> tuple[float, float, float]:
    """Fit a line; return slope, intercept and the largest relative distance of a point from it."""
    slope, start = np.polyfit(x, y, 1, w=1 / np.array(y))  # minimises relative distances
    return slope, start, float(np.max(np.abs(slope * np.array(x) + start - y) / y))


def draw(lines: dict[str, tuple[list[float], list[float]]], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, 2, figsize=(10, 4))
    for axes, (name, (x, y)) in zip(panels, lines.items(), strict=True):
        slope, start, _ = straightness(x, y)
        axes.plot(x, y, "o", label="measured")
        axes.plot([0, x[-1]], [start, start + slope * x[-1]], label="line")
        axes.set_xlabel(name)
        axes.set_ylabel("seconds")
        axes.set_ylim(bottom=0)
        axes.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--plot", type=Path)
    arguments = parser.parse_args()
    data = concatenate(read(path) for path in sorted(arguments.data.glob("semeval2018-ec/2018-E-c-*.txt")))
    order = np.random.default_rng(0).permutation(len(data))
    tweets = [data.texts[row] for row in order]
    model = emoglot.load()
    model.predict_proba(tweets[:1000])  # warm up
    rows = [count for count in ROWS if count <= len(tweets)]
    by_rows = [seconds(model, tweets[:count]) for count in rows]
    regular = [normalise_text(tweet) for tweet in tweets]
    texts = [of_tokens(model, regular, count) for count in TOKENS]
    tokens = [float(model.encoder.count_tokens(given).mean()) for given in texts]
    by_tokens = [seconds(model, given) for given in texts]
    print("| rows | seconds | µs a row |\n|---|---|---|")
    for count, took in zip(rows, by_rows, strict=True):
        print(f"| {count:,} | {took:.2f} | {1e6 * took / count:.0f} |")
    print(f"\n| tokens in each of {TEXTS} rows | seconds | µs a token |\n|---|---|---|")
    for size, took in zip(tokens, by_tokens, strict=True):
        print(f"| {size:.0f} | {took:.2f} | {1e6 * took / size / TEXTS:.1f} |")
    lines = {
        "rows": ([float(count) for count in rows], by_rows),
        f"tokens in each of {TEXTS} rows": (tokens, by_tokens),
    }
    for name, (x, y) in lines.items():
        print(f"\n{name}: no point is further from the line than {straightness(x, y)[2]:.0%} of itself")
    if arguments.plot:
        draw(lines, arguments.plot)


if __name__ == "__main__":
    main()
