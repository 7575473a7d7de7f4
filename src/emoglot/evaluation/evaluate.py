"""Evaluates a model on a dataset, as a whole and per language."""

from __future__ import annotations

from emoglot.data.dataset import Dataset
from emoglot.errors import DataError
from emoglot.evaluation.metrics import evaluate_languages
from emoglot.inference.folder import DOMAIN_MARK
from emoglot.inference.metrics import Evaluation
from emoglot.model import Model
from emoglot.text.language_names import NO_LANGUAGE, known_language


def evaluate_model(model: Model, data: Dataset, domain: str | None = None) -> Evaluation:
    """Evaluate a model on the annotated rows of a dataset; labels that the data does not annotate are ignored.

    The result has the metrics of all rows (`overall`) and of each language (`languages`): `macro_f1`, `micro_f1`,
    `jaccard`, `rows`, and `per_class` with precision, recall, F1 and support of each label.

    The language of a row without one is identified, as in `predict`. Thresholds are those of the `domain`, a kind of
    text, by default the name of the dataset; if the model has none for it, those of the language.
    """
    if not set(model.labels) & set(data.labels):
        raise DataError(
            f"the data must annotate at least one of the model's labels ({', '.join(model.labels)}), "
            f"got {', '.join(data.labels)}"
        )
    rows = data.with_labels(model.labels).annotated()
    if not len(rows):
        raise DataError("at least one row must have a known label, got none: use a file with gold labels")
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
    chosen = model.decide(analysis.scores, codes, analysis.is_named) & analysis.is_read[:, None]
    return evaluate_languages(rows.targets, chosen, model.labels, rows.languages)
