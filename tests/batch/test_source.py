"""The source of a job: which files are read, and what their rows are."""

from __future__ import annotations

import os
import sys
import unicodedata

import pytest

import emoglot
from emoglot.batch.source import open_source
from emoglot.batch.window import InputColumns, Position
from emoglot.data.streams import Reading
from emoglot.errors import DataError

pa = pytest.importorskip("pyarrow", reason="Parquet needs: pip install 'emoglot[parquet]'")
from pyarrow import parquet  # noqa: E402 - after the check that it is there


def read(*paths, columns=InputColumns()):  # noqa: B008 - it is frozen
    """Return the texts of files, and the lines that were rejected."""
    with open_source([str(path) for path in paths], Reading(), columns) as source:
        windows = list(source.windows(Position()))
    texts = [text for window in windows for text in window.texts]
    return texts, [reject.line for window in windows for reject in window.rejects]


@pytest.fixture
def write(tmp_path):
    def to_file(name, content):
        path = tmp_path / name
        path.write_text(content, encoding="utf-8")
        return path

    return to_file


@pytest.mark.parametrize(
    "name", ["Kommentar", "MENSAJE", "avis", "Commento", "reactie", "内容", "テキスト", "Текст", "نص", "Yorum"]
)
def test_the_texts_are_found_in_many_languages(write, name):
    assert read(write("posts.csv", f"id,{name},n\n1,hi,2\n")) == (["hi"], [])


def test_decomposed_letters_are_the_same_name(write):
    assert read(write("posts.csv", f"id,{unicodedata.normalize('NFD', 'Comentário')},n\n1,hi,2\n")) == (["hi"], [])


@pytest.mark.parametrize(("given", "meant"), [("antwort", "Antwort"), ("ANTWORT", "Antwort"), ("Antwrot", "Antwort")])
def test_a_column_with_a_similar_name_is_suggested(write, given, meant):
    with pytest.raises(DataError, match=f"{given!r} is not: did you mean {meant!r}\\? .* has 'id', 'Antwort'"):
        read(write("posts.csv", "id,Antwort\n1,hi\n"), columns=InputColumns(given))


def test_what_programs_leave_in_a_folder_is_passed(write, tmp_path):
    write("posts.csv", "text\nhi\n")
    write("~$survey.xlsx", "the owner of survey.xlsx")
    write(".hidden.csv", "text\nho\n")
    assert read(tmp_path) == (["hi"], [])


@pytest.mark.parametrize("first", ['{"id": "1"}', '{"id": "1", "te', "{}"])
def test_the_first_row_of_json_need_not_show_where_the_texts_are(write, first):
    path = write("posts.jsonl", f'{first}\n{{"id": "2", "tweet": "hi"}}\n{{"id": "3", "tweet": "ho", "lang": "de"}}\n')
    found = (["hi", "ho"], [1]) if first.endswith("te") else (["", "hi", "ho"], [])
    assert read(path, columns=InputColumns(language="lang")) == found


@pytest.mark.parametrize("name", ["note", "text"])
def test_two_columns_of_parquet_with_one_name_are_refused(name, tmp_path):
    columns = [pa.array(["hi"]), pa.array(["a"]), pa.array(["b"])]
    path = tmp_path / "posts.parquet"
    parquet.write_table(pa.Table.from_arrays(columns, names=["text", "note", name]), path)
    with pytest.raises(DataError, match=f"has '{name}' more than once: rename all but one"):
        read(path)
    with pytest.raises(DataError, match=f"has '{name}' more than once: rename all but one"):
        emoglot.read(path)


KINDS = [pa.string(), pa.large_string(), pa.binary(), pa.large_binary(), pa.dictionary(pa.int32(), pa.string())]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_strings_of_every_kind_are_texts(kind, tmp_path):
    parquet.write_table(pa.table({"text": pa.array(["hi", None, "ho"], kind)}), tmp_path / "posts.parquet")
    assert read(tmp_path / "posts.parquet") == (["hi", "", "ho"], [])


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere, names are Unicode")
def test_a_name_that_is_not_unicode_can_be_listed_with_its_rejects(tmp_path):
    (tmp_path / os.fsdecode(b"caf\xe9.csv")).write_text("text,id\nhi\n")
    (tmp_path / "posts.csv").write_text("text,id\nho,1\n")
    with open_source([str(tmp_path)], Reading(), InputColumns()) as source:
        rejects = [reject for window in source.windows(Position()) for reject in window.rejects]
    assert [reject.file for reject in rejects] == [str(tmp_path / "caf\ufffd.csv")]
