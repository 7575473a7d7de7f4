"""How well languages do whose labelled data was left out of training.

    python -m benchmarks.zero_shot --encoder ENCODER --data DIR --train build/projected.csv --out build/zero-shot

The 28 languages of BRIGHTER are left out seven at a time: the head and the n-grams of recipes/model.toml are trained on
everything else, and the seven are measured on their dev sets: once with thresholds chosen on held-out rows of the other
languages, once with thresholds fitted to held-out rows of their own, a few hundred each, as `emoglot calibrate` does
(not for English and Spanish). ENCODER must be one that was distilled without BRIGHTER's labels. A fold that is done is
not done again.
"""

from __future__ import annotations

import argparse
import json

import numpy as np

from benchmarks.recipe import RECIPE, fit, make_parser, read_training
from emoglot.calibrate import calibrate
from emoglot.data import concatenate, read
from emoglot.data.brighter import SOURCE
from emoglot.evaluate import evaluate_model

FOLDS = 4


def run_fold(fold: int, arguments: argparse.Namespace) -> dict[str, tuple[float, float]]:
    dev = concatenate(read(path) for path in sorted(arguments.data.glob("brighter/dev/*.csv")))
    left_out = set(sorted(set(dev.languages))[fold::FOLDS])
    training = read_training(arguments)
    left_out_sources = {f"{SOURCE}-{language}" for language in left_out}
    training = training.select([row for row, name in enumerate(training.sources) if name not in left_out_sources])
    choosing = RECIPE.read("calibration", arguments.data)
    is_own = np.array([name in left_out for name in choosing.languages])
    model = fit(training, arguments, f"fold-{fold}")
    unseen = calibrate(model, choosing.select(np.flatnonzero(~is_own)), pooled=True)
    fitted = calibrate(unseen, choosing.select(np.flatnonzero(is_own)))
    measured = dev.select([row for row, name in enumerate(dev.languages) if name in left_out])
    results = [evaluate_model(way, measured).languages for way in (unseen, fitted)]
    return {name: tuple(result[name].macro_f1 for result in results) for name in results[0]}


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--folds", default="0123", help="which of the four, such as 02")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    for fold in map(int, arguments.folds):
        path = arguments.out / f"fold-{fold}.json"
        if not path.exists():
            path.write_text(json.dumps(run_fold(fold, arguments)), encoding="utf-8")
    figures: dict[str, tuple[float, float]] = {}
    for path in sorted(arguments.out.glob("fold-*.json")):
        figures |= json.loads(path.read_text(encoding="utf-8"))
    print("| language | thresholds of the others | fitted |\n|---|---|---|")
    means = tuple(np.mean(list(figures.values()), axis=0))
    for name, (unseen, fitted) in [*sorted(figures.items()), (f"mean of {len(figures)}", means)]:
        print(f"| {name} | {100 * unseen:.1f} | {100 * fitted:.1f} |")


if __name__ == "__main__":
    main()
