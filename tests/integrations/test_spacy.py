"""The component of a spaCy pipeline."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint

import pytest

import emoglot
from tests.docs_blocks import ROOT

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

spacy = pytest.importorskip("spacy", reason="SPACY IS NOT TESTED: pip install 'emoglot[spacy]'")

TEXTS = ["What a wonderful day", "", "Estoy furioso"]


@pytest.fixture
def nlp(model_folder):
    """A blank pipeline with the component, found as spaCy finds it after an installation."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    target = project["entry-points"]["spacy_factories"]["emoglot"]
    EntryPoint("emoglot", target, "spacy_factories").load()
    found = spacy.blank("xx")
    found.add_pipe("emoglot", config={"model": str(model_folder)})
    return found


def test_documents_have_the_predictions_of_the_model(nlp, trained):
    expected = trained.predict(TEXTS)
    assert [doc._.emotions for doc in nlp.pipe(TEXTS, batch_size=2)] == expected
    assert nlp(TEXTS[0])._.emotions == expected[0]


def test_the_options_are_those_of_predict(model_folder, trained, nlp):
    other = spacy.blank("en")
    other.add_pipe("emoglot", config={"model": str(model_folder), "language": "es"})
    assert other("so happy")._.emotions == trained.predict("so happy", "es")
    with pytest.raises(emoglot.ModelError):
        other.add_pipe("emoglot", name="second", config={"model": str(model_folder.parent)})


def test_emotions_travel_with_a_document(nlp):
    from spacy.tokens import Doc, DocBin

    docs = list(nlp.pipe(TEXTS))
    copies = [Doc(nlp.vocab).from_bytes(doc.to_bytes()) for doc in docs]
    assert [doc._.emotions for doc in copies] == [doc._.emotions for doc in docs]
    stored = DocBin(docs=docs, store_user_data=True).to_bytes()
    assert [doc._.emotions for doc in DocBin().from_bytes(stored).get_docs(nlp.vocab)] == [
        doc._.emotions for doc in docs
    ]
    assert spacy.blank("xx")("so happy")._.emotions is None


def test_a_pipeline_is_saved_with_its_model(nlp, tmp_path):
    nlp.to_disk(tmp_path / "pipeline")
    assert spacy.load(tmp_path / "pipeline")("so happy")._.emotions == nlp("so happy")._.emotions
