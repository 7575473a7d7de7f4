"""spaCy: `nlp.add_pipe("emoglot")` sets `doc._.emotions`; spaCy finds the component by its entry point."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict

from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import minibatch

from emoglot.inference.prediction import Prediction, Sentiment
from emoglot.model import Model, load

NAME, ATTRIBUTE = "emoglot", "emotions"


@Language.factory(NAME, default_config={"model": None, "language": None, "precision": None, "recall": None})
def make_component(
    nlp: Language, name: str, model: str | None, language: str | None, precision: float | None, recall: float | None
) -> Component:
    """Return the component; `model` is a folder, or by default the model in the package."""
    return Component(load(model), language, precision, recall)


class Component:
    """Predicts the emotions of documents; the arguments are those of `Model.predict`."""

    def __init__(self, model: Model, language: str | None, precision: float | None, recall: float | None) -> None:
        self.model, self.language = model, language
        self.precision, self.recall = precision, recall

    def __call__(self, doc: Doc) -> Doc:
        """Set the emotions of a document."""
        return next(self.pipe([doc]))

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 256) -> Iterator[Doc]:
        """Set the emotions of many documents, which are scored in batches."""
        for docs in minibatch(stream, batch_size):  # type: ignore[no-untyped-call]
            texts = [doc.text for doc in docs]
            found = self.model.predict(texts, self.language, precision=self.precision, recall=self.recall)
            for doc, prediction in zip(docs, found, strict=True):
                doc._.set(ATTRIBUTE, prediction)
                yield doc


def _get(doc: Doc) -> Prediction | None:
    found = doc.user_data.get(NAME)
    if found is None:
        return None
    sentiment = Sentiment(**found["sentiment"]) if found["sentiment"] else None
    return Prediction(**{**found, "labels": tuple(found["labels"]), "sentiment": sentiment})


def _set(doc: Doc, prediction: Prediction) -> None:
    # As a dict, which can be serialised with the document.
    doc.user_data[NAME] = asdict(prediction)


Doc.set_extension(ATTRIBUTE, getter=_get, setter=_set, force=True)
