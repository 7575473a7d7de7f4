"""Measures sentiment on the dev rows of datasets with polarity, compared with alternatives.

    pip install vaderSentiment
    python -m benchmarks.sentiment --data DIR [--model FOLDER]

Macro-F1 over positive, negative and, if annotators could choose it, neutral; "mixed" counts as neutral. The
alternatives are a logistic regression on word and character n-grams, trained on the training rows of the dataset, of
which the model saw at most 500 per language, and VADER, which is made for English.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import hstack
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score

import emoglot
from emoglot.data.dataset import Dataset, concatenate
from emoglot.data.registry import read
from emoglot.encoders.registry import BUNDLED_MODEL
from emoglot.inference.prediction import NEGATIVE, POSITIVE, SENTIMENTS, name_sentiments
from emoglot.text.language_names import ANY

ROWS = 400  # of a dataset and language
TRAINING_ROWS = 4000
LEAST_ROWS = 50
VADER_CUT = 0.05  # of its compound score, as its authors recommend


def classes_of(data: Dataset) -> NDArray[np.str_]:
    chosen = data.with_labels((POSITIVE, NEGATIVE)).targets == 1
    return np.array([POSITIVE if positive else NEGATIVE if negative else "neutral" for positive, negative in chosen])


def ours(model: emoglot.Model, texts: tuple[str, ...]) -> NDArray[np.str_]:
    names, _ = name_sentiments(model.analyse(texts, ANY).sentiment)
    found = np.array(SENTIMENTS)[names]
    return np.where(found == "mixed", "neutral", found)


def regression(training: Dataset, texts: tuple[str, ...]) -> NDArray[np.str_]:
    words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=r"\S+")
    letters = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True)
    fitted = hstack([words.fit_transform(training.texts), letters.fit_transform(training.texts)], format="csr")
    model = LogisticRegression(C=10.0, class_weight="balanced", max_iter=300, random_state=0)
    model.fit(fitted, classes_of(training))
    return model.predict(hstack([words.transform(texts), letters.transform(texts)], format="csr"))


def vader(texts: tuple[str, ...]) -> NDArray[np.str_]:
    from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

    scores = [SentimentIntensityAnalyzer().polarity_scores(text)["compound"] for text in texts]
    return np.array([POSITIVE if s >= VADER_CUT else NEGATIVE if s <= -VADER_CUT else "neutral" for s in scores])


def sample(data: Dataset, rows: int) -> Dataset:
    return data.select(np.random.default_rng(0).permutation(len(data))[:rows])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model", type=Path, default=BUNDLED_MODEL)
    arguments = parser.parse_args()
    model = emoglot.load(arguments.model)
    files = sorted(arguments.data.glob("labelled/*_pol.tsv.gz"))
    dev = concatenate(read(path, format="collection-dev") for path in files)
    training = concatenate(read(path, format="collection-train") for path in files)
    sources, training_sources = np.array(dev.sources), np.array(training.sources)
    print("| dataset | language | rows | this model | logistic regression | VADER |\n|---|---|---|---|---|---|")
    found = []
    for source in np.unique(sources):
        data = sample(dev.select(np.flatnonzero(sources == source)), ROWS)
        own = sample(training.select(np.flatnonzero(training_sources == source)), TRAINING_ROWS)
        if min(len(data), len(own)) < LEAST_ROWS:  # some languages have only dev rows
            continue
        truth = classes_of(data)

        def figure(chosen: NDArray[np.str_], truth: NDArray[np.str_] = truth) -> float:
            return 100 * float(f1_score(truth, chosen, labels=np.unique(truth), average="macro"))

        figures = [figure(ours(model, data.texts)), figure(regression(own, data.texts))]
        found.append(figures)
        code = data.languages[0]
        other = f"{figure(vader(data.texts)):.1f}" if code == "en" else ""
        print(f"| {source} | {code} | {len(data)} | {figures[0]:.1f} | {figures[1]:.1f} | {other} |", flush=True)
    means = np.mean(found, axis=0)
    print(f"| mean of {len(found)} | | | {means[0]:.1f} | {means[1]:.1f} | |")


if __name__ == "__main__":
    main()
