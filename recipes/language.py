"""Trains the language identifier of the package.

    python -m recipes.language DATA [--out FILE]

A text is the sum of the vectors of its n-grams, divided by the square root of their number. One linear layer maps it to
the logits of the languages in its script. Vectors are trained by gradient descent, then rounded to int8.
"""

from __future__ import annotations

import argparse
import time
import unicodedata
from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from emoglot.text.identify import WEIGHTS_FILE, Identifier, bucket_of, save_identifier
from emoglot.text.letters import SCRIPTS, hash_ngrams, read_letters
from recipes.language_rows import UNSPACED, Texts, own_scripts, read_texts, to_posts, with_scripts

BUCKETS = 112_000
DIMENSIONS = 16  # with one byte each and a check byte, all n-grams take 1.9 MB
LEAST_ROWS, MOST_ROWS = 2500, 5000  # of a language in a script; fewer are repeated
# The languages of most posts, so that what may be one of several is taken for the likeliest; English is mixed into all
MORE_ROWS = {"en": 16000} | dict.fromkeys(("ar", "de", "es", "fr", "hi", "id", "pt", "ru"), 10000)
# How much more common a language is in posts than among the rows: without it, one English post in twenty is taken for
# Pidgin or romanised Hindi, one Arabic post in twenty for Algerian. Romanised Arabic is mixed with French: without it,
# "Super, merci beaucoup" is taken for Arabic.
PRIORS = {"Latn:en": 3.0, "Arab:ar": 4.0, "Latn:ar": 1 / 12, "Latn:ary": 1 / 12}
FEWEST_ROWS = 300  # with fewer, a language is left out
LEAST_COUNT = 3  # of an n-gram in a language
SHARE_OF_CROPS = 0.6
MOST_WORDS = 10
SHARE_WITHOUT_ACCENTS = 0.1  # common in texts written on phones
SHARE_OF_NONSENSE = 0.007  # texts whose letters are shuffled, for "und"
EPOCHS, BATCH, RATE = 3, 512, 0.01
HELD_OUT_POSTS = 100  # of each language, to fit the temperature


@dataclass(frozen=True)
class Examples:
    """The n-grams of all training texts, end to end."""

    keys: NDArray[np.uint32]
    firsts: NDArray[np.int64]  # (texts + 1,)
    classes: NDArray[np.int64]  # (texts,)


