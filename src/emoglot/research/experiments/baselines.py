"""Baselines: other classifiers trained on the same rows, each a function from texts to scores.

The usual threshold of each is 0.5; the margins of Tw-StAR are mapped by a sigmoid, so that a margin of 0 scores 0.5.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emoglot.errors import needs_extra
from emoglot.inference.head import sigmoid
from emoglot.labels import Targets

Baseline = Callable[[Sequence[str]], NDArray[np.float32]]

# Duration of fastText's own hyperparameter search; its default.
AUTOTUNE_SECONDS = 300
_LABEL_PREFIX = "__label__"


def fit_baseline(
    method: str, texts: Sequence[str], targets: Targets, tuning: tuple[Sequence[str], Targets], seed: int
) -> Baseline:
    """Train a baseline on normalised texts; `tuning` are the rows for fastText's hyperparameter search."""
    if method == "prior":
        return _fit_prior(targets)
    if method == "fasttext":
        return _fit_fasttext(texts, targets, tuning, seed)
    return _fit_linear(method, texts, targets, seed)


def _fit_prior(targets: Targets) -> Baseline:
    share = (targets == 1).mean(axis=0).astype(np.float32)
    return lambda texts: np.tile(share, (len(texts), 1))


def _fit_linear(method: str, texts: Sequence[str], targets: Targets, seed: int) -> Baseline:
    """Fit one linear model per label: an SVM on words, or logistic regression on words and characters."""
    with needs_extra("train", "training a baseline"):
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import LogisticRegression
        from sklearn.multiclass import OneVsRestClassifier
        from sklearn.pipeline import FeatureUnion, make_pipeline
        from sklearn.svm import LinearSVC
    words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=r"\S+")
    features: Any = words
    estimator: Any = LinearSVC(random_state=seed)
    if method == "logistic":
        letters = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True)
        features = FeatureUnion([("words", words), ("letters", letters)])
        estimator = LogisticRegression(C=10.0, solver="liblinear", random_state=seed)
    model = make_pipeline(features, OneVsRestClassifier(estimator)).fit(list(texts), targets)

    def score(given: Sequence[str]) -> NDArray[np.float32]:
        return sigmoid(np.asarray(model.decision_function(list(given)), dtype=np.float32))

    return score


def _fit_fasttext(texts: Sequence[str], targets: Targets, tuning: tuple[Sequence[str], Targets], seed: int) -> Baseline:
    """Train fastText, one binary classifier per label, with settings searched on the tuning rows."""
    with needs_extra("baselines", "training fastText"):
        import fasttext
    width = targets.shape[1]
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for name, rows in (("training", (texts, targets)), ("tuning", tuning)):
            files.append(Path(folder, name))
            files[-1].write_text(_fasttext_lines(*rows), encoding="utf-8")
        training, validation = map(str, files)
        with _silenced():
            model = fasttext.train_supervised(
                training,
                loss="ova",
                seed=seed,
                thread=1,  # like all cells
                autotuneValidationFile=validation,
                autotuneDuration=AUTOTUNE_SECONDS,
            )

    def score(given: Sequence[str]) -> NDArray[np.float32]:
        scores = np.zeros((len(given), width), dtype=np.float32)
        # A list, since fastText fails for a single text with numpy 2.
        answers = model.predict([_one_line(text) for text in given], k=-1)
        for row, (names, values) in enumerate(zip(*answers, strict=True)):
            scores[row, [int(name.removeprefix(_LABEL_PREFIX)) for name in names]] = np.minimum(1.0, values)
        return scores

    return score


@contextmanager
def _silenced() -> Iterator[None]:
    """Suppress the output of fastText to stderr, which would garble a progress bar."""
    kept = os.dup(2)
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _fasttext_lines(texts: Sequence[str], targets: Targets) -> str:
    return "".join(
        " ".join([*(f"{_LABEL_PREFIX}{label}" for label in np.flatnonzero(row == 1)), _one_line(text)]) + "\n"
        for text, row in zip(texts, targets, strict=True)
    )


def _one_line(text: str) -> str:
    return " ".join(text.split())
