"""The sentences of recipes/ that the model in the package learns from."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from recipes import sentences


@pytest.mark.parametrize(
    "path", [sentences.CONTRASTS, sentences.ANNOTATIONS, sentences.POSTS], ids=lambda path: path.stem
)
def test_a_label_is_sure_or_open_and_known(path: Path):
    rows = sentences.read_table(path)
    assert rows
    for row in rows:
        sure, unsure = row["labels"].split(), row["unsure"].split()
        assert not set(sure) & set(unsure), row
        assert len({*sure, *unsure}) == len([*sure, *unsure]), row
        assert {*sure, *unsure} <= set(sentences.LABELS), row


@pytest.mark.parametrize("path", [sentences.ANNOTATIONS, sentences.POSTS], ids=lambda path: path.stem)
def test_annotations_have_hashes_and_no_texts(path: Path):
    names = [row["text"] for row in sentences.read_table(path)]
    assert names == sorted(set(names))
    assert all(len(name) == 12 and int(name, 16) >= 0 for name in names)


def test_every_annotation_is_trained_on_measured_or_chooses_thresholds():
    parts = [sentences.TRAINED, *sentences.PARTS.values()]
    names = [set(sentences.labels_of(sentences.ANNOTATIONS, part)) for part in parts]
    assert sum(map(len, names)) == len(set.union(*names)) == len(sentences.read_table(sentences.ANNOTATIONS))
    assert all(names)


def test_a_post_is_found_once_by_its_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    texts = {"de": "Endlich Feierabend!", "fr": "Encore en retard, ce bus."}
    social = tmp_path / "social"
    social.mkdir()
    lines = "".join(f"{text}\t{language}\t\n" for language, text in texts.items())
    for name in ("first", "second"):
        with gzip.open(social / f"{name}.tsv.gz", "wt", encoding="utf-8") as file:
            file.write("text\tlanguage\tlabel\n" + lines + "Wer hat angerufen?\tde\t\n")
    table = tmp_path / "posts.tsv"
    table.write_text(
        "text\tlabels\tunsure\n"
        f"{sentences.hash_of(texts['de'])}\tjoy positive\toptimism\n"
        f"{sentences.hash_of(texts['fr'])}\tanger negative\t\n",
        encoding="utf-8",
    )
    monkeypatch.setattr(sentences, "POSTS", table)
    found = [row for part in (sentences.TRAINED, *sentences.PARTS.values()) for row in sentences.posts(tmp_path, part)]
    assert sorted(found) == [
        ("de", texts["de"], sentences.targets_of(["joy", "positive"], ["optimism"])),
        ("fr", texts["fr"], sentences.targets_of(["anger", "negative"], [])),
    ]
