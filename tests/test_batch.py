"""Files of any size: every format in and out, bad rows, kills and resumption, frames."""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import emoglot
from emoglot.batch import scoring
from emoglot.batch import source as source_module
from emoglot.batch.formats import format_of
from emoglot.batch.records import LONGEST_FIELD_IN_STREAM, csv_records
from emoglot.batch.score import score_file
from emoglot.batch.scoring import Model, analyse_once
from emoglot.batch.source import Columns, Source, Window
from emoglot.data.lines import MalformedLineError
from emoglot.errors import DataError, UsageError
from tests.conftest import SENTENCES

pa = pytest.importorskip("pyarrow", reason="scoring files needs: pip install 'emoglot[parquet]'")
from pyarrow import parquet  # noqa: E402 - after the check that it is there

ROWS = [
    {"id": str(number), "text": f"{text}, no{number % 7}\n" if number % 5 == 0 else text, "note": 'a "b", c\td\re'}
    for number, (text, _, _) in enumerate(SENTENCES * 3)
]


@pytest.fixture(autouse=True)
def small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_module, "WINDOW_ROWS", 10)


@pytest.fixture(scope="module")
def local(model_folder: Path) -> emoglot.EmotionClassifier:
    return emoglot.load(model_folder)


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    """Write rows with other libraries than the one under test."""
    kind = format_of(path.name, None)
    if kind.kind == "parquet":
        parquet.write_table(pa.Table.from_pylist(rows), path, row_group_size=13)
        return path
    if kind.kind == "jsonl":
        text = "".join(json.dumps(row) + "\n" for row in rows)
    else:
        buffer = io.StringIO()
        writer = csv.DictWriter(buffer, list(rows[0]), delimiter="," if kind.kind == "csv" else "\t")
        writer.writeheader()
        writer.writerows(rows)
        text = buffer.getvalue()
    data = text.encode()
    if kind.compression == "zstd":
        data = kind.pack(data)
    path.write_bytes(gzip.compress(data) if kind.compression == "gzip" else data)
    return path


def read(path: Path) -> list[dict[str, Any]]:
    """Read rows back, with labels as lists and scores as numbers."""
    kind = format_of(path.name, None)
    if kind.kind == "parquet":
        return parquet.read_table(path).to_pylist()
    data = path.read_bytes()
    if kind.compression == "zstd":
        data = kind.unpacked(io.BytesIO(data)).read()
    text = (gzip.decompress(data) if kind.compression == "gzip" else data).decode()
    if kind.kind == "jsonl":
        return [json.loads(line) for line in text.splitlines()]
    rows = csv.DictReader(io.StringIO(text, newline=""), delimiter="," if kind.kind == "csv" else "\t")
    plain = ("id", "text", "note", "labels", "language", "truncated", "unreadable")
    names = [name for name in rows.fieldnames or [] if name not in plain]
    return [
        row
        | {"labels": row["labels"].split(",") if row["labels"] else [], "language": row.get("language") or None}
        | {name: row[name] == "true" for name in ("truncated", "unreadable")}
        | {name: float(row[name]) if row[name] else None for name in names}
        for row in rows
    ]


def run(source: Path, target: Path, model_folder: Path, columns: Columns | None = None, **options: Any) -> Any:
    place = Model(model_folder, None, None, None)
    formats = format_of(source.name, None), format_of(target.name, None)
    told = {"on_window": check_progress, **options}
    return score_file(str(source), str(target), *formats, columns or Columns("text"), place, **told)


def check_progress(window: Window, source: Source) -> None:
    """What a bar is told while a file is read, and at its end."""
    done, total = source.progress()
    assert 0 <= done <= total
    assert done or not window.read


def check_scores(found: list[dict[str, Any]], expected: list[dict[str, Any]], local: Any) -> None:
    """Every row is there in its order with its columns, and scored as the model scores it."""
    predictions = local.predict([row["text"] for row in expected])
    assert len(found) == len(expected)
    for row, wanted, prediction in zip(found, expected, predictions, strict=True):
        assert {name: row[name] for name in wanted} == wanted
        assert tuple(row["labels"]) == prediction.labels
        expected_scores = prediction.scores or dict.fromkeys(local.labels_)
        assert {name: row[name] for name in local.labels_} == pytest.approx(expected_scores, abs=2e-5)
        assert (row["truncated"], row["unreadable"]) == (prediction.truncated, prediction.unreadable)
        assert row["language"] == prediction.language


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


