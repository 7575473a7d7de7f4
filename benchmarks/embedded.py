"""What the model in the package is worth: quality, calibration, speed and size.

    python -m benchmarks.embedded --data DIR [--model FOLDER] [--plot docs/reliability.png]

DIR holds `semeval2018-ec` and `brighter`. The thresholds in the package are chosen on E-c's whole dev sets, so those
are measured five-fold: each fifth cut by thresholds that the other four chose.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import emoglot
from emoglot.calibration import expected_calibration_error, reliability
from emoglot.config import TrainingConfig
from emoglot.data import Dataset, concatenate, read
from emoglot.encoders import EMBEDDED_MODEL
from emoglot.encoders.store import folder_size
from emoglot.evaluate import evaluate_model
from emoglot.fit import split_rows
from emoglot.metrics import Evaluation, evaluate_languages
from emoglot.model import EmotionClassifier
from emoglot.thresholds import apply_thresholds, choose_thresholds

ONE_TEXT_RUNS = 300
FOLDS = 5


def read_parts(data: Path) -> tuple[Dataset, Dataset]:
    tweets = concatenate(read(path) for path in sorted(data.glob("semeval2018-ec/*-dev.txt")))
    return tweets, concatenate(read(path) for path in sorted(data.glob("brighter/dev/*.csv")))


def five_fold(model: EmotionClassifier, tweets: Dataset) -> Evaluation:
    """Measure scores at thresholds chosen by the same rule on other rows."""
    scores, targets = model.predict_proba(tweets.texts), tweets.targets
    chosen = np.zeros(targets.shape, dtype=bool)
    fold = np.random.default_rng(0).integers(0, FOLDS, len(tweets))
    for number in range(FOLDS):
        thresholds = choose_thresholds(scores[fold != number], targets[fold != number])
        chosen[fold == number] = apply_thresholds(scores[fold == number], thresholds)
    return evaluate_languages(targets, chosen, tweets.labels, tweets.languages)


def without_calibration_rows(tweets: Dataset) -> Dataset:
    """Leave out the rows on which training scaled the scores."""
    settings = TrainingConfig()
    kept, _ = split_rows(tweets, settings.thresholding_fraction, settings)
    return tweets.select(kept)


def table(result: Evaluation) -> str:
    lines = ["| E-c dev | macro-F1 | micro-F1 | Jaccard |\n|---|---|---|---|"]
    for name, metrics in {**result.languages, "all": result.overall}.items():
        figures = (metrics.macro_f1, metrics.micro_f1, metrics.jaccard)
        lines.append(f"| {name} | " + " | ".join(f"{100 * figure:.1f}" for figure in figures) + " |")
    return "\n".join(lines)


def quality(model: EmotionClassifier, tweets: Dataset, brighter: Dataset) -> None:
    print(table(five_fold(model, tweets)))
    languages = evaluate_model(model, brighter).languages
    mean = np.mean([metrics.macro_f1 for metrics in languages.values()])
    print(f"\nBRIGHTER dev, mean macro-F1 over {len(languages)} languages: {100 * mean:.1f}")
    print(" ".join(f"{name} {100 * metrics.macro_f1:.1f}" for name, metrics in languages.items()))


def calibration(model: EmotionClassifier, tweets: Dataset, plot: Path | None) -> None:
    scores = model.predict_proba(tweets.texts)
    print("\n| label | expected calibration error |\n|---|---|")
    for label, name in enumerate(model.labels_):
        print(f"| {name} | {expected_calibration_error(scores[:, label], tweets.targets[:, label]):.3f} |")
    if plot:
        draw(scores, tweets, model.labels_, plot)


def draw(scores: np.ndarray, tweets: Dataset, labels: tuple[str, ...], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(3, 4, figsize=(11, 8), sharex=True, sharey=True)
    for label, name in enumerate(labels):
        plot = axes.flat[label]
        bins = reliability(scores[:, label], tweets.targets[:, label])
        x, y, rows = map(np.array, zip(*bins, strict=True))
        plot.plot([0, 1], [0, 1], color="0.7", linewidth=1)
        plot.plot(x, y, color="C0", linewidth=1)
        plot.scatter(x, y, s=4 + 120 * rows / rows.sum(), color="C0")
        error = expected_calibration_error(scores[:, label], tweets.targets[:, label])
        plot.set_title(f"{name}: {error:.3f}", fontsize=10)
    axes.flat[-1].axis("off")
    figure.supxlabel("mean score of a bin (dot: share of texts)")
    figure.supylabel("share of texts that carry the label")
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def speed(model: EmotionClassifier, texts: tuple[str, ...]) -> None:
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
    # Not by getrusage, whose peak a child has from its parent.
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
    parser.add_argument("--model", type=Path, default=EMBEDDED_MODEL)
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--no-speed", action="store_true")
    arguments = parser.parse_args()
    model = emoglot.load(arguments.model)
    tweets, brighter = read_parts(arguments.data)
    print(f"{folder_size(arguments.model) / 1e6:.1f} MB\n")
    quality(model, tweets, brighter)
    calibration(model, without_calibration_rows(tweets), arguments.plot)
    if not arguments.no_speed:
        speed(model, tweets.texts)


if __name__ == "__main__":
    main()
