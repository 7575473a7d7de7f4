"""Plain tables: CSV, TSV, JSONL and Parquet with named columns."""

import csv
import io
import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emoglot.data.records import csv_rows
from emoglot.data.registry import read
from emoglot.errors import DataError, MissingExtraError, UsageError
from emoglot.labels import UNKNOWN


def as_jsonl(*rows):
    return "".join(f"{json.dumps(row)}\n" for row in rows)


@pytest.mark.parametrize(("name", "delimiter"), [("mine.csv", ","), ("mine.tsv", "\t")])
def test_label_columns_by_default(write, name, delimiter):
    rows = [
        ("id", "text", "joy", "homesick", "lang", "split"),
        ("7", '"well,\nwell"', "1", "", "sv", "train"),
        ("8", "so", "false", "TRUE", "", "dev"),
    ]
    dataset = read(write(name, "\n".join(delimiter.join(row) for row in rows)))
    assert dataset.texts == ("well,\nwell", "so")
    assert dataset.labels == ("joy", "homesick")
    assert dataset.targets.tolist() == [[1, UNKNOWN], [0, 1]]
    assert dataset.languages == ("sv", "und")
    assert dataset.sources == ("mine", "mine")


def test_jsonl_label_columns(write):
    content = as_jsonl(
        {"text": "up", "joy": 1, "fear": False},
        {"text": "down", "joy": None, "language": "ga"},
        {"text": "even", "joy": 0.0, "fear": "1"},
    )
    dataset = read(write("mine.jsonl", content), language="mt")
    assert dataset.labels == ("joy", "fear")
    assert dataset.targets.tolist() == [[1, 0], [UNKNOWN, UNKNOWN], [0, 1]]
    assert dataset.languages == ("mt", "ga", "mt")


def test_jsonl_names(write):
    content = as_jsonl(
        {"text": "a", "labels": ["trust", "joy"]},
        {"text": "b", "labels": []},
        {"text": "c", "labels": "joy; anger"},
        {"text": "d"},
    )
    dataset = read(write("mine.jsonl", content))
    assert dataset.labels == ("anger", "joy", "trust")
    assert dataset.targets.tolist() == [[0, 1, 1], [0, 0, 0], [1, 1, 0], [UNKNOWN] * 3]


def test_csv_names_with_every_separator(write):
    content = 'text,labels\na,joy|anger\nb,"joy, fear"\nc,trust;\nd,\ne,"[""joy""]"\n'
    dataset = read(write("mine.csv", content))
    assert dataset.labels == ("anger", "fear", "joy", "trust")
    assert dataset.targets.tolist() == [[1, 0, 1, 0], [0, 1, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0], [0, 0, 1, 0]]


@pytest.mark.parametrize("header", ["label", "emotion", "Emotions", "LABEL"])
def test_names_column_in_other_words(write, header):
    dataset = read(write("mine.csv", f"text,id,{header}\na,1,joy\nb,2,fear\n"))
    assert dataset.labels == ("fear", "joy")
    assert dataset.targets.tolist() == [[0, 1], [1, 0]]
    rows = as_jsonl({"text": "a", header: "joy"}, {"text": "b", header: ["fear"]})
    assert read(write("mine.jsonl", rows)).targets.tolist() == [[0, 1], [1, 0]]


def test_the_text_column_has_no_names_of_labels(write):
    path = write("mine.csv", "emotion,label\nI am glad,joy\n")
    assert read(path, text_column="emotion").labels == ("joy",)


def test_several_columns_of_names_need_a_choice(write):
    path = write("mine.csv", "text,labels,Emotion,joy\na,calm,glad,1\n")
    with pytest.raises(DataError, match=r"has 'labels', 'Emotion': choose one with --labels-column"):
        read(path)
    assert read(path, labels_column="Emotion").labels == ("glad",)
    assert read(path, label_columns=["joy"]).targets.tolist() == [[1]]


@pytest.mark.parametrize(
    ("name", "content"), [("mine.csv", "text,label\na,3\nb,0\n"), ("mine.jsonl", '{"text": "a", "label": 3}\n')]
)
def test_numbers_are_not_taken_for_names_of_labels(write, name, content):
    with pytest.raises(DataError, match=r"column 'label' must contain .*names, .*--label-columns"):
        read(write(name, content))


def test_names_outside_the_allowed_set_are_malformed(write):
    path = write("mine.csv", "text,labels\na,joy\nb,bliss\n")
    with pytest.raises(DataError, match=r"line 3: column 'labels' must contain only joy, fear, got 'bliss'"):
        read(path, label_columns=["joy", "fear"])
    dataset = read(path, label_columns=["joy", "fear"], skip_bad=True)
    assert dataset.labels == ("joy", "fear")
    assert len(dataset.bad_lines) == 1


