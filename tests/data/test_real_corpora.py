"""The readers on the real files, where they are at hand; their folder is EMOGLOT_DATA or ../shared/data."""

import os
from pathlib import Path

import pytest

from emoglot.data.corpora.goemotions import GOEMOTIONS_LABELS
from emoglot.data.dataset import concatenate
from emoglot.data.registry import read
from emoglot.labels import SEMEVAL_LABELS

ROOT = Path(os.environ.get("EMOGLOT_DATA", Path(__file__).parents[3] / "shared" / "data"))
EC_ROWS = {
    "Ar-train": 2278,
    "Ar-dev": 585,
    "En-train": 6838,
    "En-dev": 886,
    "Es-train": 3561,
    "Es-dev": 679,
}

pytestmark = pytest.mark.skipif(not ROOT.is_dir(), reason=f"the datasets may not be passed on and are not in {ROOT}")


@pytest.mark.parametrize(("part", "rows"), EC_ROWS.items())
def test_semeval(part, rows):
    dataset = read(ROOT / "semeval2018-ec" / f"2018-E-c-{part}.txt")
    assert len(dataset) == rows
    assert dataset.labels == SEMEVAL_LABELS
    assert set(dataset.languages) == {part[:2].lower()}


@pytest.mark.parametrize(("part", "rows"), [("train", 43410), ("dev", 5426)])
def test_goemotions(part, rows):
    dataset = read(ROOT / "goemotions" / f"{part}.tsv")
    assert len(dataset) == rows
    assert dataset.labels == tuple((ROOT / "goemotions" / "emotions.txt").read_text().split())
    assert dataset.labels == GOEMOTIONS_LABELS
    assert dataset.targets.any(axis=1).all()


@pytest.mark.parametrize(("part", "rows"), [("train", 65094), ("dev", 8505)])
def test_brighter(part, rows):
    files = sorted((ROOT / "brighter" / part).glob("*.csv"))
    whole = concatenate(read(path) for path in files)
    assert len(files) == 28
    assert len(whole) == rows
    assert len(set(whole.languages)) == 28
    assert set(whole.sources) == {f"brighter-{language}" for language in whole.languages}
    parallel = {path.name.partition(".")[0] for path in (ROOT / "parallel" / "train").glob("*.tsv.gz")}
    assert set(whole.languages) <= parallel | {"en", "pt-BR", "pt-MZ"}


def test_xed_projections():
    datasets = [read(path, skip_bad=True) for path in sorted((ROOT / "xed" / "Projections").glob("*.tsv"))]
    assert len(datasets) == 42
    assert sum(len(dataset) for dataset in datasets) == 175_904
    assert sum(len(dataset.bad_lines) for dataset in datasets) == 4150
    assert sum(bool(dataset.bad_lines) for dataset in datasets) == 20
    assert all(dataset.targets.any(axis=1).all() for dataset in datasets)
    assert not any("xml.gz\t" in text for dataset in datasets for text in dataset.texts)


@pytest.mark.parametrize(
    ("name", "rows", "bad", "positives"),
    [
        ("en-annotated.tsv", 17528, 0, 22422),
        ("fi-annotated.tsv", 14449, 0, 18878),
        ("neu_en.txt", 9674, 1, 0),
        ("neu_fi.txt", 10794, 0, 0),
    ],
)
def test_xed_by_hand(name, rows, bad, positives):
    dataset = read(ROOT / "xed" / "AnnotatedData" / name, skip_bad=True)
    assert (len(dataset), len(dataset.bad_lines), int(dataset.targets.sum())) == (rows, bad, positives)
