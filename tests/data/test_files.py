"""Files as they come: delimiters, encodings, spreadsheets and archives, as training data."""

from __future__ import annotations

import gzip
import logging
import sys
import zipfile

import pytest

from emoglot.data.encodings import find_encoding
from emoglot.data.records import open_records
from emoglot.data.registry import read
from emoglot.data.streams import LONGEST_LINE, Reading, open_path
from emoglot.errors import DataError, MissingExtraError, UsageError
from tests.spreadsheets import write_ods, write_xlsx

SAMPLES = {
    "cp1252": "¡Qué alegría verte, señor! Ça va très bien. Ich bin so glücklich, daß du da bist.",
    "cp1250": "Jestem bardzo szczęśliwy, że cię widzę. Źle się czuję, łóżko jest twarde.",
    "cp1251": "Я очень счастлив сегодня. Это ужасно, мне страшно и грустно.",
    "cp1253": "Είμαι πολύ χαρούμενος σήμερα, αλλά φοβάμαι τη νύχτα.",
    "cp1256": "أنا سعيد جدا اليوم وأنا خائف من الليل",
    "cp932": "今日はとても嬉しいです。夜が怖いよ。",
}


@pytest.fixture
def messages(caplog):
    caplog.set_level(logging.INFO, logger="emoglot")
    return caplog


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_of_csv_is_recognised(write, delimiter, messages):
    rows = [["text", "joy", "note"], ['"well, so; it\tgoes|on"', "1", "x"], ["fine", "0", "y, z" * (delimiter != ",")]]
    path = write("mine.csv", "\n".join(delimiter.join(row) for row in rows))
    dataset = read(path, label_columns=["joy"])
    assert dataset.texts == ("well, so; it\tgoes|on", "fine")
    assert (f"separated by {delimiter!r}" in messages.text) == (delimiter != ",")


def test_a_delimiter_can_be_stated(write):
    path = write("mine.csv", "text;joy,x\na,b;1\n")
    assert read(path, delimiter=";", label_columns=["joy,x"]).texts == ("a,b",)
    assert Reading(delimiter="tab").delimiter == Reading(delimiter="\\t").delimiter == "\t"
    for wrong in ("::", "\n", ""):
        with pytest.raises(UsageError, match="a delimiter must be one character"):
            Reading(delimiter=wrong)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32", "utf-16-le", "utf-16-be", *SAMPLES])
def test_an_encoding_is_recognised_and_a_guess_is_announced(write, encoding, messages):
    text = SAMPLES.get(encoding, "Ça va très bien, señor")
    dataset = read(write("mine.csv", f'text,joy\n"{text}",1\n'.encode(encoding)))
    assert dataset.texts == (text,)
    is_guess = encoding not in ("utf-8-sig", "utf-16", "utf-32")
    assert (f"read as {encoding}, guessed from its content" in messages.text) == is_guess


def test_an_encoding_can_be_stated(write, messages):
    path = write("mine.jsonl", '{"text": "naïf", "joy": 1}\n'.encode("mac_roman"))
    assert read(path, encoding="mac_roman").texts == ("naïf",)
    assert not messages.text
    with pytest.raises(UsageError, match=r"such as utf-8, cp1252, .* got 'utf-9'"):
        read(path, encoding="utf-9")


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "gb18030"])
def test_a_mark_is_no_part_of_the_first_column(write, encoding):
    path = write("mine.csv", "\ufefftext,joy\n好,1\n".encode(encoding))
    assert read(path, encoding=encoding).texts == ("好",)


@pytest.mark.parametrize("encoding", ["utf-16-le", "UTF_16_LE"])
def test_half_a_character_of_utf16_costs_its_line(write, encoding):
    path = write("mine.csv", "text,joy\nhi,1\n\ud800,1\nho,0\n".encode("utf-16-le", "surrogatepass"))
    dataset = read(path, encoding=encoding, skip_bad=True)
    assert (dataset.texts, [bad.line for bad in dataset.bad_lines]) == (("hi", "ho"), [3])


def test_a_file_that_is_not_what_its_mark_says_is_refused(write):
    path = write("mine.jsonl", b"\x00\x00\xfe\xff\x00\x00\xfe\xff*\xd8*\xd8")
    with pytest.raises(DataError, match=r"mine\.jsonl cannot be read: it is not utf-32"):
        read(path)


def test_a_header_in_another_encoding_than_its_rows_is_refused(write):
    path = write("mine.csv", b"text,caf\xe9\n" + "größer,1\nschön,0\nüber,1\n".encode())
    with pytest.raises(DataError, match=r"the header of .*mine\.csv is malformed: the text must be UTF-8, .* 0xE9"):
        read(path)


def test_a_byte_outside_of_the_encoding_costs_its_line(write):
    path = write("mine.csv", "text,joy\nça,1\n".encode("cp1252") + b"\x81,1\n")
    with pytest.raises(DataError, match="line 3: the text must be CP1252, got the byte 0x81"):
        read(path, encoding="cp1252")
    assert read(path, encoding="cp1252", skip_bad=True).texts == ("ça",)


def test_utf8_with_a_broken_line_stays_utf8():
    assert find_encoding("été\n".encode() + b"caf\xe9\n") == ("utf-8", False)
    assert find_encoding(b"plain") == ("utf-8", False)


def test_a_corpus_in_another_encoding_is_read(write):
    content = "ID\tTweet\tjoy\r\n2018-Es-1\t¡Qué alegría verte, señor!\t1\r\n"
    assert read(write("ec.txt", content.encode("cp1252"))).languages == ("es",)


