"""Data frames: what comes back, and what is refused."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import emoglot
from emoglot.errors import DataError, UsageError

pa = pytest.importorskip("pyarrow", reason="Parquet needs: pip install 'emoglot[parquet]'")


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_a_frame_comes_back_with_scores(library, local):
    module = pytest.importorskip(library)
    content = {"n": [1, 2, 3], "text": ["What a wonderful day", None, "Estoy furioso"]}
    frame = module.table(content) if library == "pyarrow" else module.DataFrame(content)
    found = emoglot.score_frame(frame, model=local)
    assert type(found) is type(frame)
    rows = (
        found.to_dict("records")
        if library == "pandas"
        else (found.to_dicts() if library == "polars" else found.to_pylist())
    )
    for row, prediction in zip(
        [rows[0], rows[2]], local.predict([content["text"][0], content["text"][2]]), strict=True
    ):
        assert tuple(row["labels"]) == prediction.labels
        assert {name: row[name] for name in local.labels} == pytest.approx(prediction.scores, abs=1e-6)
    assert rows[1]["labels"] is None
    assert rows[1]["joy"] is None or np.isnan(rows[1]["joy"])
    with pytest.raises(DataError, match="no column 'words'"):
        emoglot.score_frame(frame, "words", model=local)
    with pytest.raises(UsageError, match="already"):
        emoglot.score_frame(found, model=local)


def test_the_texts_of_a_frame_are_found_by_their_name(local):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({0: [1], "Kommentar": ["so happy"]})
    assert emoglot.score_frame(frame, model=local).equals(emoglot.score_frame(frame, "Kommentar", model=local))
    with pytest.raises(DataError, match="no column 'kommentar': did you mean 'Kommentar'"):
        emoglot.score_frame(frame, "kommentar", model=local)
    with pytest.raises(DataError, match="no column 'text'"):
        emoglot.score_frame(frame[[0]], model=local)


def test_flags_of_a_pandas_frame_can_be_negated(local):
    pandas = pytest.importorskip("pandas")
    for texts in (["so happy", "أنا خائف"], ["so happy", None]):
        found = emoglot.score_frame(pandas.DataFrame({"text": texts}), model=local)
        assert found[~found["unreadable"].fillna(True)]["text"].tolist() == [text for text in texts if text]


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_a_frame_whose_texts_are_none_is_refused(library, local):
    module = pytest.importorskip(library)
    make = module.table if library == "pyarrow" else module.DataFrame
    for values in ([1, 2], [b"a", b"b"]):
        with pytest.raises(DataError, match="a text must be a string"):
            emoglot.score_frame(make({"text": values}), model=local)


def test_what_is_no_frame_is_refused(local):
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    for given in (["a"], pandas.Series(["a"]), polars.LazyFrame({"text": ["a"]})):
        with pytest.raises(DataError, match=f"got {type(given).__name__}"):
            emoglot.score_frame(given, model=local)
    twice = pandas.DataFrame([["a", "b"]], columns=["text", "text"])
    for frame in (twice, pa.Table.from_arrays([["a"], ["b"]], names=["text", "text"])):
        with pytest.raises(DataError, match="2 columns 'text'"):
            emoglot.score_frame(frame, model=local)
    empty = emoglot.score_frame(pandas.DataFrame({"text": []}), model=local)
    assert empty["labels"].dtype == object
    shuffled = emoglot.score_frame(pandas.DataFrame({"text": ["so happy", "so sad"]}, index=[7, 3]), model=local)
    assert shuffled["labels"].tolist() == [list(found.labels) for found in local.predict(["so happy", "so sad"])]


def test_a_frame_of_pandas_needs_no_pyarrow(model_folder):
    program = (
        "import sys; sys.modules['pyarrow'] = None; import emoglot;"
        "import emoglot.batch.frame; print('pyarrow.lib' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_every_row_of_a_frame_may_have_its_language(library, local):
    module = pytest.importorskip(library)
    content = {"text": ["so happy", None, "so sad"], "code": ["en", "fr", None]}
    frame = module.table(content) if library == "pyarrow" else module.DataFrame(content)
    found = emoglot.score_frame(frame, model=local, language=content["code"])
    languages = found["language"].to_pylist() if library == "pyarrow" else list(found["language"])
    assert languages[:2] == ["en", None]
    with pytest.raises(DataError, match="got 2 for 3 texts"):
        emoglot.score_frame(frame, model=local, language=["en", "fr"])


def test_the_row_that_has_no_text_is_named(local):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"text": ["a", None, None, 5]})
    with pytest.raises(DataError, match=r"got 5 \(int\) in row 3"):
        emoglot.score_frame(frame, model=local)