def test_columns_can_be_named(write):
    path = write("mine.csv", "when,What,mood,joy,tongue\n2020,oh,glad|calm,1,eu\n")
    dataset = read(path, text_column="What", labels_column="mood", language_column="tongue", language="en")
    assert dataset.labels == ("calm", "glad")
    assert dataset.languages == ("eu",)
    dataset = read(path, text_column="What", label_columns=["joy"])
    assert dataset.targets.tolist() == [[1]]


@pytest.mark.parametrize("header", ["Text", "TWEET", "Sentence", "content", "Comment"])
def test_text_column_in_other_words(write, header):
    assert read(write("mine.csv", f"{header},joy\nhi,1\n")).texts == ("hi",)


def test_text_comes_before_its_synonyms(write):
    path = write("mine.jsonl", as_jsonl({"comment": "no", "Text": "yes", "labels": ["joy"]}))
    assert read(path).texts == ("yes",)


def test_nameless_index_column_of_pandas_is_no_label(write):
    assert read(write("mine.csv", ",text,joy\n0,hi,1\n1,ho,0\n2,hum,1\n")).labels == ("joy",)


def test_given_columns_make_a_corpus_file_a_table(write):
    path = write("eng.csv", "id,text,anger,joy\neng_train_track_a_1,well,0,1\n")
    assert read(path).sources == ("brighter-en",)
    assert read(path, label_columns=["joy"]).sources == ("eng",)


def test_jsonl_is_told_from_its_content(write):
    assert read(write("mine.txt", as_jsonl({"text": "x", "joy": 1}))).texts == ("x",)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"text_column": "body"}, "text column must be a column, 'body' is not"),
        ({"label_columns": ["joy", "awe"]}, "label column must be a column, 'awe' is not"),
        ({"labels_column": "moods"}, "labels column must be a column"),
        ({"language_column": "tongue"}, "language column must be a column"),
    ],
)
def test_a_column_that_is_not_there(write, options, message):
    with pytest.raises(DataError, match=message):
        read(write("mine.csv", "text,joy\nhi,1\n"), **options)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("words,joy\nhi,1\n", r"column of texts .* has 'words', 'joy'"),
        ("text,id\nhi,1\n", "at least one label column"),
        ("text,joy,joy\nhi,1,1\n", "'joy' more than once"),
        ("text,labels\nhi,\n", "'labels' has no name"),
        ('"text,joy\nhi,1\n', "header of .* is malformed"),
    ],
)
def test_wrong_header(write, content, message):
    with pytest.raises(DataError, match=message):
        read(write("mine.csv", content))


def test_label_columns_are_a_list_without_repeats(write):
    path = write("mine.csv", "text,joy\nhi,1\n")
    with pytest.raises(UsageError, match="list of names, got the string 'joy'"):
        read(path, label_columns="joy")
    with pytest.raises(DataError, match="more than once"):
        read(path, label_columns=["joy", "joy"])


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"text": "x", "joy": 2}, "label column 'joy' must contain 0, 1, true, false or nothing, got 2"),
        ({"text": "x", "joy": "yes"}, "'joy' .* got 'yes'"),
        ({"text": "x", "joy": [1]}, r"got \[1\]"),
        ({"text": " ", "joy": 1}, "must not be empty"),
        ({"joy": 1}, "must not be empty"),
        ({"text": 5, "joy": 1}, "text must be a string, got 5 in column 'text'"),
        ({"text": "\ud800", "joy": 1}, r"lone surrogate U\+D800"),
        ({"text": "a\0b", "joy": 1}, "NUL"),
        ({"text": "x", "joy": 1, "language": 3}, "language codes such as 'en', got 3"),
        (["x", 1], "must be a JSON object"),
    ],
)
def test_malformed_jsonl_row(write, row, reason):
    path = write("mine.jsonl", as_jsonl({"text": "good", "joy": 1}) + "\n" + as_jsonl(row))
    with pytest.raises(DataError, match=f"line 3: .*{reason}"):
        read(path)
    assert read(path, skip_bad=True).texts == ("good",)


