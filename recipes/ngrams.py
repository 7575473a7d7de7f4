"""Adds the wide channel to a fine-tuned model, and calibrates the combined scores.

python recipes/ngrams.py build/trained DATA build/joined
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

import emoglot
from emoglot.data.dataset import Dataset
from emoglot.data.recipe import Recipe
from emoglot.encoders.features import extract_features
from emoglot.evaluation.metrics import evaluate_languages
from emoglot.inference.head import HeadRuntime, logits_of, sigmoid
from emoglot.inference.ngrams import WideChannel, count_ngrams
from emoglot.inference.thresholds import apply_thresholds, choose_thresholds
from emoglot.labels import UNKNOWN
from emoglot.text.normalise import normalise_text
from emoglot.training.calibration import fit_scaling
from emoglot.training.ngrams import fit_wide, match_spread
from emoglot.training.parts import split_held_out
from emoglot.training.to_onnx import compile_head

RECIPE = Path(__file__).with_suffix(".toml")
# N-grams gain on labels and lose on denials and translations: those of languages that the encoder knows have a small
# weight. Those of languages which it hardly knows have a large one, if hardly any other language has them: Nigerian
# Pidgin shares its words with English, and Sundanese some with Indonesian. docs/trials.md has a table.
WEIGHT = 0.08
KNOWN, LITTLE_KNOWN = 0.3, 12.0  # factors of the weight
EXCLUSIVENESS = 4  # power of the share of an n-gram's texts that are in a little-known language
BUCKETS = 2**19  # twice as many as by default: BRIGHTER and the collection have sixty languages
LITTLE_KNOWN_LANGUAGES = (
    *("am", "arq", "ary", "ha", "ig", "om", "pcm", "rw", "so", "su", "sw", "ti", "tt", "vmw", "yo"),
    # Languages of Indonesia; those close to Malay are not among them, since Indonesian would lose its denials.
    *("bhp", "btk", "bug", "jv", "mad", "mak", "rej"),
)


def main(folder: Path, data: Path, out: Path) -> None:
    """Fit, scale, join, calibrate, measure and save."""
    model = emoglot.load(folder)
    state, recipe = model.state, Recipe.from_toml(RECIPE)
    config = state.config.override({"wide.enabled": True, "wide.weight": WEIGHT, "wide.buckets": BUCKETS})
    training, held_out = (read(recipe, purpose, data, state.outputs) for purpose in ("train", "validation"))
    training_texts = [normalise_text(text) for text in training.texts]
    channel = fit_wide(
        training_texts,
        training.targets,
        training.sources,
        config.wide,
        config.training.zero_weight,
    )
    texts = [normalise_text(text) for text in held_out.texts]
    features = extract_features(model.encoder, texts)
    network = HeadRuntime(state.graph)
    with_tokens = features.rows_with_tokens
    held_out, features = held_out.select(with_tokens), features.select(with_tokens)
    texts = [texts[row] for row in with_tokens]
    channel = match_spread(channel, texts, network.logits(features))
    channel = emphasise(channel, training_texts, training.languages, len(state.labels))
    joined = logits_of(network, channel, features, texts)
    line = fit_scaling(joined, held_out.targets)
    weights = state.weights | {
        "output.weight": state.weights["output.weight"] * line.slope[:, None],
        "output.bias": state.weights["output.bias"] * line.slope + line.shift,
    }
    scores = sigmoid(joined * line.slope + line.shift)[:, : len(state.labels)]
    measured, choosing = split_held_out(held_out, config.training)
    targets = held_out.with_labels(state.labels).targets
    thresholds = choose_thresholds(scores[choosing], targets[choosing])
    # A row may be annotated with sentiment only.
    measured = measured[(targets[measured] != UNKNOWN).any(axis=1)]
    found = evaluate_languages(
        targets[measured],
        apply_thresholds(scores[measured], thresholds),
        state.labels,
        tuple(held_out.languages[row] for row in measured),
    )
    print(f"macro-F1 {100 * found.overall.macro_f1:.1f} on {len(measured)} rows, {len(training)} rows of n-grams")
    joined_state = replace(
        state,
        config=config,
        weights=weights,
        graph=compile_head(config.head, weights),
        wide=channel.rescaled(line.slope, line.shift),
        thresholds=thresholds,
        metrics=found,
    )
    model.with_state(joined_state).save(out)


def emphasise(channel: WideChannel, texts: Sequence[str], languages: Sequence[str], labels: int) -> WideChannel:
    """Return a channel in which n-grams have the more weight, the more exclusively little-known languages have them.

    This applies to the first `labels` outputs, not to sentiment.
    """
    counts = count_ngrams(texts, channel.config)
    known = channel.ngrams.are_known(counts)
    buckets, size = counts.buckets[known], channel.config.buckets
    is_own = np.array([language.partition("-")[0] in LITTLE_KNOWN_LANGUAGES for language in languages])
    own = np.bincount(buckets, is_own[counts.rows[known]], size)
    share = own / np.maximum(1, np.bincount(buckets, minlength=size))
    weights = channel.all_weights
    factor = KNOWN + (LITTLE_KNOWN - KNOWN) * share**EXCLUSIVENESS
    weights[:, :labels] *= factor.astype(np.float32)[:, None]
    return WideChannel.of(channel.config, channel.ngrams, weights, channel.bias)


def read(recipe: Recipe, purpose: str, data: Path, labels: tuple[str, ...]) -> Dataset:
    """Read the rows for a purpose that are annotated with any of the labels."""
    rows = recipe.read(purpose, data)
    assert rows is not None
    return rows.with_labels(labels).annotated()


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
