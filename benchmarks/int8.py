"""Measures the quality of int8: a small XLM-R trained on E-c, exported in float32 and in int8.

    python -m benchmarks.int8 --data DIR [--epochs 6]

DIR contains `semeval2018-ec`. Random weights lack the outliers of trained ones, which int8 may lose. Therefore the
whole network is first trained on E-c; then it is frozen and exported, and a head is trained on each export as usual.
Macro-F1 is measured on the dev rows that choose no threshold.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional
from transformers import AutoTokenizer, XLMRobertaForSequenceClassification

from emoglot.config import Config
from emoglot.data.dataset import Dataset, concatenate
from emoglot.data.registry import read
from emoglot.encoders.export import export_encoder
from emoglot.encoders.hub import HubEncoder
from emoglot.encoders.registry import load_encoder
from emoglot.evaluation.metrics import macro_f1
from emoglot.model import Model
from emoglot.text.normalise import normalise_text
from emoglot.training.parts import split_rows
from emoglot.training.train import train_model
from emoglot.training.trainer import pooled_batches
from examples.tiny_xlmr import make_xlmr

SHAPE = {"vocabulary": 8000, "hidden": 128, "layers": 4, "heads": 4}
BATCH = 32
LEARNING_RATE = 3e-4  # higher than in fine-tuning (2e-5), since the network is trained from scratch


def learn(folder: Path, data: Dataset, epochs: int) -> None:
    """Train the whole network on the labels and write it back without its classifier."""
    torch.manual_seed(0)
    texts = [normalise_text(text) for text in data.texts]
    tokenizer = AutoTokenizer.from_pretrained(folder)
    network = XLMRobertaForSequenceClassification.from_pretrained(folder, num_labels=len(data.labels))
    optimiser = torch.optim.AdamW(network.parameters(), lr=LEARNING_RATE, fused=True)
    lengths = np.array([len(ids) for ids in tokenizer(texts, truncation=True)["input_ids"]])
    network.train()
    for epoch in range(epochs):
        losses = []
        order = np.random.default_rng(epoch).permutation(len(texts))
        for rows in pooled_batches(order, lengths, BATCH):
            inputs = tokenizer([texts[row] for row in rows], padding=True, truncation=True, return_tensors="pt")
            targets = torch.from_numpy(data.targets[rows]).float()
            loss = functional.binary_cross_entropy_with_logits(network(**inputs).logits, targets)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            losses.append(float(loss.detach()))
        print(f"epoch {epoch + 1} of the network: loss {np.mean(losses):.3f}", flush=True)
    network.roberta.save_pretrained(folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--epochs", type=int, default=6)
    arguments = parser.parse_args()
    training, dev = (
        concatenate(read(path) for path in sorted(arguments.data.glob(f"semeval2018-ec/*-{part}.txt")))
        for part in ("train", "dev")
    )
    config = Config()
    measured = dev.select(split_rows(dev, config.training.thresholding_fraction, config.training)[0])
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        folder = make_xlmr(root / "xlm-r", [normalise_text(text) for text in training.texts], **SHAPE)
        learn(folder, training, arguments.epochs)
        encoder = HubEncoder("xlm-r", source=folder)
        exports = {
            kind: load_encoder(export_encoder(encoder, root / kind, "xlm-r", quantize))
            for kind, quantize in (("float32", "none"), ("int8", "int8"))
        }
        models, scores = {}, {}
        for kind, export in exports.items():
            models[kind] = train_model(export, training, dev, config, cache=root / "cache")
        print("| head trained on | texts read by | macro-F1 |\n|---|---|---|")
        for trained_on, read_by in (("float32", "float32"), ("float32", "int8"), ("int8", "int8")):
            model = Model(models[trained_on].state, load_encoder(exports[read_by]))
            scores[trained_on, read_by] = found = model.predict_proba(measured.texts)
            print(
                f"| {trained_on} | {read_by} | {100 * macro_f1(measured.targets, model.decide(found)):.2f} |",
                flush=True,
            )
    same_head = scores["float32", "float32"], scores["float32", "int8"]
    changed = np.not_equal(*map(models["float32"].decide, same_head)).mean()
    print(f"\nscores differ by {np.abs(np.subtract(*same_head)).max():.3f} at most; {changed:.2%} of decisions change")


if __name__ == "__main__":
    main()