def choose_texts(texts: Texts, rng: np.random.Generator) -> dict[tuple[str, str], list[str]]:
    """Return the training texts by script and language, half posts and half sentences if there are enough."""
    by_pair: dict[tuple[str, str], tuple[list[str], list[str]]] = defaultdict(lambda: ([], []))
    every, scripts = with_scripts([*texts.sentences, *texts.posts])
    own = own_scripts(every, scripts)
    for row, ((text, code), script) in enumerate(zip(every, scripts, strict=True)):
        if (code, script) in own:
            by_pair[script, code][row >= len(texts.sentences)].append(text)
    chosen = {}
    for (script, code), kinds in sorted(by_pair.items()):
        most = MORE_ROWS.get(code, MOST_ROWS)
        shuffled = [[kind[row] for row in rng.permutation(len(kind)).tolist()] for kind in kinds]
        halves = [min(len(kind), max(most // 2, most - len(other))) for kind, other in (shuffled, shuffled[::-1])]
        rows = [text for kind, count in zip(shuffled, halves, strict=True) for text in kind[:count]]
        if len(rows) >= FEWEST_ROWS or script not in ("Latn", "Cyrl", "Arab", "Deva"):
            chosen[script, code] = rows * max(1, LEAST_ROWS // max(len(rows), 1))
    return chosen


def vary(text: str, script: str, rng: np.random.Generator) -> str:
    """Return a text or a few words of it, sometimes without accents."""
    if rng.random() < SHARE_OF_CROPS:
        parts = list(text) if script in UNSPACED else text.split()
        count = int(rng.integers(1, MOST_WORDS + 1)) * (3 if script in UNSPACED else 1)
        first = int(rng.integers(0, max(1, len(parts) - count + 1)))
        text = ("" if script in UNSPACED else " ").join(parts[first : first + count])
    if script == "Latn" and rng.random() < SHARE_WITHOUT_ACCENTS:
        text = "".join(c for c in unicodedata.normalize("NFD", text) if not unicodedata.combining(c))
    return text


def nonsense(text: str, rng: np.random.Generator) -> str:
    """Return a text with shuffled letters."""
    return "".join(np.array(list(text))[rng.permutation(len(text))].tolist())


def make_examples(
    chosen: dict[tuple[str, str], list[str]], classes: list[tuple[str, str]], rng: np.random.Generator
) -> Examples:
    """Hash the n-grams of varied texts, in the scripts that several languages share."""
    index = {pair: place for place, pair in enumerate(classes)}
    texts, owners = [], []
    for (script, code), rows in chosen.items():
        if (script, "und") in index:
            for text in rows:
                texts.append(vary(text, script, rng))
                owners.append(index[script, code])
                if rng.random() < SHARE_OF_NONSENSE:
                    texts.append(nonsense(texts[-1], rng))
                    owners.append(index[script, "und"])
    keys, counts = [], []
    spelt = spelt_scripts(classes)
    for first in range(0, len(texts), 2048):
        part = hash_texts(texts[first : first + 2048], spelt)
        keys.append(part[0])
        counts.append(part[1])
    firsts = np.concatenate([[0], np.cumsum(np.concatenate(counts))])
    return Examples(np.concatenate(keys), firsts, np.array(owners))


def spelt_scripts(classes: list[tuple[str, str]]) -> NDArray[np.bool_]:
    """Return which scripts have several classes."""
    count = defaultdict(int)
    for script, _ in classes:
        count[script] += 1
    return np.array([count[script] > 1 for script in SCRIPTS])


def hash_texts(texts: list[str], spelt: NDArray[np.bool_]) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Return the n-grams of texts, one text after the other, and their numbers."""
    hashes, owners = zip(*hash_ngrams(read_letters(texts, spelt)), strict=True)
    owner = np.concatenate(owners)
    keys = (np.concatenate(hashes) >> np.uint64(32)).astype(np.uint32)
    return keys[np.argsort(owner, kind="stable")], np.bincount(owner, minlength=len(texts))


def choose_ngrams(examples: Examples, classes: list[tuple[str, str]], buckets: int) -> NDArray[np.int64]:
    """Return the n-gram of each bucket that is most typical of a language, -1 where there is none.

    Its worth is Σ p ln(p / mean p) over the languages of its script, p its share in the n-grams of each.
    """
    found, shares = [], []
    for place in range(len(classes)):
        rows = np.flatnonzero(examples.classes == place)
        if len(rows):
            own = np.concatenate([examples.keys[examples.firsts[row] : examples.firsts[row + 1]] for row in rows])
            keys, counts = np.unique(own, return_counts=True)
            often = counts >= LEAST_COUNT
            found.append(keys[often])
            shares.append(counts[often] / len(own))
    keys, share = np.concatenate(found), np.concatenate(shares)
    order = np.argsort(keys, kind="stable")
    keys, share = keys[order], share[order]
    firsts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
    sums = np.add.reduceat(share, firsts)
    mean = np.repeat(sums, np.diff(np.append(firsts, len(keys)))) / len(classes)
    worth = np.add.reduceat(share * np.log(share / mean), firsts)
    order = np.argsort(worth, kind="stable")  # of those assigned to one bucket, the last stays
    best = keys[firsts][order]
    result = np.full(buckets, -1, dtype=np.int64)
    result[bucket_of(best, buckets)] = best
    return result


def known_ids(examples: Examples, ngrams: NDArray[np.int64]) -> Examples:
    """Replace n-grams by their buckets, and drop those that have none."""
    ids = bucket_of(examples.keys, len(ngrams))
    known = ngrams[ids] == examples.keys
    firsts = np.concatenate([[0], np.cumsum(known)])[examples.firsts]
    return Examples(ids[known].astype(np.uint32), firsts, examples.classes)


def train(examples: Examples, classes: list[tuple[str, str]]) -> tuple[Any, Any]:
    """Train the vectors of the n-grams and the linear layer."""
    torch.manual_seed(0)
    torch.set_num_threads(1)  # a fixed order of sums, so that the same texts give the same weights
    rng = np.random.default_rng(0)
    vectors = torch.nn.EmbeddingBag(BUCKETS, DIMENSIONS, mode="sum")
    torch.nn.init.uniform_(vectors.weight, -0.1, 0.1)
    layer = torch.nn.Linear(DIMENSIONS, len(classes))
    script_of = np.array([script for script, _ in classes])
    foreign = torch.tensor(np.where(script_of[:, None] == script_of[None], 0, -1e4), dtype=torch.float32)
    optimiser = torch.optim.Adam([*vectors.parameters(), *layer.parameters()], lr=RATE)
    usable = np.flatnonzero(np.diff(examples.firsts) > 0)
    steps = EPOCHS * (len(usable) // BATCH)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: 1 - step / (steps + 1))
    for epoch in range(EPOCHS):
        started, total = time.monotonic(), 0.0
        order = rng.permutation(usable)
        for first in range(0, len(order) - BATCH + 1, BATCH):
            rows = order[first : first + BATCH]
            target = torch.from_numpy(examples.classes[rows])
            logits = layer(bag(vectors, examples, rows)) + foreign[target]
            loss = torch.nn.functional.cross_entropy(logits, target)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
            total += loss.item()
        print(f"epoch {epoch}: {total / (len(order) // BATCH):.4f}, {time.monotonic() - started:.0f} s", flush=True)
    return vectors, layer


def bag(vectors: Any, examples: Examples, rows: NDArray[np.int64]) -> Any:
    """Return the vectors of texts: the sum of those of their n-grams, divided by the root of their number."""
    counts = examples.firsts[rows + 1] - examples.firsts[rows]
    offsets = np.concatenate([[0], np.cumsum(counts)[:-1]])
    places = np.arange(counts.sum()) - np.repeat(offsets - examples.firsts[rows], counts)
    ids = torch.from_numpy(examples.keys[places].astype(np.int64))
    summed = vectors(ids, torch.from_numpy(offsets))
    return summed / torch.from_numpy(np.sqrt(counts).astype(np.float32))[:, None]


def quantise(vectors: Any, layer: Any, ngrams: NDArray[np.int64], classes: list[tuple[str, str]]) -> Identifier:
    """Round the vectors to int8, with a scale per dimension that is merged into the layer."""
    table = vectors.weight.detach().numpy()
    table[ngrams < 0] = 0
    scale = np.quantile(np.abs(table), 0.9998, axis=0) / 127
    rounded = np.clip(np.rint(table / scale), -127, 127).astype(np.int8)
    weight = (layer.weight.detach().numpy() * scale).astype(np.float32)
    checks = np.where(ngrams < 0, 0, ngrams & 0xFF).astype(np.uint8)
    names = tuple(f"{script}:{code}" for script, code in classes)
    return Identifier(names, checks, rounded, weight, layer.bias.detach().numpy().astype(np.float32))


def fit_temperature(model: Identifier, posts: dict[tuple[str, str], list[str]]) -> float:
    """Return the temperature with which the confidence equals the share of correct posts."""
    listed = [(text, f"{script}:{code}") for (code, script), texts in posts.items() for text in texts]
    listed = [row for row in listed if row[1] in model.classes]
    logits = model.logits([text for text, _ in listed])
    target = np.array([model.classes.index(name) for _, name in listed])
    rows = np.flatnonzero(np.isfinite(logits[np.arange(len(target)), target]))

    def loss(temperature: float) -> float:
        scaled = logits[rows] / temperature
        total = np.logaddexp.reduce(scaled, axis=1)
        return float((total - scaled[np.arange(len(rows)), target[rows]]).mean())

    return float(min(np.arange(0.5, 4, 0.05), key=loss))


def cooled(model: Identifier, temperature: float) -> Identifier:
    """Return a model whose logits are divided by `temperature`."""
    return replace(model, weight=model.weight / np.float32(temperature), bias=model.bias / np.float32(temperature))


def with_priors(model: Identifier) -> Identifier:
    """Return a model with higher priors for common languages."""
    priors = np.array([PRIORS.get(name, 1.0) for name in model.classes])
    return replace(model, bias=(model.bias + np.log(priors)).astype(np.float32))


def main() -> None:
    """Train, round, calibrate, save."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, default=WEIGHTS_FILE)
    arguments = parser.parse_args()
    build(read_texts(arguments.data), arguments.out)


def build(texts: Texts, out: Path) -> None:
    """Make the file of weights from texts."""
    rng = np.random.default_rng(0)
    chosen = choose_texts(texts, rng)
    shared = {script for script, _ in chosen if sum(other == script for other, _ in chosen) > 1}
    classes = sorted([*chosen, *((script, "und") for script in shared)])
    examples = make_examples(chosen, classes, rng)
    print(f"{len(classes)} classes, {len(examples.classes)} texts, {len(examples.keys)} n-grams", flush=True)
    ngrams = choose_ngrams(examples, classes, BUCKETS)
    examples = known_ids(examples, ngrams)
    print(f"{len(examples.keys)} n-grams are known", flush=True)
    model = quantise(*train(examples, classes), ngrams, classes)
    temperature = fit_temperature(model, to_posts(texts.measured_posts, HELD_OUT_POSTS, seed=1))
    print(f"temperature {temperature:.2f}")
    save_identifier(with_priors(cooled(model, temperature)), out)


if __name__ == "__main__":
    main()
