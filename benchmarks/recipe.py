"""Trains recipes/model.toml, for the benchmarks that do so several times with something changed."""

from __future__ import annotations

import argparse
from pathlib import Path

from emoglot.config import Config
from emoglot.data import Dataset, concatenate, read
from emoglot.model import EmotionClassifier
from emoglot.recipe import Recipe

RECIPE = Recipe.from_toml(Path(__file__).parent.parent / "recipes/model.toml")


def make_parser(description: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--encoder", required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--train", type=Path, action="append", default=[])
    parser.add_argument("--out", type=Path, required=True)
    return parser


def read_training(arguments: argparse.Namespace) -> Dataset:
    return concatenate([RECIPE.read("train", arguments.data), *map(read, arguments.train)])


def fit(
    training: Dataset, arguments: argparse.Namespace, name: str, seed: int = 0, encoder: str | None = None
) -> EmotionClassifier:
    """Train, going on from the checkpoint of this name if there is one."""
    config = Config.from_dict(RECIPE.settings).override({"training.seed": seed})
    return EmotionClassifier(encoder or arguments.encoder, config=config).fit_datasets(
        training,
        RECIPE.read("validation", arguments.data),
        on_epoch=lambda epoch: print(name, epoch, flush=True),
        checkpoint=arguments.out / f"{name}.checkpoint",
    )
