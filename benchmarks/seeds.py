"""How much the model in the package owes to luck: recipes/model.toml trained with five seeds.

    python -m benchmarks.seeds --encoder ENCODER --data DIR --train build/projected.csv --out build/seeds

Prints mean and standard deviation over the seeds of E-c dev, measured two ways. Split: 30 % of dev choose thresholds,
the rest is measured; each seed splits otherwise. Five-fold: as in benchmarks.embedded. A seed that is done is not done
again.
"""

from __future__ import annotations

import argparse

import numpy as np

import emoglot
from benchmarks.embedded import five_fold
from benchmarks.recipe import RECIPE, fit, make_parser, read_training
from emoglot.model import EmotionClassifier

FIGURES = ("macro_f1", "micro_f1", "jaccard")


def train(seed: int, arguments: argparse.Namespace) -> EmotionClassifier:
    folder = arguments.out / f"seed-{seed}"
    if not folder.exists():
        fit(read_training(arguments), arguments, folder.name, seed).save(folder)
    return emoglot.load(folder, encoder=arguments.encoder)


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--seeds", default="01234", help="which to train, such as 02")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    models = [train(int(seed), arguments) for seed in arguments.seeds]
    tweets = RECIPE.read("validation", arguments.data)
    split = [model.metrics_ for model in models]
    folds = [five_fold(model, tweets) for model in models]
    print("| E-c dev | split: macro-F1, micro-F1, Jaccard | five-fold |\n|---|---|---|")
    for language in sorted(set(tweets.languages)):
        cells = []
        for found in (
            [[metrics["languages"][language][name] for name in FIGURES] for metrics in split],
            [[getattr(result.languages[language], name) for name in FIGURES] for result in folds],
        ):
            means, spreads = 100 * np.mean(found, axis=0), 100 * np.std(found, axis=0, ddof=1)
            cells.append(" / ".join(f"{mean:.1f} ± {spread:.1f}" for mean, spread in zip(means, spreads, strict=True)))
        print(f"| {language} | {cells[0]} | {cells[1]} |")


if __name__ == "__main__":
    main()
