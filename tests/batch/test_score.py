"""Files of any size: every format in and out, their columns, and what is refused."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import subprocess

import numpy as np
import pytest

from emoglot.batch.score import score_file
from emoglot.batch.scoring import ModelSource, analyse_once
from emoglot.batch.window import InputColumns
from emoglot.data.formats import format_of
from emoglot.errors import DataError, UsageError
from tests.batch.helpers import ROWS, check_scores, command, read, run, write

pa = pytest.importorskip("pyarrow", reason="Parquet needs: pip install 'emoglot[parquet]'")
from pyarrow import parquet  # noqa: E402 - after the check that it is there


@pytest.mark.parametrize("source", ["in.csv", "in.tsv.gz", "in.jsonl", "in.csv.zst", "in.parquet"])
@pytest.mark.parametrize("target", ["out.csv", "out.tsv.zst", "out.jsonl.gz", "out.parquet"])
def test_every_format_leads_to_every_other(source, target, model_folder, local, tmp_path):
    tally = run(write(tmp_path / source, ROWS), tmp_path / target, model_folder)
    check_scores(read(tmp_path / target), ROWS, local)
    assert (tally.rows, tally.rejected) == (len(ROWS), 0)
    assert {path.name for path in tmp_path.iterdir()} == {source, target}


def test_lines_of_text_are_texts(model_folder, local, tmp_path):
    lines = ["one", "", "أنا خائف", "with, comma", 'and "quote"']
    (tmp_path / "in.txt").write_text("\r\n".join(lines), encoding="utf-8")
    run(tmp_path / "in.txt", tmp_path / "out.csv", model_folder)
    check_scores(read(tmp_path / "out.csv"), [{"text": line} for line in lines], local)


def test_parquet_keeps_the_types_of_other_columns(model_folder, tmp_path):
    table = pa.table(
        {
            "text": ["a", "b"],
            "when": pa.array([1, 2], pa.timestamp("ns")),
            "tags": [["x"], []],
            "share": pa.array([0.5, None], pa.float32()),
        }
    )
    parquet.write_table(table, tmp_path / "in.parquet")
    run(tmp_path / "in.parquet", tmp_path / "out.parquet", model_folder)
    assert parquet.read_table(tmp_path / "out.parquet").select(table.column_names).equals(table)


def test_a_text_is_scored_once_in_a_window(local):
    asked: list[str] = []

    class Noting:
        def analyse(self, texts, language):
            asked.extend(texts)
            return local.analyse(texts, language)

    texts = ["b", "a", "longer", "a", "b", "a"]
    analysis = analyse_once(Noting(), texts, None)
    np.testing.assert_array_equal(analysis.scores, local.predict_proba(texts))
    assert asked == ["a", "b", "longer"]
    assert len(analyse_once(local, [], None)) == 0
    named = analyse_once(local, ["a", "b", "a"], ["en", "en", "es"])
    assert named.languages == ("en", "en", "es")


def test_no_rows_still_have_a_header(model_folder, local, tmp_path):
    (tmp_path / "in.csv").write_text("id,text\n")
    run(tmp_path / "in.csv", tmp_path / "out.csv", model_folder)
    added = ["labels", *local.labels, "language", "truncated", "unreadable"]
    assert (tmp_path / "out.csv").read_text() == ",".join(["id", "text", *added]) + "\n"
    write(tmp_path / "in.parquet", ROWS)
    empty = parquet.read_table(tmp_path / "in.parquet").slice(0, 0)
    parquet.write_table(empty, tmp_path / "empty.parquet")
    run(tmp_path / "empty.parquet", tmp_path / "out.parquet", model_folder)
    run(tmp_path / "in.csv", tmp_path / "csv.parquet", model_folder)
    for name, columns in (("out", ["id", "text", "note"]), ("csv", ["id", "text"])):
        found = parquet.read_table(tmp_path / f"{name}.parquet")
        assert found.num_rows == 0
        assert found.column_names == [*columns, *added]


@pytest.mark.parametrize(
    ("setup", "options", "message"),
    [
        ("in.csv", {}, "'text' is not"),
        ("in.parquet", {}, "'text' is not"),
    ],
)
def test_a_missing_column_is_refused(setup, options, message, model_folder, tmp_path):
    source = write(tmp_path / setup, [{"words": "a"}])
    with pytest.raises(DataError, match=message):
        run(source, tmp_path / "out.csv", model_folder, **options)
    assert {path.name for path in tmp_path.iterdir()} == {setup}


@pytest.mark.parametrize(
    ("source", "target"), [("in.csv", "out.csv"), ("in.parquet", "out.csv"), ("in.jsonl", "o.csv")]
)
def test_two_columns_of_one_name_are_refused(source, target, model_folder, local, tmp_path):
    write(tmp_path / source, [{"text": "a", "joy": "1"}])
    with pytest.raises(UsageError, match="already has a column 'joy'"):
        run(tmp_path / source, tmp_path / target, model_folder)
    run(tmp_path / source, tmp_path / target, model_folder, prefix="e_")
    with (tmp_path / target).open(encoding="utf-8", newline="") as file:
        added = ["labels", *local.labels, "language", "truncated", "unreadable"]
        assert next(csv.reader(file)) == ["text", "joy", *(f"e_{name}" for name in added)]


def test_invalid_arguments_are_refused(model_folder, tmp_path):
    source = write(tmp_path / "in.csv", ROWS)
    with pytest.raises(UsageError, match="cannot be recognised by its name"):
        format_of("posts.dat", None)
    with pytest.raises(UsageError, match="a format must be one of"):
        format_of("posts.csv", "xml")
    with pytest.raises(UsageError, match="cannot be a stream"):
        format_of("-", "parquet")
    with pytest.raises(UsageError, match=r"output must be one of csv, tsv, jsonl, parquet, got out\.xlsx: choose"):
        run(source, tmp_path / "out.xlsx", model_folder)
    with pytest.raises(DataError, match="no file"):
        run(tmp_path / "none.csv", tmp_path / "out.csv", model_folder)
    (tmp_path / "out.csv").write_text("mine")
    with pytest.raises(UsageError, match="already exists"):
        run(source, tmp_path / "out.csv", model_folder)
    with pytest.raises(UsageError, match="nothing to resume"):
        run(source, tmp_path / "out.csv", model_folder, resume=True)
    assert (tmp_path / "out.csv").read_text() == "mine"
    run(source, tmp_path / "out.csv", model_folder, overwrite=True)
    assert len(read(tmp_path / "out.csv")) == len(ROWS)
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 nonsense")
    with pytest.raises(DataError, match="not a readable Parquet file"):
        run(tmp_path / "broken.parquet", tmp_path / "o.csv", model_folder)
    parquet.write_table(pa.table({"text": [1, 2]}), tmp_path / "numbers.parquet")
    with pytest.raises(DataError, match="must contain strings, got int64"):
        run(tmp_path / "numbers.parquet", tmp_path / "o.csv", model_folder)


@pytest.mark.parametrize("target", ["out.csv", "out.parquet", "out.jsonl"])
def test_columns_that_not_every_row_has_are_kept(target, model_folder, local, tmp_path):
    rows = [{"text": "hi"}, {"text": "bye", "author": "Ann"}]
    run(write(tmp_path / "in.jsonl", rows), tmp_path / target, model_folder)
    found = (
        read(tmp_path / target)
        if target != "out.csv"
        else list(csv.DictReader((tmp_path / target).read_text().splitlines()))
    )
    assert [row.get("author") or None for row in found] == [None, "Ann"]


def test_columns_that_come_late_are_known_beforehand(model_folder, tmp_path):
    rows = [*({"text": "hi"} for _ in range(10)), {"text": "bye", "author": "Ann"}]
    run(write(tmp_path / "in.jsonl", rows), tmp_path / "out.csv", model_folder)
    found = list(csv.DictReader((tmp_path / "out.csv").read_text().splitlines()))
    assert list(found[0])[:3] == ["text", "author", "labels"]
    assert [row["author"] for row in found] == [""] * 10 + ["Ann"]


def test_columns_that_come_too_late_for_parquet_are_told_and_nothing_stays(model_folder, tmp_path):
    rows = [*({"text": "hi"} for _ in range(10)), {"text": "bye", "author": "Ann"}]
    with pytest.raises(DataError, match="got 'author' in a later row"):
        run(write(tmp_path / "in.jsonl", rows), tmp_path / "out.parquet", model_folder)
    assert [path.name for path in tmp_path.iterdir()] == ["in.jsonl"]


def test_what_comes_late_inside_of_objects_is_told(model_folder, tmp_path):
    rows = [*({"text": "hi", "m": {"x": 1}} for _ in range(10)), {"text": "bye", "m": {"x": 2, "y": 3}}]
    with pytest.raises(DataError, match="a later one has more; write jsonl"):
        run(write(tmp_path / "in.jsonl", rows), tmp_path / "out.parquet", model_folder)
    same = [{"text": "hi", "m": {"x": number}} for number in range(25)]
    run(write(tmp_path / "in.jsonl", same), tmp_path / "same.parquet", model_folder)
    assert [row["m"] for row in read(tmp_path / "same.parquet")] == [row["m"] for row in same]


def test_what_python_can_not_hold_is_told(model_folder, tmp_path):
    table = pa.table({"text": ["a"], "when": pa.array([2**62], pa.timestamp("us"))})
    parquet.write_table(table, tmp_path / "in.parquet")
    with pytest.raises(DataError, match="a value that cannot be read"):
        run(tmp_path / "in.parquet", tmp_path / "out.csv", model_folder)
    run(tmp_path / "in.parquet", tmp_path / "out.parquet", model_folder)  # which needs no Python for it


@pytest.mark.parametrize("value", [10**30, {}, "both"])
def test_what_parquet_can_not_hold_is_told_and_nothing_stays(value, model_folder, tmp_path):
    rows = [{"text": "a", "x": value}, {"text": "b", "x": 1 if value == "both" else value}]
    source = write(tmp_path / "in.jsonl", rows)
    with pytest.raises(DataError, match="write jsonl"):
        run(source, tmp_path / "out.parquet", model_folder)
    assert [path.name for path in tmp_path.iterdir()] == ["in.jsonl"]


def test_bytes_and_nan_are_written_as_text_knows_them(model_folder, tmp_path):
    table = pa.table({"text": pa.array([b"caf\xc3\xa9"], pa.binary()), "x": [math.nan], "y": [[1.0, math.inf]]})
    table = table.append_column("z", pa.array([[("a", math.nan)]], pa.map_(pa.string(), pa.float64())))
    parquet.write_table(table, tmp_path / "in.parquet")
    for target in ("out.csv", "out.jsonl"):
        run(tmp_path / "in.parquet", tmp_path / target, model_folder)
    (row,) = csv.DictReader((tmp_path / "out.csv").read_text(encoding="utf-8").splitlines())
    assert (row["text"], row["y"], row["z"]) == ("café", "[1.0, null]", '[["a", null]]')
    record = json.loads((tmp_path / "out.jsonl").read_text(encoding="utf-8"), parse_constant=pytest.fail)
    assert (record["text"], record["x"], record["y"], record["z"]) == ("café", None, [1.0, None], [["a", None]])


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_a_file_that_is_packed_badly_is_named(suffix, model_folder, tmp_path):
    whole = write(tmp_path / f"in.csv{suffix}", [{"text": f"fine {number * 7919}"} for number in range(500)])
    (tmp_path / f"cut.csv{suffix}").write_bytes(whole.read_bytes()[:-200])
    (tmp_path / f"other.csv{suffix}").write_bytes(b"text\nfine\n")
    for name in ("cut", "other"):
        with pytest.raises(DataError, match=rf"{name}\.csv\{suffix} cannot be read"):
            run(tmp_path / f"{name}.csv{suffix}", tmp_path / "out.csv", model_folder)


def test_a_device_is_not_replaced(model_folder, tmp_path):
    os.mkfifo(tmp_path / "out.csv")
    with pytest.raises(UsageError, match="must be a regular file"):
        run(write(tmp_path / "in.csv", ROWS), tmp_path / "out.csv", model_folder, overwrite=True)
    assert (tmp_path / "out.csv").is_fifo()


def test_standard_input_and_output(model_folder, local):
    text = "".join(json.dumps({"text": row["text"]}) + "\n" for row in ROWS)
    options = ("-", "-", "--in-format", "jsonl", "--out-format", "jsonl", "--model", model_folder)
    done = subprocess.run(command(*options), input=text.encode(), capture_output=True, check=True)
    found = [json.loads(line) for line in done.stdout.decode().splitlines()]
    check_scores(found, [{"text": row["text"]} for row in ROWS], local)


def test_a_pipe_that_fails_leaves_nothing_to_go_on_from(model_folder, tmp_path, monkeypatch):
    rows = "".join(
        json.dumps({"text": str(number)} | ({"late": 1} if number == 15 else {})) + "\n" for number in range(30)
    )
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(rows.encode())))
    place = ModelSource(model_folder, None, None, None)
    with pytest.raises(DataError, match="got 'late' in a later row"):
        score_file("-", str(tmp_path / "out.csv"), format_of("out.csv", None), InputColumns("text"), place)
    assert list(tmp_path.iterdir()) == []


def test_thresholds_of_languages_are_used(trained, model_folder, tmp_path):
    from dataclasses import replace

    state = replace(trained.state, language_thresholds={"es": np.zeros(len(trained.labels))})
    folder = trained.with_state(state).save(tmp_path / "model")
    rows = [{"text": "a word", "code": code} for code in ("en", "es", "")]
    for name in ("in.csv", "in.parquet"):
        source = write(tmp_path / name, rows)
        place = ModelSource(folder, None, None, "code")
        columns = InputColumns("text", language="code")
        target = str(tmp_path / "o.jsonl")
        score_file(str(source), target, format_of(target, None), columns, place, overwrite=True)
        plain, spanish, unknown = read(tmp_path / "o.jsonl")
        assert spanish["labels"] == list(trained.labels)
        assert plain["labels"] == unknown["labels"] == list(trained.predict(["a word"])[0].labels)
