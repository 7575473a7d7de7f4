"""XLM-R-base and a head on tweets: the authors' way, a transformers pipeline, ours; and the model in the package.

    python -m benchmarks.xlmr --data DIR [--texts 2000]

DIR holds `semeval2018-ec`. The weights are random, which have the speed of real ones; the vocabulary is learnt from the
tweets. All run on the same texts, one after another, with all cores. int8 scores are compared with those of float32.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

import emoglot
from emoglot.config import Config
from emoglot.data import concatenate, read
from emoglot.encoders.export import export_encoder
from emoglot.encoders.hub import HubEncoder
from emoglot.head import make_head
from emoglot.labels import SEMEVAL_LABELS
from emoglot.model import EmotionClassifier
from examples.tiny_xlmr import make_xlmr

BASE = {"vocabulary": 30_000, "hidden": 768, "layers": 12, "heads": 12}  # XLM-R-base, but for the vocabulary
PIPELINE_BATCH = 32
TRAINING_ROWS = 64
STATIC_DIM = 256


def read_tweets(data: Path, count: int) -> list[str]:
    tweets = concatenate(read(path) for path in sorted(data.glob("semeval2018-ec/*-dev.txt")))
    order = np.random.default_rng(0).permutation(len(tweets))[:count]
    return [tweets.texts[row] for row in order]


def authors_way(folder: Path) -> Callable[[list[str]], Any]:
    """One text per call through the feature-extraction pipeline, as float64, then the head."""
    from transformers import pipeline

    extract = pipeline("feature-extraction", model=str(folder), tokenizer=str(folder))
    head = make_head(Config().head, BASE["hidden"], len(SEMEVAL_LABELS)).double().eval()

    def run(texts: list[str]) -> None:
        with torch.inference_mode():
            for text in texts:
                features = torch.tensor(np.array(extract(text)[0], dtype=np.float64))[None]
                head(features, torch.tensor([features.shape[1]]))

    return run


def classification_pipeline(folder: Path) -> Callable[[list[str]], Any]:
    """A transformers pipeline with batches in file order."""
    from transformers import AutoTokenizer, TextClassificationPipeline, XLMRobertaForSequenceClassification

    model = XLMRobertaForSequenceClassification.from_pretrained(folder, num_labels=len(SEMEVAL_LABELS))
    tokenizer = AutoTokenizer.from_pretrained(folder)
    classify = TextClassificationPipeline(model=model, tokenizer=tokenizer)
    return lambda texts: classify(texts, batch_size=PIPELINE_BATCH, top_k=None, function_to_apply="sigmoid")


def static_baseline(texts: list[str]) -> Callable[[list[str]], Any]:
    """What model2vec does: the mean of a vector per piece, and a linear layer."""
    from emoglot.encoders.pieces import train_tokenizer

    tokenizer = train_tokenizer(texts, BASE["vocabulary"])
    random = np.random.default_rng(0)
    table = random.standard_normal((tokenizer.get_vocab_size(), STATIC_DIM), dtype=np.float32)
    weights = random.standard_normal((STATIC_DIM, len(SEMEVAL_LABELS)), dtype=np.float32)

    def run(given: list[str]) -> None:
        means = [table[encoding.ids].mean(axis=0) for encoding in tokenizer.encode_batch_fast(given)]
        1 / (1 + np.exp(-np.array(means) @ weights))

    return run


def ours(encoder: str | HubEncoder, texts: list[str], cache: Path) -> EmotionClassifier:
    """A head on the encoder, trained for a moment: it needs weights, not good ones."""
    config = Config().override({"training.max_epochs": 1, "head.layers": 2})
    targets = np.random.default_rng(0).integers(0, 2, (TRAINING_ROWS, len(SEMEVAL_LABELS)))
    return EmotionClassifier(encoder, config=config, cache=cache).fit(texts[:TRAINING_ROWS], targets)


def rate(run: Callable[[list[str]], Any], texts: list[str]) -> float:
    run(texts[:PIPELINE_BATCH])  # warm up
    began = time.perf_counter()
    run(texts)
    return len(texts) / (time.perf_counter() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--texts", type=int, default=2000)
    arguments = parser.parse_args()
    texts = read_tweets(arguments.data, arguments.texts)
    rates: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        folder = make_xlmr(root / "xlm-r", texts, **BASE)
        encoder = HubEncoder("xlm-r", source=str(folder))
        model = ours(encoder, texts, root / "cache")
        exported = {kind: export_encoder(encoder, root / kind, "xlm-r", kind) for kind in ("none", "int8")}
        scorers = {
            kind: EmotionClassifier(str(path))._from_state(model.state, emoglot.encoders.load_encoder(str(path)))
            for kind, path in exported.items()
        }
        print("| way | texts/s |\n|---|---|")
        for name, run in (
            ("the authors' way: one text a call, float64", authors_way(folder)),
            (f"transformers pipeline, batches of {PIPELINE_BATCH}", classification_pipeline(folder)),
            ("emoglot, torch, sorted by length", model.predict_proba),
            ("emoglot, onnxruntime float32", scorers["none"].predict_proba),
            ("emoglot, onnxruntime int8", scorers["int8"].predict_proba),
            ("static vectors and a linear layer", static_baseline(texts)),
            ("emoglot, the model in the package", emoglot.load().predict_proba),
        ):
            rates[name] = rate(run, texts)
            print(f"| {name} | {rates[name]:,.1f} |", flush=True)
        difference = np.abs(scorers["int8"].predict_proba(texts) - model.predict_proba(texts)).max()
    first, second, *_, int8, _, package = rates.values()
    print(f"\nint8: {int8 / first:.1f} times the authors' way, {int8 / second:.1f} times the pipeline")
    print(f"the model in the package: {package / second:.0f} times the pipeline")
    print(f"int8 against float32: scores differ by {difference:.4f} at most")


if __name__ == "__main__":
    main()