@pytest.mark.parametrize(("name", "make"), [("mine.xlsx", write_xlsx), ("mine.ods", write_ods)])
def test_a_spreadsheet_is_a_table(tmp_path, name, make):
    pytest.importorskip("python_calamine")
    rows = [[None, None, None], ["id", "Tweet", "joy"], [7, "so <happy>", 1], [None, None, None], [8, "sad", 0]]
    dataset = read(make(tmp_path / name, rows))
    assert dataset.texts == ("so <happy>", "sad")
    assert dataset.targets.tolist() == [[1], [0]]
    make(tmp_path / name, [*rows, [9, None, 1]])
    assert [bad.line for bad in read(tmp_path / name, skip_bad=True).bad_lines] == [6]
    (tmp_path / "other.csv").write_bytes((tmp_path / name).read_bytes())  # under a name that is not its own
    assert read(tmp_path / "other.csv", skip_bad=True).texts == dataset.texts


def test_only_the_first_sheet_is_read_and_that_is_announced(tmp_path, messages):
    pytest.importorskip("python_calamine")
    path = write_xlsx(tmp_path / "mine.xlsx", [["text", "joy"], ["hi", 1]], ["Posts", "Notes"])
    assert read(path).texts == ("hi",)
    assert "read the sheet 'Posts', the first visible one of 2" in messages.text


def test_a_hidden_sheet_is_passed(tmp_path):
    pytest.importorskip("python_calamine")
    rows = [["text", "joy"], ["hi", 1]]
    path = write_xlsx(tmp_path / "mine.xlsx", rows, ["Lists", "Posts"], hidden=["Lists"])
    assert read(path).texts == ("hi",)


def test_a_broken_spreadsheet_is_named(write):
    pytest.importorskip("python_calamine")
    for content in (b"nonsense", b"PK\x03\x04nonsense"):
        with pytest.raises(DataError, match=r"mine\.xlsx (is not a readable spreadsheet|cannot be read)"):
            read(write("mine.xlsx", content), format="xlsx")


def test_a_spreadsheet_without_the_extra(tmp_path, monkeypatch):
    path = write_xlsx(tmp_path / "mine.xlsx", [["text", "joy"], ["hi", 1]])
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'emoglot\[excel\]'"):
        read(path)


def test_an_archive_of_one_file_is_read(tmp_path):
    path = tmp_path / "mine.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("export/posts.csv", "text;joy\nhi;1\n")
        archive.writestr("README", "about it")
        archive.writestr("__MACOSX/posts.csv", "x")
    assert read(path).texts == ("hi",)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("more.csv", "text;joy\nho;1\n")
    with pytest.raises(DataError, match=r"must contain one data file, .*mine\.zip has 2: unpack it"):
        read(path)


def test_gzip_is_recognised_whatever_the_name(write):
    assert read(write("mine.csv", gzip.compress(b"text,joy\nhi,1\n"))).texts == ("hi",)


def test_a_packed_file_in_an_archive_is_read(tmp_path):
    with zipfile.ZipFile(tmp_path / "mine.zip", "w") as archive:
        archive.writestr("posts.csv.gz", gzip.compress(b"text,joy\nhi,1\n"))
    assert read(tmp_path / "mine.zip").texts == ("hi",)


@pytest.mark.parametrize("name", ["Message", "TWEET", "comment"])
def test_columns_without_a_name_are_no_labels(write, name):
    dataset = read(write("mine.csv", f"{name};joy;;\nhi;1;;\n"))
    assert (dataset.texts, dataset.labels) == (("hi",), ("joy",))


def test_a_column_without_a_name_takes_the_place_of_no_other(write):
    with open_path(write("mine.csv", "unnamed_4,text,,\na,hi,b,c\n")) as stream:
        found = open_records(stream, Reading())
        assert [record for _, record in found.rows] == [{"unnamed_4": "a", "text": "hi", "": "b", "unnamed_5": "c"}]


def test_a_json_array_is_refused_with_the_way_out(write):
    with pytest.raises(DataError, match="one JSON array: write one object per line"):
        read(write("mine.json", '[{"text": "hi", "joy": 1}]'))


@pytest.mark.parametrize("name", ["mine.csv", "mine.jsonl", "mine.txt"])
def test_a_line_that_is_too_long_is_malformed_and_never_in_memory(tmp_path, name):
    path = tmp_path / name
    first, last = {"mine.csv": ("text", "fine"), "mine.jsonl": ('{"text": "a"}', '{"text": "b"}')}.get(name, ("a", "b"))
    with path.open("wb") as file:
        file.write(f"{first}\n".encode())
        for _ in range(20):
            file.write(b"x" * 2**20)
        file.write(f"\n{last}\n".encode())
    with open_path(path) as stream:
        assert max(map(len, stream.lines())) == LONGEST_LINE + 1
    with open_path(path) as stream:
        rows = list(open_records(stream, Reading()).rows)
    assert [line for line, _ in rows][-2:] == [2, 3]
    assert "a line must not have more than" in str(rows[-2][1])
    assert rows[-1][1] == {"text": "fine" if name == "mine.csv" else "b"}


def test_a_field_of_jsonl_has_the_limit_of_csv(write):
    for name, row in (("mine.jsonl", '{"text": "%s", "id": 7}'), ("mine.csv", "%s"), ("mine.txt", "%s")):
        path = write(name, "text\n" * (name == "mine.csv") + row % ("x" * (2**20 + 1)) + "\n")
        with open_path(path) as stream:
            ((_, error),) = open_records(stream, Reading()).rows
        assert "a field must not have more than 1048576 characters" in str(error)
