"""Compares XLM-R-base on tweets in the authors' code, a transformers pipeline and emoglot; and the bundled model.

    python -m benchmarks.xlmr --data DIR [--texts 2000]

DIR contains `semeval2018-ec`. The weights are random, which are as fast as trained ones; the vocabulary is trained on
the tweets. Each method runs in its own process with all cores, one after another, on the same texts. A cold start is
the time from the start of the process to the first answer. int8 scores are compared with those of float32.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

BASE = {"vocabulary": 30_000, "hidden": 768, "layers": 12, "heads": 12}  # XLM-R-base, except for the vocabulary
PIPELINE_BATCH = 32
TRAINING_ROWS = 64
STATIC_DIM = 256
XLMR, TEXTS, HEAD, TABLE = "xlm-r", "texts.json", "head", "static.npz"  # in the scratch folder

Run = Callable[[list[str]], Any]


@dataclass(frozen=True)
class Figures:
    """The results of one method."""

    rate: float  # texts per second
    cold_ms: float
    resident: float  # MB, peak
    model: float  # MB on disk


def authors_way(root: Path) -> Run:
    """Return a function that calls the feature-extraction pipeline with one text, as float64, then the head."""
    import torch
    from transformers import pipeline

    from emoglot.config import Config
    from emoglot.labels import SEMEVAL_LABELS
    from emoglot.training.head import make_head

    extract = pipeline("feature-extraction", model=str(root / XLMR), tokenizer=str(root / XLMR))
    head = make_head(Config().head, BASE["hidden"], len(SEMEVAL_LABELS)).double().eval()

    def run(texts: list[str]) -> None:
        with torch.inference_mode():
            for text in texts:
                features = torch.tensor(np.array(extract(text)[0], dtype=np.float64))[None]
                head(features, torch.tensor([features.shape[1]]))

    return run


def classification_pipeline(root: Path) -> Run:
    """Return a transformers pipeline with batches in file order."""
    from transformers import AutoTokenizer, TextClassificationPipeline, XLMRobertaForSequenceClassification

    from emoglot.labels import SEMEVAL_LABELS

    model = XLMRobertaForSequenceClassification.from_pretrained(root / XLMR, num_labels=len(SEMEVAL_LABELS))
    classify = TextClassificationPipeline(model=model, tokenizer=AutoTokenizer.from_pretrained(root / XLMR))
    return lambda texts: classify(texts, batch_size=PIPELINE_BATCH, top_k=None, function_to_apply="sigmoid")


def static_vectors(root: Path) -> Run:
    """Return the method of model2vec: the mean of a vector per piece, and a linear layer."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(root / XLMR / "tokenizer.json"))
    arrays = np.load(root / TABLE)
    table, weights = arrays["table"], arrays["weights"]

    def run(texts: list[str]) -> None:
        means = [table[encoding.ids].mean(axis=0) for encoding in tokenizer.encode_batch_fast(texts)]
        1 / (1 + np.exp(-np.array(means) @ weights))

    return run


def on_encoder(folder: str) -> Callable[[Path], Run]:
    """Return emoglot with an encoder in a folder."""

    def prepare(root: Path) -> Run:
        from emoglot.model import load

        return load(root / HEAD, encoder=root / folder).predict_proba

    return prepare


def in_the_package(root: Path) -> Run:
    """Return emoglot with the bundled model."""
    import emoglot

    return emoglot.load().predict_proba


# Methods, how they are prepared, and the files that they need.
WAYS: dict[str, tuple[Callable[[Path], Run], str]] = {
    "the authors' way: one text a call, float64": (authors_way, XLMR),
    f"transformers pipeline, batches of {PIPELINE_BATCH}": (classification_pipeline, XLMR),
    "emoglot, torch, sorted by length": (on_encoder(XLMR), XLMR),
    "emoglot, onnxruntime float32": (on_encoder("none"), "none"),
    "emoglot, onnxruntime int8": (on_encoder("int8"), "int8"),
    "static vectors and a linear layer": (static_vectors, TABLE),
    "emoglot, the model in the package": (in_the_package, ""),
}
AUTHORS, PIPELINE, _, FLOAT, INT8, _, PACKAGE = WAYS


