"""What the tests of files share: rows, and how they are written, scored and read back."""

from __future__ import annotations

import csv
import gzip
import io
import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from emoglot.batch.score import score_file
from emoglot.batch.scoring import ModelSource
from emoglot.batch.source import Source
from emoglot.batch.window import InputColumns, Window
from emoglot.data.formats import decompressed, format_of
from tests.conftest import SENTENCES

pa = pytest.importorskip("pyarrow", reason="Parquet needs: pip install 'emoglot[parquet]'")
from pyarrow import parquet  # noqa: E402 - after the check that it is there

ROWS = [
    {"id": str(number), "text": f"{text}, no{number % 7}\n" if number % 5 == 0 else text, "note": 'a "b", c\td\re'}
    for number, (text, _, _) in enumerate(SENTENCES * 3)
]


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
        data = decompressed(io.BytesIO(data), "zstd").read()
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


def run(source: Path, target: Path, model_folder: Path, columns: InputColumns | None = None, **options: Any) -> Any:
    place = ModelSource(model_folder, None, None, None)
    told = {"on_window": check_progress, **options}
    return score_file(
        str(source), str(target), format_of(target.name, None), columns or InputColumns("text"), place, **told
    )


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
        expected_scores = prediction.scores or dict.fromkeys(local.labels)
        assert {name: row[name] for name in local.labels} == pytest.approx(expected_scores, abs=2e-5)
        assert (row["truncated"], row["unreadable"]) == (prediction.truncated, prediction.unreadable)
        assert row["language"] == prediction.language


class KillError(Exception):
    """Stands for a kill in the middle of a job."""


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "emoglot", "score", *map(str, arguments)]


def kill_and_resume(source: Path, out: Path, *options: object, rng: random.Random, early: float = 0.0) -> int:
    """Kill a job (-9) and resume it until its output is there; return the number of kills.

    `early` is the share of kills that come within a second, whatever the job has done by then.
    """
    parts = out.with_name(f"{out.name}.parts")
    kills = 0

    def is_done() -> bool:
        return out.exists() and not parts.exists()

    while not is_done():
        resume = ["--resume"] if parts.exists() else []
        before = len(list(parts.glob("*-*")))
        process = subprocess.Popen(command(source, out, *options, *resume), stderr=subprocess.DEVNULL)
        if rng.random() < early:
            time.sleep(rng.random())
        else:  # somewhere after the next piece, so that the job gets further
            # Where the output is there, all that remains is to remove the pieces.
            while process.poll() is None and len(list(parts.glob("*-*"))) <= before and not is_done():
                time.sleep(0.01)
            time.sleep(rng.random() * 0.2)
        process.send_signal(signal.SIGKILL)
        kills += process.wait() == -signal.SIGKILL
    return kills
