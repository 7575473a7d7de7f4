"""How often labels flip when a text changes in a way that should not matter.

    python -m benchmarks.stability [--model FOLDER]

The texts are 40 groups of six translations, written for this benchmark. A flip is a label that is predicted for one
text and not for the other, counted per label (of eleven) and per text (any label).
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np

import emoglot

TEXTS = Path(__file__).with_name("stability.tsv")
PICTURES = "❤☺☹☀✨☝✌"

CHANGES: dict[str, Callable[[str], str]] = {
    "upper case": str.upper,
    "lower case": str.lower,
    "a space more between words": lambda text: text.replace(" ", "  "),
    "spaces around": lambda text: f"  {text} ",
    "a mention before": lambda text: f"@maria_87 {text}",
    "a mention after": lambda text: f"{text} @maria_87",
    "an emoji variation selector": lambda text: "".join(f"{sign}\ufe0f" if sign in PICTURES else sign for sign in text),
    "a full stop after": lambda text: text if text.endswith((".", "!", "?", "।")) else f"{text}.",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path)
    model = emoglot.load(parser.parse_args().model)
    with TEXTS.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    texts = [row["text"] for row in rows]
    labels = model.decide(model.predict_proba(texts))
    print(f"{len(texts)} texts, {labels.sum(axis=1).mean():.2f} labels a text\n")
    print("| change | texts changed | labels flipped | texts flipped |\n|---|---|---|---|")
    for name, change in CHANGES.items():
        changed = [change(text) for text in texts]
        differs = np.array([new != old for new, old in zip(changed, texts, strict=True)])
        report(name, labels[differs], model.decide(model.predict_proba(changed))[differs])
    english = {row["group"]: index for index, row in enumerate(rows) if row["language"] == "en"}
    for language in sorted({row["language"] for row in rows} - {"en"}):
        own = [index for index, row in enumerate(rows) if row["language"] == language]
        report(f"translation en → {language}", labels[[english[rows[index]["group"]] for index in own]], labels[own])


def report(name: str, before: np.ndarray, after: np.ndarray) -> None:
    flips = before != after
    print(f"| {name} | {len(flips)} | {100 * flips.mean():.1f} % | {100 * flips.any(axis=1).mean():.1f} % |")


if __name__ == "__main__":
    main()