def measure(way: str, root: Path) -> None:
    """Measure a method in its own process: the first answer, then all texts."""
    texts = json.loads((root / TEXTS).read_text())
    run = WAYS[way][0](root)
    run(texts[:1])
    print("first", flush=True)
    run(texts[:PIPELINE_BATCH])  # warm up
    began = time.perf_counter()
    run(texts)
    print(len(texts) / (time.perf_counter() - began))


def figures(way: str, root: Path) -> Figures:
    from emoglot.encoders.registry import BUNDLED_MODEL
    from emoglot.encoders.store import folder_size

    # --data is required, but a method reads the scratch folder only.
    command = [sys.executable, "-m", "benchmarks.xlmr", "--data", str(root), "--way", way, "--root", str(root)]
    began = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "first\n", f"{way} failed"
        cold = time.perf_counter() - began
        rate = float(process.stdout.readline())
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    needed = root / WAYS[way][1] if WAYS[way][1] else BUNDLED_MODEL
    size = folder_size(needed) if needed.is_dir() else needed.stat().st_size
    return Figures(rate, 1000 * cold, usage.ru_maxrss / 1024, size / 1e6)


def prepare(root: Path, data: Path, count: int) -> None:
    """Write the texts, the network of random weights, its exports, and a head."""
    from emoglot.config import Config
    from emoglot.data.dataset import concatenate
    from emoglot.data.registry import read
    from emoglot.encoders.export import export_encoder
    from emoglot.encoders.hub import HubEncoder
    from emoglot.labels import SEMEVAL_LABELS
    from examples.tiny_xlmr import make_xlmr

    tweets = concatenate(read(path) for path in sorted(data.glob("semeval2018-ec/*-dev.txt")))
    texts = [tweets.texts[row] for row in np.random.default_rng(0).permutation(len(tweets))[:count]]
    (root / TEXTS).write_text(json.dumps(texts))
    encoder = HubEncoder("xlm-r", source=make_xlmr(root / XLMR, texts, **BASE))
    for kind in ("none", "int8"):
        export_encoder(encoder, root / kind, "xlm-r", kind)
    # Trained for a few steps; speed does not depend on the quality of weights.
    config = Config().override({"training.max_epochs": 1, "head.layers": 2})
    from emoglot.classifier import EmotionClassifier

    random = np.random.default_rng(0)
    targets = random.integers(0, 2, (TRAINING_ROWS, len(SEMEVAL_LABELS)))
    classifier = EmotionClassifier(encoder, config=config, cache=root / "cache")
    classifier.fit(texts[:TRAINING_ROWS], targets).model_.save(root / HEAD)
    table = random.standard_normal((BASE["vocabulary"], STATIC_DIM), dtype=np.float32)
    np.savez(root / TABLE, table=table, weights=table[: len(SEMEVAL_LABELS)].T)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--texts", type=int, default=2000)
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    parser.add_argument("--root", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.way:
        measure(arguments.way, arguments.root)
        return
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        # In its own process, since a child inherits the peak memory of its parent.
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            pool.submit(prepare, root, arguments.data, arguments.texts).result()
        found = {}
        print("| way | texts/s | cold start, ms | resident, MB | model, MB |\n|---|---|---|---|---|")
        for way in WAYS:
            found[way] = one = figures(way, root)
            print(
                f"| {way} | {one.rate:,.1f} | {one.cold_ms:,.0f} | {one.resident:,.0f} | {one.model:,.0f} |", flush=True
            )
        texts = json.loads((root / TEXTS).read_text())
        scores = [WAYS[way][0](root)(texts) for way in (INT8, FLOAT)]
    int8, authors, pipeline, package = (found[way].rate for way in (INT8, AUTHORS, PIPELINE, PACKAGE))
    print(f"\nint8: {int8 / authors:.1f} times the authors' way, {int8 / pipeline:.1f} times the pipeline")
    print(f"the model in the package: {package / pipeline:.0f} times the pipeline")
    print(f"int8 against float32: scores differ by {np.abs(scores[0] - scores[1]).max():.4f} at most")


if __name__ == "__main__":
    main()
