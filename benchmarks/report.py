"""Measures time and peak memory of `emoglot report` on generated files of increasing length.

    python -m benchmarks.report [--rows 500000 2000000] [--format parquet]

Each report is made in its own process, with --time, --group and texts. Rows are written in windows, like those of
`emoglot score`. Words follow Zipf's law over 200,000 words, so that most of them are rare, as in real text.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet

from emoglot.labels import SEMEVAL_LABELS

WINDOW = 8192
WORDS = 200_000
LONGEST = 24  # words of a text
CHILD = """
import json, resource, sys, time
from pathlib import Path
from emoglot.report.options import Options
from emoglot.report.write import write_report
began = time.perf_counter()
write_report(Path(sys.argv[1]), Path(sys.argv[2]), Options(time="created_at", group="source"))
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps([time.perf_counter() - began, peak]))
"""


def spell(number: int) -> str:
    letters = []
    while number:
        number, letter = divmod(number, 20)
        letters.append("abdefghiklmnoprstuvz"[letter])
    return "ka" + "".join(letters)


def window(rows: int, first: int, rng: np.random.Generator, words: np.ndarray) -> pa.Table:
    """Return rows with a text, its time and source, its labels and scores."""
    ranks = np.minimum(rng.zipf(1.3, size=(rows, LONGEST)), WORDS) - 1
    lengths = rng.integers(3, LONGEST, size=rows)
    scores = (rng.random((rows, len(SEMEVAL_LABELS))) ** 4).astype(np.float32)
    carried = scores > 0.5
    names = np.array(SEMEVAL_LABELS)
    start = datetime(2023, 1, 1)
    columns = {
        "text": [" ".join(words[line[:length]]) for line, length in zip(ranks, lengths, strict=True)],
        "created_at": [(start + timedelta(minutes=(first + row) % 900_000)).isoformat() for row in range(rows)],
        "source": [f"paper {number}" for number in np.minimum(rng.zipf(1.5, rows), 40)],
        "language": np.array(["en", "es", "sw"])[rng.integers(0, 3, rows)],
        "labels": [names[line].tolist() for line in carried],
    }
    return pa.table(columns | dict(zip(SEMEVAL_LABELS, scores.T, strict=True)))


def write(path: Path, rows: int) -> None:
    rng = np.random.default_rng(0)
    words = np.array([spell(number) for number in range(WORDS)])
    first = window(1, 0, rng, words)
    is_csv = path.suffix == ".csv"
    schema = first.schema.set(first.schema.get_field_index("labels"), pa.field("labels", pa.string()))
    writer = csv.CSVWriter(path, schema) if is_csv else parquet.ParquetWriter(path, first.schema, compression="zstd")
    with writer:
        for begin in range(0, rows, WINDOW):
            made = window(min(WINDOW, rows - begin), begin, rng, words)
            if is_csv:
                joined = pa.array([",".join(labels) for labels in made["labels"].to_pylist()])
                made = made.set_column(made.schema.get_field_index("labels"), "labels", joined)
            writer.write_table(made)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[500_000, 2_000_000])
    parser.add_argument("--format", choices=("parquet", "csv"), default="parquet")
    arguments = parser.parse_args()
    for rows in arguments.rows:
        with tempfile.TemporaryDirectory() as scratch:
            source, target = Path(scratch) / f"scored.{arguments.format}", Path(scratch) / "report.html"
            write(source, rows)
            command = [sys.executable, "-c", CHILD, str(source), str(target)]
            seconds, peak = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
            size = source.stat().st_size / 2**20
            print(f"{rows:>10,} rows, {size:,.0f} MB: {seconds:.1f} s, {peak:,.0f} MB at most")


if __name__ == "__main__":
    main()
