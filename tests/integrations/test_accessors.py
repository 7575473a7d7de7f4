"""`frame.emoglot.score` of pandas and polars."""

from __future__ import annotations

from importlib import import_module

import pytest

import emoglot


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_frame_is_scored_by_its_accessor(library, model_folder):
    module = pytest.importorskip(library)
    import_module(f"emoglot.integrations.{library}")
    model = emoglot.load(model_folder)
    frame = module.DataFrame({"note": ["What a wonderful day", None, "Estoy furioso"]})
    found = frame.emoglot.score("note", model=model, prefix="my_")
    assert found.equals(emoglot.score_frame(frame, "note", model=model, prefix="my_"))
    with pytest.raises(emoglot.DataError, match="no column 'text'"):
        frame.emoglot.score(model=model)
