"""Rivals: other ways to label text, trained on the same rows, each as a function from texts to scores.

A score of 0.5 or more is the usual cut of each; Tw-StAR's margins go through a sigmoid, which keeps their order and
makes 0.5 of a margin of 0.
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

from emoglot.errors import MissingExtraError
from emoglot.labels import Targets
from emoglot.runtime import sigmoid

Scorer = Callable[[Sequence[str]], NDArray[np.float32]]

# fastText searches its own settings for so long, which is its default.
AUTOTUNE_SECONDS = 300
_LABEL_PREFIX = "__label__"


def fit_rival(
    method: str, texts: Sequence[str], targets: Targets, tuning: tuple[Sequence[str], Targets], seed: int
) -> Scorer:
    """Train a rival on normalised texts; `tuning` are rows for one that searches its own settings."""
    if method == "prior":
        return _fit_prior(targets)
    if method == "fasttext":
        return _fit_fasttext(texts, targets, tuning, seed)
    return _fit_linear(method, texts, targets, seed)


def _fit_prior(targets: Targets) -> Scorer:
    share = (targets == 1).mean(axis=0).astype(np.float32)
    return lambda texts: np.tile(share, (len(texts), 1))


def _fit_linear(method: str, texts: Sequence[str], targets: Targets, seed: int) -> Scorer:
    """Fit one linear model a label: a support vector machine on words, or a regression on words and characters."""
    try:
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import LogisticRegression
        from sklearn.multiclass import OneVsRestClassifier
        from sklearn.pipeline import FeatureUnion, make_pipeline
        from sklearn.svm import LinearSVC
    except ImportError as error:
        raise MissingExtraError("scikit-learn", "train", "training a rival") from error
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


def _fit_fasttext(texts: Sequence[str], targets: Targets, tuning: tuple[Sequence[str], Targets], seed: int) -> Scorer:
    """Let fastText find its settings on the tuning rows, one yes-or-no question a label."""
    try:
        import fasttext
    except ImportError as error:
        raise MissingExtraError("fasttext", "rivals", "training fastText") from error
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
                thread=1,  # as every cell
                autotuneValidationFile=validation,
                autotuneDuration=AUTOTUNE_SECONDS,
            )

    def score(given: Sequence[str]) -> NDArray[np.float32]:
        scores = np.zeros((len(given), width), dtype=np.float32)
        # A list, as fastText can't answer a single text with numpy 2.
        answers = model.predict([_one_line(text) for text in given], k=-1)
        for row, (names, values) in enumerate(zip(*answers, strict=True)):
            scores[row, [int(name.removeprefix(_LABEL_PREFIX)) for name in names]] = np.minimum(1.0, values)
        return scores

    return score


@contextmanager
def _silenced() -> Iterator[None]:
    """Keep fastText, which asks nobody, from writing over a progress bar."""
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
