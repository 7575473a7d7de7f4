"""Inputs as they come: several files, folders, spreadsheets, archives, pipes, and what is found by itself."""

from __future__ import annotations

import csv
import json
import logging
import os
import subprocess
import sys
import threading
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest

from emoglot.batch.window import InputColumns
from emoglot.data.streams import Reading
from emoglot.errors import DataError, UsageError
from tests.batch.helpers import ROWS, KillError, command, read, run, write
from tests.spreadsheets import write_ods, write_xlsx

pa = pytest.importorskip("pyarrow", reason="Parquet needs: pip install 'emoglot[parquet]'")


def texts_of(path: Path) -> list[str]:
    with path.open(encoding="utf-8", newline="") as file:
        return [row["text"] for row in csv.DictReader(file)]


def score(names: list[Path], target: Path, model_folder: Path, **options):
    from emoglot.batch.score import score_file
    from emoglot.batch.scoring import ModelSource
    from emoglot.data.formats import format_of

    place = ModelSource(model_folder, None, None, None)
    columns = options.pop("columns", InputColumns())
    return score_file(
        [str(name) for name in names], str(target), format_of(target.name, None), columns, place, **options
    )


def kill_at(number: int):
    def on_window(window, _source):
        if window.number == number:
            raise KillError

    return on_window


@pytest.mark.parametrize("encoding", ["utf-8-sig", "cp1252", "utf-16"])
@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_csv_of_a_spreadsheet_program_is_scored(encoding, delimiter, model_folder, tmp_path, caplog):
    caplog.set_level(logging.INFO, logger="emoglot")
    texts = ["Ça va très bien, señor", "¡Qué alegría; verte!", 'a "quote"']
    with (tmp_path / "in.csv").open("w", encoding=encoding, newline="") as file:
        csv.writer(file, delimiter=delimiter).writerows([["id", "Message"], *enumerate(texts)])
    score([tmp_path / "in.csv"], tmp_path / "out.csv", model_folder)
    with (tmp_path / "out.csv").open(encoding="utf-8", newline="") as file:
        assert [row["Message"] for row in csv.DictReader(file)] == texts
    assert "the texts are in the column 'Message'" in caplog.text
    assert f"separated by {delimiter!r}" in caplog.text
    assert ("read as cp1252, guessed" in caplog.text) == (encoding == "cp1252")


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252", "utf-16"])
def test_a_table_that_was_saved_as_text_is_a_table(encoding, model_folder, tmp_path, caplog):
    caplog.set_level(logging.INFO, logger="emoglot")
    content = 'id\tMessage\r\n1\tÇa va très bien\r\n2\t"two\nlines, señor"\r\n'
    (tmp_path / "in.txt").write_bytes(content.encode(encoding))
    score([tmp_path / "in.txt"], tmp_path / "out.csv", model_folder)
    with (tmp_path / "out.csv").open(encoding="utf-8", newline="") as file:
        assert [(row["id"], row["Message"]) for row in csv.DictReader(file)] == [
            ("1", "Ça va très bien"),
            ("2", "two\nlines, señor"),
        ]
    assert "it is read as a table" in caplog.text
    score([tmp_path / "in.txt"], tmp_path / "lines.csv", model_folder, reading=Reading("txt", encoding))
    assert len(texts_of(tmp_path / "lines.csv")) == 4


@pytest.mark.parametrize("content", ["text\tfor you\nno tab\n", "so happy\there\nso sad\tthere\n", "text\tonly\n"])
def test_lines_with_tabs_stay_lines_if_they_are_no_table(content, model_folder, tmp_path):
    (tmp_path / "in.txt").write_text(content)
    score([tmp_path / "in.txt"], tmp_path / "out.csv", model_folder)
    assert texts_of(tmp_path / "out.csv") == content.splitlines()


def test_a_given_column_makes_a_text_file_a_table(model_folder, tmp_path):
    (tmp_path / "in.txt").write_text("id\tAntwort\n1\tso happy\n")
    score([tmp_path / "in.txt"], tmp_path / "out.csv", model_folder, columns=InputColumns("Antwort"))
    with (tmp_path / "out.csv").open(encoding="utf-8", newline="") as file:
        assert [row["Antwort"] for row in csv.DictReader(file)] == ["so happy"]


