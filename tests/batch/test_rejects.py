"""Rows that cannot be scored: each is listed with its line and the reason."""

from __future__ import annotations

import json
import subprocess

import pytest

from emoglot.batch.window import InputColumns
from emoglot.errors import DataError
from tests.batch.helpers import check_scores, command, read, run

pa = pytest.importorskip("pyarrow", reason="Parquet needs: pip install 'emoglot[parquet]'")
from pyarrow import parquet  # noqa: E402 - after the check that it is there


def test_bad_rows_go_to_a_file_with_their_lines(model_folder, local, tmp_path):
    content = (
        b"id,text\n"
        b"1,\xc3\xa9t\xc3\xa9\n"
        b"2,\xff\xfe broken\n"  # line 3
        b'3,"two\nlines"\n'
        b"4,too,many\n"  # line 6
        b"\n"
        b"5,nul\x00\n"  # line 8
        b'6,"never closed\n'  # line 9
        b"7,fine again\n"
    )
    (tmp_path / "in.csv").write_bytes(content)
    tally = run(tmp_path / "in.csv", tmp_path / "out.csv", model_folder, InputColumns("text", id="id"))
    expected = [{"id": "1", "text": "été"}, {"id": "3", "text": "two\nlines"}, {"id": "7", "text": "fine again"}]
    check_scores(read(tmp_path / "out.csv"), expected, local)
    rejects = [json.loads(line) for line in tally.rejects.read_text(encoding="utf-8").splitlines()]
    assert [reject["line"] for reject in rejects] == [3, 6, 8, 9]
    assert [reject["id"] for reject in rejects] == ["2", None, "5", None]
    for reject, reason in zip(rejects, ("0xFF", "2 fields, got 3", "NUL", "never closed"), strict=True):
        assert reason in reject["reason"]
    assert tally.rejected == 4


def test_bad_rows_of_json_and_parquet(model_folder, local, tmp_path):
    lines = [
        '{"id": 1, "text": "fine"}',
        '{"id": 2, "text": 5}',
        "[1]",
        '{"id": 4, "text": ["a"]}',
        "{",
        '{"text": "\\ud800"}',
    ]
    (tmp_path / "in.jsonl").write_text("\n".join(lines), encoding="utf-8")
    tally = run(tmp_path / "in.jsonl", tmp_path / "out.jsonl", model_folder, InputColumns("text", id="id"))
    check_scores(read(tmp_path / "out.jsonl"), [{"id": 1, "text": "fine"}], local)
    rejects = [json.loads(line) for line in tally.rejects.read_text(encoding="utf-8").splitlines()]
    assert [(reject["line"], reject["id"]) for reject in rejects] == [(2, 2), (3, None), (4, 4), (5, None), (6, None)]
    table = pa.table({"id": [1, 2, 3], "text": pa.array([b"fine", b"\xff", b"\xfe"], pa.binary())})
    parquet.write_table(table, tmp_path / "in.parquet")
    tally = run(tmp_path / "in.parquet", tmp_path / "out.parquet", model_folder, InputColumns("text", id="id"))
    assert parquet.read_table(tmp_path / "out.parquet")["id"].to_pylist() == [1]
    rejects = [json.loads(line) for line in tally.rejects.read_text(encoding="utf-8").splitlines()]
    assert [(reject["line"], reject["id"]) for reject in rejects] == [(2, 2), (3, 3)]


@pytest.mark.parametrize("name", ["in.jsonl", "in.parquet", "in.csv"])
@pytest.mark.parametrize("target", ["out.jsonl", "out.csv", "out.parquet"])
def test_a_missing_text_is_an_empty_text(name, target, model_folder, local, tmp_path):
    rows = [{"id": 1, "text": "fine"}, {"id": 2, "text": None}, {"id": 3}]
    if name == "in.jsonl":
        (tmp_path / name).write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    elif name == "in.csv":
        (tmp_path / name).write_text("id,text\n1,fine\n2,\n3,\n", encoding="utf-8")
    else:
        parquet.write_table(pa.Table.from_pylist(rows), tmp_path / name)
    tally = run(tmp_path / name, tmp_path / target, model_folder)
    assert (tally.rows, tally.rejected) == (3, 0)
    found = read(tmp_path / target)
    assert [int(row["id"]) for row in found] == [1, 2, 3]
    for row in found[1:]:
        assert not row.get("text")
        assert list(row["labels"]) == []
        assert [row[label] for label in local.labels] == [None] * len(local.labels)


def test_a_text_column_that_no_row_of_json_has_is_told(model_folder, tmp_path):
    (tmp_path / "in.jsonl").write_text('{"body": "so happy"}\n{"body": "so sad"}\n')
    with pytest.raises(DataError, match=r"'words' is not: .*in\.jsonl has 'body'"):
        run(tmp_path / "in.jsonl", tmp_path / "out.jsonl", model_folder, InputColumns("words"))


def test_bad_rows_of_a_pipe_are_told(model_folder):
    options = ("-", "-", "--in-format", "csv", "--out-format", "csv", "--model", model_folder)
    done = subprocess.run(command(*options), input=b"text\nfine\nnul\x00\n", capture_output=True, check=False)
    assert done.returncode == 7
    assert b"line 3: the text must not contain a NUL byte" in done.stderr
    assert len(done.stdout.splitlines()) == 2
