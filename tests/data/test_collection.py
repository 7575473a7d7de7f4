"""Files of a collection, and texts with a word for their sentiment."""

import gzip
from pathlib import Path

import pytest

from emoglot.data.registry import read
from emoglot.errors import DataError
from emoglot.labels import UNKNOWN

INDEX = "name\tkind\tannotated\nmine\tsingle\tjoy fear\nother\tmulti\tanger\n"


def write_collection(folder: Path, *rows: str, name: str = "mine.tsv.gz", index: str = INDEX) -> Path:
    content = "\n".join(["text\tlanguage\tlabels\tsplit", *rows]).encode()
    (folder / "INDEX.tsv").write_text(index, encoding="utf-8")
    path = folder / name
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


@pytest.mark.parametrize("name", ["mine.tsv.gz", "mine.tsv"])
def test_a_collection_says_which_labels_were_asked_for_and_gives_one_split(tmp_path, name):
    path = write_collection(
        tmp_path, "so glad\ten\tjoy\ttrain", "peur ou joie\tfr\tjoy|fear\tdev", "a table\ten\t\ttrain", name=name
    )
    training, dev = (read(path, format=f"collection-{split}") for split in ("train", "dev"))
    assert training.texts == ("so glad", "a table")
    assert training.labels == dev.labels == ("joy", "fear")
    assert training.targets.tolist() == [[1, 0], [0, 0]]
    assert dev.targets.tolist() == [[1, 1]]
    assert (dev.languages, dev.sources) == (("fr",), ("mine-fr",))
    assert training.sources == ("mine-en",) * 2


def test_a_collection_in_one_language_is_one_dataset(tmp_path):
    path = write_collection(tmp_path, "so glad\ten\tjoy\ttrain")
    assert read(path, format="collection-train").sources == ("mine",)
    assert len(read(path, format="collection-dev")) == 0


@pytest.mark.parametrize(
    ("row", "index", "message"),
    [
        (
            "x\ten\tanger\ttrain",
            INDEX,
            r"line 2: a label must be one of joy, fear, as listed in INDEX.tsv, got 'anger'",
        ),
        ("x\ten\tjoy", INDEX, "line 2"),
        ("x\ten\tjoy\ttarin", INDEX, "a split must be one of train, dev, test, got 'tarin'"),
        ("x\ten\tjoy\ttrain", "kind\tname\tannotated\nsingle\n", "must list mine"),
        ("x\ten\tjoy\ttrain", "name\tannotated\n", r"must list mine: add a line with its labels"),
        ("x\ten\tjoy\ttrain", "name\tlabels\n", r"needs the columns name and annotated, annotated is missing"),
    ],
)
def test_what_is_wrong_in_a_collection_is_told(tmp_path, row, index, message):
    with pytest.raises(DataError, match=message):
        read(write_collection(tmp_path, row, index=index), format="collection-train")


def test_a_collection_cut_short_or_with_another_header_is_told(tmp_path):
    path = write_collection(tmp_path, "so glad\ten\tjoy\ttrain")
    whole = path.read_bytes()
    path.write_bytes(whole[:-12])
    with pytest.raises(DataError, match=r"cannot be read: .* check that it is complete"):
        read(path, format="collection-train")
    path.write_bytes(gzip.compress(b"text\tlabels\nso glad\tjoy\n"))
    with pytest.raises(DataError, match="must be text language labels split, got"):
        read(path, format="collection-train")


def test_a_word_of_sentiment_says_two_labels_or_none(write):
    words = ("positive", "negative", "neutral", "😂", "")
    rows = "\n".join(["text\tlanguage\tlabel", *(f"text {word}\tde\t{word}" for word in words)])
    dataset = read(write("posts_de.tsv", rows), format="polarity")
    assert dataset.labels == ("positive", "negative")
    assert dataset.targets.tolist() == [[1, 0], [0, 1], [0, 0], [UNKNOWN] * 2, [UNKNOWN] * 2]
    assert set(dataset.languages) == {"de"}
    assert set(dataset.sources) == {"posts_de"}
    with pytest.raises(DataError, match="must be text language label, got"):
        read(write("posts_de.tsv", "text\tlabel\nfine\tpositive\n"), format="polarity")