@pytest.mark.parametrize(("name", "make"), [("in.xlsx", write_xlsx), ("in.ods", write_ods)])
def test_a_spreadsheet_is_scored_and_resumed(name, make, model_folder, tmp_path):
    pytest.importorskip("python_calamine")
    source = make(tmp_path / name, [["id", "text"], *([str(n), f"row {n} is happy"] for n in range(35))])
    score([source], tmp_path / "whole.csv", model_folder)
    assert texts_of(tmp_path / "whole.csv") == [f"row {n} is happy" for n in range(35)]
    with pytest.raises(KillError):
        score([source], tmp_path / "out.csv", model_folder, on_window=kill_at(1))
    score([source], tmp_path / "out.csv", model_folder, resume=True)
    assert (tmp_path / "out.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()


def test_a_zipped_file_is_scored(model_folder, tmp_path):
    with zipfile.ZipFile(tmp_path / "in.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("posts.csv", "text\n" + "".join(f"row {n}\n" for n in range(25)))
    run(tmp_path / "in.zip", tmp_path / "out.csv", model_folder)
    assert texts_of(tmp_path / "out.csv") == [f"row {n}" for n in range(25)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = tmp_path / "posts"
    found.mkdir()
    write(found / "a.csv", [{"text": f"a {n}", "author": "Ann"} for n in range(20)])
    (found / "b.csv").write_bytes(b"text;when\nb 0;1\n\xc3\xa9t\xc3\xa9\x00;2\nb 2;3\n\n")
    write(found / "c.tsv", [{"text": f"c {n}"} for n in range(15)])
    (found / "notes.md").write_text("not data")
    (found / ".hidden.csv").write_text("text\nno\n")
    return found


EXPECTED = [*(f"a {n}" for n in range(20)), "b 0", "b 2", *(f"c {n}" for n in range(15))]


@pytest.mark.parametrize("target", ["out.csv", "out.jsonl", "out.parquet"])
def test_a_folder_is_scored_file_by_file(target, folder, model_folder, tmp_path):
    tally = score([folder], tmp_path / target, model_folder)
    if target == "out.csv":
        assert texts_of(tmp_path / target) == EXPECTED
        with (tmp_path / target).open(encoding="utf-8", newline="") as file:
            assert next(csv.reader(file))[:3] == ["text", "author", "when"]
    else:
        assert [row["text"] for row in read(tmp_path / target)] == EXPECTED
    assert (tally.rows, tally.rejected) == (38, 1)
    (reject,) = map(json.loads, tally.rejects.read_text(encoding="utf-8").splitlines())
    assert (reject["line"], reject["file"]) == (3, str(folder / "b.csv"))


def test_a_folder_may_mix_tables_and_json_with_other_columns(folder, model_folder, tmp_path):
    write(folder / "d.jsonl", [{"text": f"d {n}"} | ({"stars": n} if n > 11 else {}) for n in range(15)])
    score([folder], tmp_path / "out.csv", model_folder)
    with (tmp_path / "out.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0])[:4] == ["text", "author", "when", "stars"]
    assert [row["text"] for row in rows] == [*EXPECTED, *(f"d {n}" for n in range(15))]
    assert [row["stars"] for row in rows[-4:]] == ["", "12", "13", "14"]
    with pytest.raises(DataError, match=r"got 'stars' in a later row of .*d\.jsonl: write jsonl"):
        score([folder / "d.jsonl", folder / "a.csv"], tmp_path / "out.parquet", model_folder)
    assert not (tmp_path / "out.parquet.parts").exists()


@pytest.mark.parametrize("number", range(5))
def test_several_files_are_resumed_to_the_same_bytes(number, folder, model_folder, tmp_path):
    names = [folder / "c.tsv", folder / "a.csv", folder / "b.csv"]
    score(names, tmp_path / "whole.csv", model_folder)
    with pytest.raises(KillError):
        score(names, tmp_path / "out.csv", model_folder, on_window=kill_at(number))
    with pytest.raises(UsageError, match="another input"):
        score(names[::-1], tmp_path / "out.csv", model_folder, resume=True)
    score(names, tmp_path / "out.csv", model_folder, resume=True)
    for suffix in ("", ".rejects.jsonl"):
        assert (tmp_path / f"out.csv{suffix}").read_bytes() == (tmp_path / f"whole.csv{suffix}").read_bytes()


def test_a_file_that_is_missing_at_its_turn_can_be_restored(folder, model_folder, tmp_path):
    score([folder], tmp_path / "whole.csv", model_folder)

    def take_away(window, _source):
        if window.number == 0:
            (folder / "c.tsv").rename(tmp_path / "away")

    with pytest.raises(
        DataError, match=r"no file .*c\.tsv.* kept in .*out\.csv\.parts: restore .* --resume, or delete"
    ):
        score([folder], tmp_path / "out.csv", model_folder, on_window=take_away)
    (tmp_path / "away").rename(folder / "c.tsv")
    score([folder], tmp_path / "out.csv", model_folder, resume=True)
    assert (tmp_path / "out.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
    assert not (tmp_path / "out.csv.parts").exists()


def test_a_job_that_would_fail_again_leaves_nothing(model_folder, tmp_path):
    rows = [{"text": f"a {number}"} for number in range(30)]
    source = write(tmp_path / "in.jsonl", [*rows, {"text": "b", "joy": 1}])
    with pytest.raises(UsageError, match="already has a column 'joy'"):
        score([source], tmp_path / "out.jsonl", model_folder)
    assert [path.name for path in tmp_path.iterdir()] == ["in.jsonl"]


def test_a_file_that_changes_before_its_turn_gives_no_output(folder, model_folder, tmp_path):
    def touch(window, _source):
        if window.number == 0:
            os.truncate(folder / "c.tsv", 10)

    with pytest.raises(DataError, match=r"c\.tsv has changed"):
        score([folder], tmp_path / "out.csv", model_folder, on_window=touch)
    assert not (tmp_path / "out.csv").exists()


def test_what_can_not_be_scored_together_is_refused(folder, model_folder, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="a folder needs at least one data file"):
        score([tmp_path / "empty"], tmp_path / "out.csv", model_folder)
    with pytest.raises(UsageError, match="can be listed only once"):
        score([folder / "a.csv", folder], tmp_path / "out.csv", model_folder)
    one = write(tmp_path / "one.parquet", [{"text": "a"}])
    two = write(tmp_path / "two.parquet", [{"text": "a", "more": 1}])
    for others in ([two], [folder / "a.csv"]):
        with pytest.raises(DataError, match="must have the same columns"):
            score([one, *others], tmp_path / "out.csv", model_folder)
    (tmp_path / "in.dat").write_text("hello\nworld\n")
    with pytest.raises(DataError, match=r"the format of .*in\.dat cannot be recognised: .* --in-format, such as txt"):
        score([tmp_path / "in.dat"], tmp_path / "out.csv", model_folder)
    score([tmp_path / "in.dat"], tmp_path / "out.csv", model_folder, reading=Reading("txt"))
    assert texts_of(tmp_path / "out.csv") == ["hello", "world"]


def test_a_column_that_is_not_found_names_those_there_are(model_folder, tmp_path):
    source = write(tmp_path / "in.csv", [{"words": "a", "n": 1}])
    with pytest.raises(DataError, match=r"with --text-column, .*in\.csv has 'words', 'n'"):
        score([source], tmp_path / "out.csv", model_folder)
    score([write(tmp_path / "in.jsonl", [{"id": 1, "Comment": "a"}])], tmp_path / "out.jsonl", model_folder)
    assert read(tmp_path / "out.jsonl")[0]["Comment"] == "a"


@pytest.mark.parametrize("name", ["posts.csv", "posts"])
def test_a_named_pipe_is_scored(name, model_folder, tmp_path):
    os.mkfifo(tmp_path / name)
    content = "text;n\n" + "".join(f"row {n};{n}\n" for n in range(30))
    writer = threading.Thread(target=(tmp_path / name).write_text, args=(content,))
    writer.start()
    score([tmp_path / name], tmp_path / "out.csv", model_folder)
    writer.join()
    assert texts_of(tmp_path / "out.csv") == [f"row {n}" for n in range(30)]


def sent(data: bytes, *arguments: object) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(command(*arguments), input=data, capture_output=True, check=False)


def test_standard_input_is_recognised(model_folder):
    for data in (b"text;n\nso happy;1\n", b'{"text": "so happy"}\n'):
        done = sent(
            data, "/dev/stdin" if data[:1] == b"t" else "-", "-", "--out-format", "jsonl", "--model", model_folder
        )
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["text"] == "so happy"
    refused = sent(b"so happy\n", "-", "-", "--out-format", "csv", "--model", model_folder)
    assert refused.returncode == 3
    assert b"the format of standard input cannot be recognised" in refused.stderr


def test_csv_to_csv_needs_no_extra(model_folder, tmp_path):
    write(tmp_path / "in.csv", ROWS)
    blocked = "; ".join(f"sys.modules[{name!r}] = None" for name in ("pyarrow", "python_calamine", "polars", "torch"))
    arguments = ["emoglot", "score", "--model", model_folder, tmp_path / "in.csv", tmp_path / "out.csv.gz"]
    program = f"import sys; {blocked}; sys.argv = {list(map(str, arguments))!r}; import emoglot.cli; emoglot.cli.main()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(read(tmp_path / "out.csv.gz")) == len(ROWS)


def test_a_closed_standard_output_ends_quietly(model_folder, tmp_path):
    source = write(tmp_path / "in.csv", [{"text": f"row {n}"} for n in range(30_000)])
    arguments = (source, "-", "--out-format", "csv", "--model", model_folder, "--jobs", 1)
    process = subprocess.Popen(command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.readline()
    process.stdout.close()
    told = process.stderr.read()
    process.stderr.close()
    assert process.wait() == 141
    assert told == b""


def test_folders_are_made_only_if_asked_for(model_folder, tmp_path):
    source = write(tmp_path / "in.csv", ROWS)
    out = tmp_path / "new" / "deep" / "out.csv"
    with pytest.raises(UsageError, match=r"new/deep does not: .* --make-folders"):
        run(source, out, model_folder)
    assert not (tmp_path / "new").exists()
    run(source, out, model_folder, make_folders=True)
    assert out.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
@pytest.mark.parametrize(("answer", "is_made"), [(b"y\n", True), (b"n\n", False)])
def test_in_a_terminal_it_asks_before_it_makes_a_folder(model_folder, tmp_path, answer, is_made):
    source, out = write(tmp_path / "in.csv", ROWS[:3]), tmp_path / "new" / "out.csv"
    ours, theirs = os.openpty()
    command = [sys.executable, "-m", "emoglot", "score", "--model", model_folder, source, out]
    process = subprocess.Popen(command, stdin=theirs, stderr=theirs)
    os.close(theirs)
    told = b""
    while b"Create it? [y/N]" not in told:
        told += os.read(ours, 1000)
    os.write(ours, answer)
    with suppress(OSError):  # how a pseudo-terminal ends
        while os.read(ours, 1000):
            pass
    os.close(ours)
    assert process.wait() == (0 if is_made else UsageError.exit_code)
    assert out.exists() is is_made


@pytest.mark.parametrize(
    "content", ["", '{"made_by": "emoglot sc', "\x00", '{"made_by": "emoglot score", "identity": 3}', "[" * 10**5]
)
def test_a_damaged_job_is_one_sentence(content, model_folder, tmp_path):
    source = write(tmp_path / "in.csv", ROWS)
    with pytest.raises(KillError):
        run(source, tmp_path / "out.csv", model_folder, on_window=kill_at(1))
    (tmp_path / "out.csv.parts" / "job.json").write_text(content)
    with pytest.raises(UsageError, match=r"job\.json is damaged .*: delete .*out\.csv\.parts and start again"):
        run(source, tmp_path / "out.csv", model_folder, resume=True)
    assert len(list((tmp_path / "out.csv.parts").iterdir())) > 2


def test_a_long_line_of_jsonl_is_rejected(model_folder, tmp_path):
    with (tmp_path / "in.jsonl").open("w") as file:
        file.write('{"text": "a"}\n{"text": "' + "x" * 20_000_000 + '"}\n{"text": "b"}\n')
    tally = run(tmp_path / "in.jsonl", tmp_path / "out.jsonl", model_folder)
    assert [row["text"] for row in read(tmp_path / "out.jsonl")] == ["a", "b"]
    (reject,) = map(json.loads, tally.rejects.read_text(encoding="utf-8").splitlines())
    assert reject["line"] == 2
    assert "must not have more than" in reject["reason"]