def test_bad_rows_go_to_a_file_with_their_lines(model_folder, local, tmp_path):
    content = (
        b"id,text\n"
        b"1,fine\n"
        b"2,\xff\xfe broken\n"  # line 3
        b'3,"two\nlines"\n'
        b"4,too,many\n"  # line 6
        b"\n"
        b"5,nul\x00\n"  # line 8
        b'6,"never closed\n'  # line 9
        b"7,fine again\n"
    )
    (tmp_path / "in.csv").write_bytes(content)
    tally = run(tmp_path / "in.csv", tmp_path / "out.csv", model_folder, Columns("text", id="id"))
    expected = [{"id": "1", "text": "fine"}, {"id": "3", "text": "two\nlines"}, {"id": "7", "text": "fine again"}]
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
    tally = run(tmp_path / "in.jsonl", tmp_path / "out.jsonl", model_folder, Columns("text", id="id"))
    check_scores(read(tmp_path / "out.jsonl"), [{"id": 1, "text": "fine"}], local)
    rejects = [json.loads(line) for line in tally.rejects.read_text(encoding="utf-8").splitlines()]
    assert [(reject["line"], reject["id"]) for reject in rejects] == [(2, 2), (3, None), (4, 4), (5, None), (6, None)]
    table = pa.table({"id": [1, 2, 3], "text": pa.array([b"fine", b"\xff", None], pa.binary())})
    parquet.write_table(table, tmp_path / "in.parquet")
    tally = run(tmp_path / "in.parquet", tmp_path / "out.parquet", model_folder, Columns("text", id="id"))
    assert parquet.read_table(tmp_path / "out.parquet")["id"].to_pylist() == [1]
    rejects = [json.loads(line) for line in tally.rejects.read_text(encoding="utf-8").splitlines()]
    assert [(reject["line"], reject["id"]) for reject in rejects] == [(2, 2), (3, 3)]


def test_an_open_quote_costs_its_line_and_bounded_memory():
    """A megabyte after the quote, the record is given up, and reading goes on with the line after it."""
    lines = [b"a,b\n", b'1,"open\n', *[b"2,fine %d\n" % number for number in range(200_000)]]
    taken = 0

    def counted():
        nonlocal taken
        for line in lines:
            taken += len(line)
            yield line

    header, records = csv_records(counted(), ",")
    number, error = next(records)
    assert header == ["a", "b"]
    assert number == 2
    assert isinstance(error, MalformedLineError)
    assert taken < 3 * LONGEST_FIELD_IN_STREAM
    rest = list(records)
    assert [line for line, _ in rest] == list(range(3, 200_003))
    assert rest[-1][1] == {"a": "2", "b": "fine 199999"}


def test_csv_agrees_with_python():
    """The stream of well-formed records is what the csv module reads."""
    rng = random.Random(0)
    rows = [["".join(rng.choices('ab,"\n\t é', k=rng.randrange(6))) or "x" for _ in range(3)] for _ in range(500)]
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows([["a", "b", "c"], *rows])
    lines = [f"{line}\n".encode() for line in buffer.getvalue().split("\n")[:-1]]
    _, records = csv_records(lines, ",")
    assert [list(record.values()) for _, record in records] == rows


def test_no_rows_still_have_a_header(model_folder, local, tmp_path):
    (tmp_path / "in.csv").write_text("id,text\n")
    run(tmp_path / "in.csv", tmp_path / "out.csv", model_folder)
    added = ["labels", *local.labels_, "language", "truncated", "unreadable"]
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


def test_a_worker_starts_where_processes_can_not_be_pinned(model_folder, monkeypatch):
    """macOS and Windows lack the function."""
    monkeypatch.delattr(os, "sched_setaffinity")
    monkeypatch.setattr(scoring, "worker_number", lambda: 0)
    assert scoring._prepare(Model(model_folder, None, None, None)).predict(["a"])


def test_several_processes_give_the_same_file(model_folder, tmp_path):
    source = write(tmp_path / "in.csv", ROWS)
    for jobs in (1, 2):
        run(source, tmp_path / f"out-{jobs}.csv", model_folder, jobs=jobs)
    assert (tmp_path / "out-1.csv").read_bytes() == (tmp_path / "out-2.csv").read_bytes()