@pytest.mark.parametrize(
    "line", ["{", "[" * 100_000, '{"text": ' + "1" * 5000 + "}", '{"text": "\xe9"}'.encode("latin-1")]
)
def test_malformed_json(write, line):
    line = line if isinstance(line, bytes) else line.encode()
    path = write(
        "mine.jsonl", as_jsonl({"text": "good", "joy": 1}).encode() + '{"text": "très", "joy": 1}\n'.encode() + line
    )
    with pytest.raises(DataError, match=r"line 3: .*(JSON object|UTF-8|a string)"):
        read(path)


@pytest.mark.parametrize("names", [[1, 2], ["joy", ""], {"joy": 1}, 3, "['joy']"])
def test_malformed_names(write, names):
    path = write("mine.jsonl", as_jsonl({"text": "good", "labels": ["joy"]}, {"text": "x", "labels": names}))
    with pytest.raises(DataError, match="line 2: column 'labels' must contain label names"):
        read(path)


def test_a_field_of_a_megabyte_leaves_no_trace(write):
    before = csv.field_size_limit()
    long_text = "very " * 200_000
    assert read(write("mine.csv", f'text,joy\n"{long_text}",1\n')).texts == (long_text,)
    assert csv.field_size_limit() == before


def test_bad_lines_come_in_the_order_of_the_file(write):
    path = write("mine.csv", "text,joy\nx,2\na,b,c\ny,1\nz,3\n")
    assert [bad.line for bad in read(path, skip_bad=True).bad_lines] == [2, 3, 5]
    assert str(read(path, skip_bad=True).bad_lines[1]) == "mine.csv, line 3: a line must have 2 fields, got 3"


@given(st.lists(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), min_size=2)))
def test_csv_records_read_what_the_csv_module_writes(rows):
    lines = []
    for row in rows:
        quoted = ('"' + cell.replace('"', '""') + '"' for cell in row)
        lines.append(",".join(quoted) + "\r\n")
    records = list(csv_rows(io.BytesIO("".join(lines).encode()), ","))
    assert [fields for _, fields in records] == rows
    starts = [1 + "".join(lines[:index]).count("\n") for index in range(len(lines))]
    assert [line for line, _ in records] == starts


def test_no_good_row_is_lost_with_a_bad_one(write):
    lines = ["text,joy,anger", "good one,1,0", '"open quote here,0,1', "good two,1,0", "good three,0,1"]
    lines += ['says "x" ok,1,1', '"closed" too early,1,1', "last,0,0"]
    dataset = read(write("mine.csv", "\n".join(lines)), skip_bad=True)
    assert dataset.texts == ("good one", "good two", "good three", 'says "x" ok', "last")
    assert [bad.line for bad in dataset.bad_lines] == [3, 7]


def test_a_label_called_labels_is_no_column_of_names(write):
    path = write("mine.csv", "text,joy,labels\na,1,0\nb,0,1\n")
    with pytest.raises(DataError, match=r"must contain names, got only numbers: .* --label-columns"):
        read(path)
    assert read(path, label_columns=["joy", "labels"]).labels == ("joy", "labels")
    assert read(path, labels_column="labels").labels == ("0", "1")


def test_parquet_that_python_can_not_hold_is_told(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    foreign = pa.Array.from_buffers(pa.string(), 1, [None, *pa.array([b"\xff\xfe"], pa.binary()).buffers()[1:]])
    late = pa.array([2**62], pa.timestamp("us"))
    for name, column in (("text", foreign), ("when", late)):
        parquet.write_table(pa.table({"text": ["a"], "joy": [1]} | {name: column}), tmp_path / "mine.parquet")
        with pytest.raises(DataError, match="not a readable Parquet file"):
            read(tmp_path / "mine.parquet", skip_bad=True)


def test_parquet(tmp_path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "mine.parquet"
    columns = {"text": ["a", "b", "c"], "joy": [1.0, float("nan"), 0.0], "fear": [True, False, None]}
    parquet.write_table(pa.table(columns), path)
    dataset = read(path)
    assert dataset.targets.tolist() == [[1, 1], [UNKNOWN, 0], [0, UNKNOWN]]
    parquet.write_table(pa.table({"text": ["a", "b", None], "labels": [["joy"], [], ["joy"]]}), path)
    dataset = read(path, skip_bad=True)
    assert dataset.targets.tolist() == [[1], [0]]
    assert [bad.line for bad in dataset.bad_lines] == [3]
    path.write_bytes(b"PAR1 is all that is left")
    with pytest.raises(DataError, match="not a readable Parquet file"):
        read(path)


def test_parquet_without_pyarrow(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    path = tmp_path / "mine.parquet"
    path.write_bytes(b"PAR1")
    with pytest.raises(MissingExtraError, match=r"pip install 'emoglot\[parquet\]'"):
        read(path)
