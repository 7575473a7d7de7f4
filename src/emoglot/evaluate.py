"""Measures a trained model on a dataset, as a whole and language by language."""

from __future__ import annotations

from emoglot.data.dataset import NO_LANGUAGE, Dataset
from emoglot.errors import DataError
from emoglot.language.names import known_language
from emoglot.metrics import Evaluation, evaluate_languages
from emoglot.model import EmotionClassifier
from emoglot.persist import DOMAIN_MARK


def evaluate_model(model: EmotionClassifier, data: Dataset, domain: str | None = None) -> Evaluation:
    """Predict every annotated row and compare; labels that the data does not annotate are left out.

    The language of a row that names none is recognised, as in `predict`. Thresholds are those of the `domain`, by
    default of the dataset itself, where the model has any.
    """
    if not set(model.labels_) & set(data.labels):
        raise DataError(
            f"the data must annotate at least one of the model's labels ({', '.join(model.labels_)}), "
            f"got {', '.join(data.labels)}"
        )
    rows = data.with_labels(model.labels_).annotated()
    if not len(rows):
        raise DataError("no row has a known label: a test file without gold labels can be predicted, not evaluated")
    # The name of a dataset may end in its language.
    domains = [
        domain or source.removesuffix(f"-{language}")
        for source, language in zip(rows.sources, rows.languages, strict=True)
    ]
    analysis = model.analyse(rows.texts, [known_language(code) for code in rows.languages])
    codes = [
        code if code and DOMAIN_MARK in code else f"{code or NO_LANGUAGE}{DOMAIN_MARK}{name}"
        for code, name in zip(analysis.sure_languages(), domains, strict=True)
    ]
    chosen = model.decide(analysis.scores, codes)
    return evaluate_languages(rows.targets, chosen, model.labels_, rows.languages)
