"""Measures size, speed, memory and calibration of the model in the package.

    python -m benchmarks.bundled --data DIR [--model FOLDER] [--plot docs/reliability.png]

DIR contains the data of benchmarks.quality; the plot uses the same rows as its calibration error.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import emoglot
from benchmarks.calibration import expected_calibration_error, reliability
from benchmarks.quality import Scores, read_groups
from emoglot.data.dataset import concatenate
from emoglot.data.registry import read
from emoglot.encoders.registry import BUNDLED_MODEL
from emoglot.encoders.store import folder_size
from emoglot.labels import SEMEVAL_LABELS, Targets
from emoglot.model import Model

ONE_TEXT_RUNS = 300


def draw(scores: NDArray[np.float32], targets: Targets, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(3, 4, figsize=(11, 8), sharex=True, sharey=True)
    for label, name in enumerate(SEMEVAL_LABELS):
        plot = axes.flat[label]
        bins = reliability(scores[:, label], targets[:, label])
        x, y, rows = map(np.array, zip(*bins, strict=True))
        plot.plot([0, 1], [0, 1], color="0.7", linewidth=1)
        plot.plot(x, y, color="C0", linewidth=1)
        plot.scatter(x, y, s=4 + 120 * rows / rows.sum(), color="C0")
        error = expected_calibration_error(scores[:, label], targets[:, label])
        plot.set_title(f"{name}: {error:.3f}", fontsize=10)
    axes.flat[-1].axis("off")
    figure.supxlabel("mean score of a bin (dot: share of texts)")
    figure.supylabel("share of texts that carry the label")
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def speed(model: Model, texts: tuple[str, ...]) -> None:
    model.predict(texts[:500])  # warm up
    began = time.perf_counter()
    model.predict(texts)
    print(f"\nin one call: {len(texts) / (time.perf_counter() - began):,.0f} tweets/s")
    times = []
    for text in texts[:ONE_TEXT_RUNS]:
        began = time.perf_counter()
        model.predict([text])
        times.append(time.perf_counter() - began)
    print(f"one text: {1000 * np.median(times):.2f} ms (median), {1000 * np.quantile(times, 0.95):.2f} ms (95 %)")
    cold = []
    for _ in range(5):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-m", "emoglot", "predict", "Que sorpresa"], check=True, capture_output=True)
        cold.append(time.perf_counter() - began)
    print(f"from process start to the first answer: {np.median(cold):.2f} s")
    # Not by getrusage, since a child inherits the peak of its parent.
    program = (
        "import sys, emoglot; emoglot.load().predict(sys.stdin.read().splitlines()); "
        "print(open('/proc/self/status').read().partition('VmHWM:')[2].split()[0])"
    )
    lines = "\n".join(" ".join(text.split()) for text in texts)
    found = subprocess.run([sys.executable, "-c", program], input=lines, text=True, check=True, capture_output=True)
    print(f"resident while predicting {len(texts):,} tweets: {int(found.stdout) / 1024:.0f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model", type=Path, default=BUNDLED_MODEL)
    parser.add_argument("--plot", type=Path)
    arguments = parser.parse_args()
    model = emoglot.load(arguments.model)
    print(f"{folder_size(arguments.model) / 1e6:.1f} MB")
    if arguments.plot:
        *_, pooled = read_groups(Scores(model), arguments.data)
        scores, targets = (np.concatenate([getattr(group, part) for group in pooled]) for part in ("scores", "targets"))
        draw(scores, targets, arguments.plot)
    speed(model, concatenate(read(path) for path in sorted(arguments.data.glob("semeval2018-ec/*-dev.txt"))).texts)


if __name__ == "__main__":
    main()
