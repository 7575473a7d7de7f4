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
from pathlib import Path

import numpy as np

from emoglot.calibrate import calibrate
from emoglot.config import Config
from emoglot.data import concatenate, read
from emoglot.evaluate import evaluate_model
from emoglot.model import EmotionClassifier
from emoglot.recipe import Recipe

FOLDS = 4
BRIGHTER = "brighter"
RECIPE = Path(__file__).parent.parent / "recipes/model.toml"


def run_fold(fold: int, arguments: argparse.Namespace) -> dict[str, tuple[float, float]]:
    recipe = Recipe.from_toml(RECIPE)
    dev = concatenate(read(path) for path in sorted(arguments.data.glob("brighter/dev/*.csv")))
    left_out = set(sorted(set(dev.languages))[fold::FOLDS])
    training = concatenate([recipe.read("train", arguments.data), *map(read, arguments.train)])
    left_out_sources = {f"{BRIGHTER}-{language}" for language in left_out}
    training = training.select([row for row, name in enumerate(training.sources) if name not in left_out_sources])
    choosing = recipe.read("calibration", arguments.data)
    is_own = np.array([name in left_out for name in choosing.languages])
    config = Config.from_dict(recipe.settings)
    model = EmotionClassifier(arguments.encoder, config=config)
    model.fit_datasets(
        training,
        recipe.read("validation", arguments.data),
        on_epoch=lambda epoch: print(fold, epoch, flush=True),
        checkpoint=arguments.out / f"fold-{fold}.checkpoint",
    )
    unseen = calibrate(model, choosing.select(np.flatnonzero(~is_own)), pooled=True)
    fitted = calibrate(unseen, choosing.select(np.flatnonzero(is_own)))
    measured = dev.select([row for row, name in enumerate(dev.languages) if name in left_out])
    results = [evaluate_model(way, measured).languages for way in (unseen, fitted)]
    return {name: tuple(result[name].macro_f1 for result in results) for name in results[0]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--encoder", required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--train", type=Path, action="append", default=[])
    parser.add_argument("--out", type=Path, required=True)
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
