"""Small scored files, written by hand as `emoglot score` writes them."""

from __future__ import annotations

import csv
import gzip
import io
import json
from pathlib import Path
from typing import Any

import polars as pl

from emoglot.report.options import Options
from emoglot.report.write import make_report

LABELS = ("anger", "fear", "joy")
MARKUP = '<script>alert("1")</script> so angry & <img src=x onerror=alert(2)>'
# text, labels, scores, when, source
ROWS: list[tuple[str | None, tuple[str, ...] | None, tuple[float, ...] | None, str, str]] = [
    ("What a lovely day", ("joy",), (0.1, 0.2, 0.9), "2026-01-05", "post"),
    ("I am so happy, and a little scared", ("fear", "joy"), (0.1, 0.6, 0.8), "2026-01-06", "post"),
    (MARKUP, ("anger",), (0.99, 0.1, 0.1), "2026-01-06", "<b>forum</b>"),
    ("The shop opens at nine", (), (0.1, 0.1, 0.1), "2026-01-09", "<b>forum</b>"),
    ("أنا غاضب جدا", ("anger",), (0.8, 0.1, 0.1), "2026-01-09", "post"),
    ("ᚠᚢᚦᚨᚱᚲ", (), None, "2026-01-09", "post"),
    (None, None, None, "2026-01-10", "post"),
]


def records(prefix: str = "") -> list[dict[str, Any]]:
    made = []
    for text, labels, scores, when, source in ROWS:
        row: dict[str, Any] = {"text": text, "when": when, "source": source}
        row[f"{prefix}labels"] = None if labels is None else list(labels)
        row |= {f"{prefix}{label}": scores[index] if scores else None for index, label in enumerate(LABELS)}
        row[f"{prefix}unreadable"] = None if text is None else scores is None
        made.append(row)
    return made


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    """Write rows as `emoglot score` does."""
    if path.suffix == ".parquet":
        pl.DataFrame(rows, infer_schema_length=None).write_parquet(path)
        return path
    text = io.StringIO()
    if ".jsonl" in path.name:
        text.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    else:
        writer = csv.writer(text, delimiter="\t" if ".tsv" in path.name else ",", lineterminator="\n")
        writer.writerow(rows[0])
        for row in rows:
            cells = [",".join(value) if isinstance(value, list) else value for value in row.values()]
            writer.writerow([json.dumps(cell) if isinstance(cell, bool) else cell for cell in cells])
    data = text.getvalue().encode("utf-8")
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def many(rows: int, **columns: Any) -> list[dict[str, Any]]:
    """Make rows of which every third carries joy and no other label."""
    return [
        {"text": f"text {row}", "labels": ["joy"] if row % 3 == 0 else [], "joy": 0.9 if row % 3 == 0 else 0.1}
        | {name: make(row) for name, make in columns.items()}
        for row in range(rows)
    ]


def page_of(path: Path, **options: Any) -> str:
    return make_report(path, Options(**options), name="scored")[0]