@pytest.mark.parametrize(
    ("setup", "options", "message"),
    [
        ("in.csv", {}, "no column 'text'"),
        ("in.parquet", {}, "no column 'text'"),
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
    with pytest.raises(UsageError, match="'joy' already"):
        run(tmp_path / source, tmp_path / target, model_folder)
    run(tmp_path / source, tmp_path / target, model_folder, prefix="e_")
    with (tmp_path / target).open(encoding="utf-8", newline="") as file:
        added = ["labels", *local.labels_, "language", "truncated", "unreadable"]
        assert next(csv.reader(file)) == ["text", "joy", *(f"e_{name}" for name in added)]


def test_what_can_not_be_meant_is_refused(model_folder, tmp_path):
    source = write(tmp_path / "in.csv", ROWS)
    with pytest.raises(UsageError, match="not told by its name"):
        format_of("posts.dat", None)
    with pytest.raises(UsageError, match="a format is one of"):
        format_of("posts.csv", "xml")
    with pytest.raises(UsageError, match="can't be a stream"):
        format_of("-", "parquet")
    with pytest.raises(UsageError, match="scores have columns"):
        run(source, tmp_path / "out.txt", model_folder)
    with pytest.raises(DataError, match="no file"):
        run(tmp_path / "none.csv", tmp_path / "out.csv", model_folder)
    (tmp_path / "out.csv").write_text("mine")
    with pytest.raises(UsageError, match="exists already"):
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
    with pytest.raises(DataError, match="must hold strings, it holds int64"):
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


@pytest.mark.parametrize("target", ["out.csv", "out.parquet"])
def test_columns_that_come_too_late_are_told(target, model_folder, tmp_path):
    rows = [*({"text": "hi"} for _ in range(10)), {"text": "bye", "author": "Ann"}]
    with pytest.raises(DataError, match="the first rows have no 'author'"):
        run(write(tmp_path / "in.jsonl", rows), tmp_path / target, model_folder)


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
    with pytest.raises(DataError, match="a value that can't be read"):
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
    parquet.write_table(table, tmp_path / "in.parquet")
    for target in ("out.csv", "out.jsonl"):
        run(tmp_path / "in.parquet", tmp_path / target, model_folder)
    (row,) = csv.DictReader((tmp_path / "out.csv").read_text(encoding="utf-8").splitlines())
    assert (row["text"], row["y"]) == ("café", "[1.0, null]")
    record = json.loads((tmp_path / "out.jsonl").read_text(encoding="utf-8"), parse_constant=pytest.fail)
    assert (record["text"], record["x"], record["y"]) == ("café", None, [1.0, None])


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_a_file_that_is_packed_badly_is_named(suffix, model_folder, tmp_path):
    whole = write(tmp_path / f"in.csv{suffix}", [{"text": f"fine {number * 7919}"} for number in range(500)])
    (tmp_path / f"cut.csv{suffix}").write_bytes(whole.read_bytes()[:-200])
    (tmp_path / f"other.csv{suffix}").write_bytes(b"text\nfine\n")
    for name in ("cut", "other"):
        with pytest.raises(DataError, match=rf"{name}\.csv\{suffix} can't be read"):
            run(tmp_path / f"{name}.csv{suffix}", tmp_path / "out.csv", model_folder)


def test_a_device_is_not_replaced(model_folder, tmp_path):
    os.mkfifo(tmp_path / "out.csv")
    with pytest.raises(UsageError, match="is no file"):
        run(write(tmp_path / "in.csv", ROWS), tmp_path / "out.csv", model_folder, overwrite=True)
    assert (tmp_path / "out.csv").is_fifo()


class KillError(Exception):
    """Stands for a kill in the middle of a job."""


@pytest.mark.parametrize("target", ["out.csv", "out.jsonl.gz", "out.tsv.zst", "out.parquet"])
@pytest.mark.parametrize("source", ["in.csv", "in.jsonl", "in.parquet"])
def test_an_interrupted_job_goes_on_to_the_same_bytes(source, target, model_folder, tmp_path):
    write(tmp_path / source, ROWS)
    run(tmp_path / source, tmp_path / f"whole-{target}", model_folder)

    def fail_at(count: int):
        def on_window(window, _source):
            if window.number == count:
                raise KillError

        return on_window

    for attempt, count in enumerate((0, 2, 3)):
        with pytest.raises(KillError):
            run(tmp_path / source, tmp_path / target, model_folder, resume=attempt > 0, on_window=fail_at(count))
        assert not (tmp_path / target).exists()
    with pytest.raises(UsageError, match="unfinished job"):
        run(tmp_path / source, tmp_path / target, model_folder)
    with pytest.raises(UsageError, match="another columns"):
        run(tmp_path / source, tmp_path / target, model_folder, resume=True, prefix="e_")
    run(tmp_path / source, tmp_path / target, model_folder, resume=True)
    assert (tmp_path / target).read_bytes() == (tmp_path / f"whole-{target}").read_bytes()


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "emoglot", "score", *map(str, arguments)]


def test_a_job_killed_at_random_moments_loses_no_row(model_folder, tmp_path):
    """Kill -9 again and again; in the end the file is that of a run without."""
    rng = random.Random(1)
    rows = [{"id": str(number), "text": f"row {number} of many happy words"} for number in range(60_000)]
    source = write(tmp_path / "in.csv", rows)
    with source.open("ab") as file:
        file.write(b"60000,\xff\n")
    arguments = ("--model", model_folder, "--jobs", 1)
    whole = subprocess.run(command(source, tmp_path / "whole.csv", *arguments), capture_output=True, check=False)
    assert whole.returncode == 7
    out, parts = tmp_path / "out.csv", tmp_path / "out.csv.parts"
    kills = 0
    while not out.exists() or parts.exists():
        resume = ["--resume"] if parts.exists() else []
        before = len(list(parts.glob("*-*")))
        process = subprocess.Popen(command(source, out, *arguments, *resume), stderr=subprocess.DEVNULL)
        # Somewhere after the next piece, so that every attempt gets further.
        while process.poll() is None and len(list(parts.glob("*-*"))) <= before and not out.exists():
            time.sleep(0.01)
        time.sleep(rng.random() * 0.2)
        process.send_signal(signal.SIGKILL)
        kills += process.wait() == -signal.SIGKILL
    assert kills >= 3
    assert out.read_bytes() == (tmp_path / "whole.csv").read_bytes()
    rejects = [(tmp_path / f"{name}.csv.rejects.jsonl").read_bytes() for name in ("out", "whole")]
    assert rejects[0] == rejects[1]
    assert json.loads(rejects[0])["line"] == 60_002
    found = Counter(row["id"] for row in read(tmp_path / "out.csv"))
    assert found == Counter(row["id"] for row in rows)


def test_standard_input_and_output(model_folder, local):
    text = "".join(json.dumps({"text": row["text"]}) + "\n" for row in ROWS)
    options = ("-", "-", "--in-format", "jsonl", "--out-format", "jsonl", "--model", model_folder)
    done = subprocess.run(command(*options), input=text.encode(), capture_output=True, check=True)
    found = [json.loads(line) for line in done.stdout.decode().splitlines()]
    check_scores(found, [{"text": row["text"]} for row in ROWS], local)


def test_bad_rows_of_a_pipe_are_told(model_folder):
    options = ("-", "-", "--in-format", "csv", "--out-format", "csv", "--model", model_folder)
    done = subprocess.run(command(*options), input=b"text\nfine\nnul\x00\n", capture_output=True, check=False)
    assert done.returncode == 7
    assert b"line 3: the text must not contain a NUL byte" in done.stderr
    assert len(done.stdout.splitlines()) == 2


def test_a_pipe_that_fails_leaves_nothing_to_go_on_from(model_folder, tmp_path, monkeypatch):
    rows = "".join(
        json.dumps({"text": str(number)} | ({"late": 1} if number == 15 else {})) + "\n" for number in range(30)
    )
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(rows.encode())))
    formats = format_of("-", "jsonl"), format_of("out.csv", None)
    place = Model(model_folder, None, None, None)
    with pytest.raises(DataError, match="no 'late'"):
        score_file("-", str(tmp_path / "out.csv"), *formats, Columns("text"), place)
    assert list(tmp_path.iterdir()) == []


