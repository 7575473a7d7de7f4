"""Measures memory and time of `emoglot score` for one, two and four million rows.

    python -m benchmarks.files --out build/files [--millions 1 2 4]

The rows repeat a few hundred sentences, which are scored once per window, so that the result depends on the rows, not
on the model. Prints the peak of each run and an estimate for ten million rows.
"""

from __future__ import annotations

import argparse
import csv
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

DIFFERENT = 300
WORDS = [
    "happy",
    "sad",
    "angry",
    "afraid",
    "hopeful",
    "train",
    "rain",
    "dinner",
    "friend",
    "morning",
    "letter",
    "music",
    "river",
    "quiet",
    "strange",
    "bright",
]


def generate(path: Path, rows: int) -> None:
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(WORDS, rng.integers(4, 30))) for _ in range(DIFFERENT)]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "text"])
        for first in range(0, rows, 100_000):
            chosen = rng.integers(0, DIFFERENT, min(100_000, rows - first))
            writer.writerows((first + place, texts[index]) for place, index in enumerate(chosen))


def peak(command: list[str]) -> tuple[float, float]:
    """Run a command; return its peak resident memory in MB and its seconds."""
    began = time.perf_counter()
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0, "the command failed"
    return usage.ru_maxrss / 1024, time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--millions", type=float, nargs="+", default=[1, 2, 4])
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    print("| rows | to | resident, peak | seconds |\n|---|---|---|---|")
    for suffix in ("csv", "parquet"):
        peaks = []
        for millions in arguments.millions:
            rows = round(millions * 1e6)
            source, target = arguments.out / f"{rows}.csv", arguments.out / f"{rows}-scored.{suffix}"
            if not source.exists():
                generate(source, rows)
            command = [sys.executable, "-m", "emoglot", "score", str(source), str(target), "--overwrite"]
            size, seconds = peak(command)
            peaks.append(size)
            print(f"| {rows:,} | {suffix} | {size:.0f} MB | {seconds:.0f} |", flush=True)
            target.unlink()
        slope, start = np.polyfit(arguments.millions, peaks, 1)
        print(
            f"\n{suffix}: {slope:+.1f} MB a million rows, so {start + 10 * slope:.0f} MB for ten million\n", flush=True
        )


if __name__ == "__main__":
    main()
