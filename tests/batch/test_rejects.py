"""Rows that cannot be scored: each is listed with its line and the reason."""

from __future__ import annotations

import json
import subprocess

import pytest

from emoglot.batch.window import InputColumns
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
    lines = ['{"id": 1, "text": "fine"}', '{"id": 2, "text": 5}', "[1]", '{"id": 4}', "{", '{"text": "\\ud800"}']
    (tmp_path / "in.jsonl").write_text("\n".join(lines), encoding="utf-8")
    tally = run(tmp_path / "in.jsonl", tmp_path / "out.jsonl", model_folder, InputColumns("text", id="id"))
    check_scores(read(tmp_path / "out.jsonl"), [{"id": 1, "text": "fine"}], local)
    rejects = [json.loads(line) for line in tally.rejects.read_text(encoding="utf-8").splitlines()]
    assert [(reject["line"], reject["id"]) for reject in rejects] == [(2, 2), (3, None), (4, 4), (5, None), (6, None)]
    table = pa.table({"id": [1, 2, 3], "text": pa.array([b"fine", b"\xff", None], pa.binary())})
    parquet.write_table(table, tmp_path / "in.parquet")
    tally = run(tmp_path / "in.parquet", tmp_path / "out.parquet", model_folder, InputColumns("text", id="id"))
    assert parquet.read_table(tmp_path / "out.parquet")["id"].to_pylist() == [1]
    rejects = [json.loads(line) for line in tally.rejects.read_text(encoding="utf-8").splitlines()]
    assert [(reject["line"], reject["id"]) for reject in rejects] == [(2, 2), (3, 3)]


def test_bad_rows_of_a_pipe_are_told(model_folder):
    options = ("-", "-", "--in-format", "csv", "--out-format", "csv", "--model", model_folder)
    done = subprocess.run(command(*options), input=b"text\nfine\nnul\x00\n", capture_output=True, check=False)
    assert done.returncode == 7
    assert b"line 3: the text must not contain a NUL byte" in done.stderr
    assert len(done.stdout.splitlines()) == 2
