"""Short trainings of equal length that answer one question each.

    python -m recipes.trials DATA E5 build/sentences.csv build/trials [NAME ...]

`layers-4`, `layers-6` and `layers-12` show what layers are worth. `without-1` to `without-4` leave out seven languages
of BRIGHTER and every fourth dataset of the collection, and measure them. `permissive` leaves out data whose terms do
not allow every use. Each has ROWS random rows of `teacher.toml` and of the sentences. Without a NAME, all are run. A
finished trial is not repeated, and an interrupted one continues.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.quality import Scores, measure_means, measure_own, measure_sentences, read_groups
from emoglot.config import Config
from emoglot.data.dataset import concatenate
from emoglot.data.recipe import Recipe
from emoglot.data.registry import read
from emoglot.encoders.shrink import shrink
from emoglot.model import Model, load
from emoglot.text.normalise import normalise_text
from emoglot.training.train import checkpoint_of, save_trained, train_model

RECIPE = Path(__file__).with_name("teacher.toml")
ROWS = 32_000  # 1,000 steps
PIECES = 100_000
LAYERS = {"layers-4": 4, "layers-12": 12}  # of other trials: six
FOLDS = 4
NAMES = (
    "layers-6",
    "layers-4",
    "layers-12",
    *(f"without-{fold}" for fold in range(1, FOLDS + 1)),
    "permissive",
)


def main(data: Path, e5: Path, sentences: Path, out: Path, *names: str) -> None:
    """Run trials and print their figures."""
    for name in names or NAMES:
        results = out / f"{name}.json"
        if not results.exists():
            found = dict(measure(train(name, data, e5, sentences, out), data, *left_out(name, data)))
            results.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print(name, results.read_text(encoding="utf-8"))


def left_out(name: str, data: Path) -> tuple[set[str], set[str]]:
    """Return the languages of BRIGHTER and the datasets of the collection that a trial is not trained on."""
    if not name.startswith("without-"):
        return set(), set()
    fold = int(name.removeprefix("without-")) - 1
    languages = sorted(read(path).languages[0] for path in (data / "brighter/dev").glob("*.csv"))
    names = (path.name.partition(".")[0] for path in (data / "labelled").glob("*.tsv.gz"))
    sets = sorted(name for name in names if not name.endswith("_pol"))
    return set(languages[fold::FOLDS]), set(sets[fold::FOLDS])


def train(name: str, data: Path, e5: Path, sentences: Path, out: Path) -> Model:
    """Train a model, unless an earlier run has."""
    folder, layers = out / name, LAYERS.get(name, 6)
    if folder.exists():
        return load(folder)
    recipe = Recipe.from_toml(RECIPE)
    encoder = out / f"encoder-{layers}"
    if not encoder.exists():
        labelled = recipe.read("train", data)
        assert labelled is not None
        shrink(e5, encoder, range(layers), PIECES, map(normalise_text, labelled.texts))
    kept = without(recipe.permissive() if name == "permissive" else recipe, *left_out(name, data)).read("train", data)
    assert kept is not None
    rows = concatenate([kept, read(sentences)])
    rows = rows.select(np.sort(np.random.default_rng(0).permutation(len(rows))[:ROWS]))
    config = Config.from_dict(recipe.settings).for_sources(rows.sources).override({"fine_tune.precision": "bfloat16"})
    print(f"{name}: {len(rows)} of {len(kept)} rows and the sentences")
    checkpoint = checkpoint_of(folder)
    save_trained(
        train_model(encoder, rows, recipe.read("validation", data), config, quantize="int8", checkpoint=checkpoint),
        folder,
        overwrite=False,
    )
    return load(folder)


def without(recipe: Recipe, languages: set[str], sets: set[str]) -> Recipe:
    """Return a recipe that does not train on some languages of BRIGHTER and some datasets of the collection."""
    files = tuple(f"{name}.tsv.gz" for name in sorted(sets))
    entries = tuple(
        replace(entry, without_languages=tuple(sorted(languages)))
        if entry.path.startswith("brighter/")
        else replace(entry, without_files=(*entry.without_files, *files))
        for entry in recipe.data["train"]
    )
    return replace(recipe, data={**recipe.data, "train": entries})


def measure(model: Model, data: Path, languages: set[str], sets: set[str]) -> Iterator[tuple[str, object]]:
    """Measure a model as benchmarks.quality does, and what it was not trained on."""
    found = Scores(model)
    tweets, brighter, collection, pooled = read_groups(found, data)
    yield from measure_own("E-c", tweets, pooled)
    new_languages = [group for group in brighter if group.language in languages]
    new_sets = [group for group in collection if group.name.partition("-")[0] in sets]
    # What was left out does not choose thresholds for any text either.
    chosen = [group for group in pooled if group not in new_languages and group not in new_sets]
    for title, groups in (("BRIGHTER", brighter), ("collection", collection)):
        yield from measure_means(title, groups, pooled)
    for title, groups in (("languages left out", new_languages), ("datasets left out", new_sets)):
        if groups:
            yield from measure_means(title, groups, chosen)
    yield from measure_sentences(found, "plain_sentences.tsv")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:5]), *sys.argv[5:])
