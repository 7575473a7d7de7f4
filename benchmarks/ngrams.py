"""The baseline: for each BRIGHTER language, a logistic regression on word and character n-grams with balanced classes
(without balancing, macro-F1 at a threshold of 0.5 is nine points lower).

    python -m benchmarks.ngrams --data DIR [--model FOLDER]

It is trained on all training rows of a language, with a threshold of 0.5, and measured on the dev set beside the model
in the package, which was trained on the same rows. The thresholds of the model are chosen on one half of the dev set
and measured on the other, as in benchmarks.quality.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from scipy.sparse import hstack
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

import emoglot
from benchmarks.quality import Scores, choose, read_groups
from emoglot.data.dataset import Dataset
from emoglot.data.registry import read
from emoglot.encoders.registry import BUNDLED_MODEL
from emoglot.evaluation.metrics import macro_f1

MANY_ROWS = 1000


def ngram_macro_f1(training: Dataset, dev: Dataset) -> float:
    words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=r"\S+")
    letters = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True)
    fitted = hstack([words.fit_transform(training.texts), letters.fit_transform(training.texts)], format="csr")
    measured = hstack([words.transform(dev.texts), letters.transform(dev.texts)], format="csr")
    columns = []
    for target in training.targets.T:
        model = LogisticRegression(C=10.0, class_weight="balanced", solver="liblinear", random_state=0)
        model.fit(fitted, target)
        columns.append(model.predict_proba(measured)[:, 1] >= 0.5)
    return macro_f1(dev.targets, np.stack(columns, axis=1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model", type=Path, default=BUNDLED_MODEL)
    arguments = parser.parse_args()
    scores = Scores(emoglot.load(arguments.model))
    _, brighter, _, pooled = read_groups(scores, arguments.data)
    groups = {group.language: group for group in brighter}
    print("| language | rows | n-grams, cut at 0.5 | this model |\n|---|---|---|---|")
    pairs = []
    for path in sorted(arguments.data.glob("brighter/dev/*.csv")):
        dev, training = read(path), read(path.parent.parent / "train" / path.name)
        group = groups[dev.languages[0]]
        halves, _ = choose(group, pooled)
        ours = float(np.mean([group.figures(thresholds, rows)[0] for thresholds, rows in halves])) / 100
        theirs = ngram_macro_f1(training, dev.with_labels(training.labels))
        pairs.append((len(training), theirs, ours))
        print(f"| {path.stem} | {len(training)} | {100 * theirs:.1f} | {100 * ours:.1f} |", flush=True)
    many = [(theirs, ours) for rows, theirs, ours in pairs if rows > MANY_ROWS]
    means = np.mean([pair[1:] for pair in pairs], axis=0)
    print(f"| mean | | {100 * means[0]:.1f} | {100 * means[1]:.1f} |")
    print(f"\nbetter in {sum(ours > theirs for theirs, ours in many)} of {len(many)} with more than {MANY_ROWS} rows")


if __name__ == "__main__":
    main()
