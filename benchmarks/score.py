"""Compares `emoglot score` from Parquet to Parquet with its parts, each measured separately.

    python -m benchmarks.score --data DIR [--rows 20000]

DIR contains `semeval2018-ec` and `brighter`, whose texts, without duplicates, are the rows. One process uses all cores.
The time to load the model is measured as well, and subtracted.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from emoglot.batch.columns import added_columns
from emoglot.batch.job import Tally
from emoglot.batch.score import score_file
from emoglot.batch.scoring import ModelSource, score_texts
from emoglot.batch.sink import make_sink
from emoglot.batch.source import open_source
from emoglot.batch.window import InputColumns
from emoglot.data.formats import PARQUET, Format
from emoglot.data.registry import read
from emoglot.data.streams import Reading
from emoglot.model import load
from emoglot.text.normalise import normalise_text

FORMAT = Format(PARQUET, None)
COLUMNS = InputColumns("text", "id")
REPEATS = 3
TOKENISED = 512  # texts per call of the tokenizer, about as in prediction


def timed(run: Callable[[], Any]) -> tuple[float, Any]:
    """Return the best time of several runs, and the result."""
    found = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        result = run()
        found.append(time.perf_counter() - began)
    return min(found), result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=20_000)
    arguments = parser.parse_args()
    paths = [*arguments.data.glob("semeval2018-ec/2018-E-c-*.txt"), *arguments.data.glob("brighter/*/*.csv")]
    texts = sorted({text for path in paths for text in read(path).texts})
    order = np.random.default_rng(0).permutation(len(texts))[: arguments.rows]
    classifier = load()
    sink = make_sink(FORMAT, added_columns(classifier, ""))
    with tempfile.TemporaryDirectory() as scratch:
        source, target = Path(scratch) / "in.parquet", Path(scratch) / "out.parquet"
        parquet.write_table(pa.table({"id": order, "text": [texts[row] for row in order]}), source)
        classifier.predict_proba([texts[row] for row in order[:1000]])  # warm up

        def windows() -> list[Any]:
            with open_source([str(source)], Reading(), COLUMNS) as opened:
                return list(opened.windows())

        seconds: dict[str, float] = {}
        seconds["read"], read_windows = timed(windows)
        given = [window.texts for window in read_windows]
        flat = [normalise_text(text) for window in given for text in window]
        chunks = [flat[start : start + TOKENISED] for start in range(0, len(flat), TOKENISED)]
        seconds["tokenise"], _ = timed(lambda: [classifier.encoder.count_tokens(chunk) for chunk in chunks])
        seconds["model"], scored = timed(lambda: [score_texts(classifier, window) for window in given])
        written = list(zip(read_windows, scored, strict=True))
        seconds["write"], _ = timed(lambda: [sink.encode(*one) for one in written])
        model = ModelSource(None, None, None, None)
        loading, _ = timed(model.load)

        def score_all() -> Tally:
            names = (str(source), str(target))
            return score_file(*names, FORMAT, COLUMNS, model, overwrite=True)

        whole, tally = timed(score_all)
        seconds["all of it"] = whole - loading
    assert tally.rows == len(order)
    print(f"| part of {len(order):,} rows | seconds | of the model's |\n|---|---|---|")
    for part, took in seconds.items():
        print(f"| {part} | {took:.2f} | {took / seconds['model']:.1%} |")
    print(f"\nratio {seconds['all of it'] / seconds['model']:.3f}")


if __name__ == "__main__":
    main()
