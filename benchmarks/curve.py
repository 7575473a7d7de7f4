"""What more data or a larger model would bring: recipes/model.toml trained on less of each.

    python -m benchmarks.curve --encoder ENCODER --data DIR --train build/projected.csv --out build/curve \\
        --plot docs/curve.png

Less data: a share of the labelled rows, the smaller shares inside the larger. A smaller model: only the first principal
components of the piece vectors. E-c dev is measured five-fold, BRIGHTER dev with thresholds chosen on other rows of
each language. A point that is done is not done again.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from benchmarks.embedded import five_fold, read_parts
from benchmarks.recipe import RECIPE, fit, make_parser, read_training
from emoglot.calibrate import calibrate
from emoglot.encoders import load_encoder
from emoglot.encoders.onnx import OnnxEncoder
from emoglot.encoders.pieces import write_pieces
from emoglot.evaluate import evaluate_model

SHARES = (0.125, 0.25, 0.5, 1.0)
DIMS = (16, 32, 64, 128)  # besides all


@dataclass(frozen=True)
class Point:
    """How much of the data and of the vectors a model was given, and its macro-F1."""

    share: float
    rows: int
    dim: int
    tweets: float
    brighter: float


def smaller_encoder(arguments: argparse.Namespace, dim: int) -> str:
    """Write the encoder with the first principal components of its vectors only."""
    folder = arguments.out / f"encoder-{dim}"
    encoder = load_encoder(arguments.encoder)
    assert isinstance(encoder, OnnxEncoder)
    if not folder.exists():
        table = encoder.table()
        _, axes = np.linalg.eigh(table.T @ table)  # ascending
        write_pieces(folder, folder.name, encoder.tokenizer, table @ axes[:, ::-1][:, :dim])
    return str(folder)


def run_point(arguments: argparse.Namespace, share: float, dim: int | None) -> Point:
    path = arguments.out / f"share-{share:g}-dim-{dim or 'all'}.json"
    if not path.exists():
        training = read_training(arguments)
        order = np.random.default_rng(0).permutation(len(training))
        training = training.select(np.sort(order[: round(share * len(training))]))
        encoder = smaller_encoder(arguments, dim) if dim else arguments.encoder
        model = fit(training, arguments, path.stem, encoder=encoder)
        tweets, brighter = read_parts(arguments.data)
        fitted = calibrate(model, RECIPE.read("calibration", arguments.data))
        languages = evaluate_model(fitted, brighter).languages.values()
        point = Point(
            share,
            len(training),
            dim or load_encoder(arguments.encoder).dim,
            five_fold(model, tweets).overall.macro_f1,
            float(np.mean([metrics.macro_f1 for metrics in languages])),
        )
        path.write_text(json.dumps(asdict(point)), encoding="utf-8")
    return Point(**json.loads(path.read_text(encoding="utf-8")))


def draw(by_data: list[Point], by_size: list[Point], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (data, size) = pyplot.subplots(1, 2, figsize=(10, 4), sharey=True)
    for axes, points, x, name in (
        (data, by_data, [point.rows for point in by_data], "labelled rows"),
        (size, by_size, [point.dim for point in by_size], "numbers in a piece's vector"),
    ):
        axes.plot(x, [100 * point.tweets for point in points], marker="o", label="E-c dev")
        axes.plot(x, [100 * point.brighter for point in points], marker="s", label="BRIGHTER dev")
        axes.set_xscale("log", base=2)
        axes.set_xticks(x, [f"{value:,}" for value in x])
        axes.set_xlabel(name)
    data.set_ylabel("macro-F1")
    data.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--plot", type=Path)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    by_data = [run_point(arguments, share, None) for share in SHARES]
    by_size = [*(run_point(arguments, 1.0, dim) for dim in DIMS), by_data[-1]]
    print("| labelled rows | vectors | E-c dev | BRIGHTER dev |\n|---|---|---|---|")
    for point in [*by_data, *reversed(by_size[:-1])]:
        print(f"| {point.rows:,} | {point.dim} | {100 * point.tweets:.1f} | {100 * point.brighter:.1f} |")
    if arguments.plot:
        draw(by_data, by_size, arguments.plot)


if __name__ == "__main__":
    main()