def test_thresholds_of_languages_are_used(trained, model_folder, tmp_path):
    from dataclasses import replace

    state = replace(trained.state, language_thresholds={"es": np.zeros(len(trained.labels_))})
    folder = trained.with_state(state).save(tmp_path / "model")
    rows = [{"text": "a word", "code": code} for code in ("en", "es", "")]
    for name in ("in.csv", "in.parquet"):
        source = write(tmp_path / name, rows)
        place = Model(folder, None, None, "code")
        formats = format_of(name, None), format_of("o.jsonl", None)
        columns = Columns("text", language="code")
        score_file(str(source), str(tmp_path / "o.jsonl"), *formats, columns, place, overwrite=True)
        plain, spanish, unknown = read(tmp_path / "o.jsonl")
        assert spanish["labels"] == list(trained.labels_)
        assert plain["labels"] == unknown["labels"] == list(trained.predict(["a word"])[0].labels)


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
        assert {name: row[name] for name in local.labels_} == pytest.approx(prediction.scores, abs=1e-6)
    assert rows[1]["labels"] is None
    assert rows[1]["joy"] is None or np.isnan(rows[1]["joy"])
    with pytest.raises(DataError, match="no column 'words'"):
        emoglot.score_frame(frame, "words", model=local)
    with pytest.raises(UsageError, match="already"):
        emoglot.score_frame(found, model=local)


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
        with pytest.raises(DataError, match="a text is a string"):
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
