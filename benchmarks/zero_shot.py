"""How well languages do whose labelled data was left out of training.

    python -m benchmarks.zero_shot --encoder ENCODER --data DIR --train build/projected.csv --out build/zero-shot

The 28 languages of BRIGHTER are left out seven at a time: the head and the n-grams of recipes/zero-shot.toml are
trained on everything else, thresholds are chosen on held-out rows of the other languages, and the seven are measured on
their dev sets. ENCODER must be one that was distilled without BRIGHTER's labels. A fold that is done is not done again.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from emoglot.calibrate import calibrate
from emoglot.config import Config
from emoglot.data import concatenate, read
from emoglot.metrics import evaluate_languages
from emoglot.model import EmotionClassifier
from emoglot.recipe import Recipe

FOLDS = 4
BRIGHTER = "brighter"
RECIPE = Path(__file__).parent.parent / "recipes/zero-shot.toml"


def run_fold(fold: int, arguments: argparse.Namespace) -> dict[str, float]:
    recipe = Recipe.from_toml(RECIPE)
    dev = concatenate(read(path) for path in sorted(arguments.data.glob("brighter/dev/*.csv")))
    left_out = set(sorted(set(dev.languages))[fold::FOLDS])
    training = concatenate([recipe.read("train", arguments.data), *map(read, arguments.train)])
    rows = zip(training.sources, training.languages, strict=True)
    training = training.select(
        [row for row, (source, language) in enumerate(rows) if source != BRIGHTER or language not in left_out]
    )
    choosing = recipe.read("calibration", arguments.data)
    choosing = choosing.select([row for row, name in enumerate(choosing.languages) if name not in left_out])
    config = Config.from_dict(recipe.settings)
    model = EmotionClassifier(arguments.encoder, config=config)
    model.fit_datasets(
        training,
        recipe.read("validation", arguments.data),
        on_epoch=lambda epoch: print(fold, epoch, flush=True),
        checkpoint=arguments.out / f"fold-{fold}.checkpoint",
    )
    model = calibrate(model, choosing, pooled=True)
    measured = dev.select([row for row, name in enumerate(dev.languages) if name in left_out])
    measured = measured.with_labels(model.labels_)
    chosen = model.decide(model.predict_proba(measured.texts))
    result = evaluate_languages(measured.targets, chosen, model.labels_, measured.languages)
    return {name: metrics.macro_f1 for name, metrics in result.languages.items()}


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
    figures: dict[str, float] = {}
    for path in sorted(arguments.out.glob("fold-*.json")):
        figures |= json.loads(path.read_text(encoding="utf-8"))
    print(" ".join(f"{name} {100 * value:.1f}" for name, value in sorted(figures.items())))
    print(f"mean macro-F1 of {len(figures)} languages: {100 * np.mean(list(figures.values())):.1f}")


if __name__ == "__main__":
    main()
