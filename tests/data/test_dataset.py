"""The dataset itself: what it refuses, how it is cut, joined, mapped and counted."""

import hashlib
import json

import numpy as np
import pytest

from emoglot.data.dataset import Dataset, concatenate, map_labels
from emoglot.data.lines import BadLine
from emoglot.errors import DataError
from emoglot.labels import SEMEVAL_LABELS, UNKNOWN


def make(rows, labels=("joy", "fear"), language="en", source="made", **more):
    texts = tuple(f"sentence {index}" for index in range(len(rows)))
    targets = np.array(rows, dtype=np.int8).reshape(len(rows), len(labels))
    return Dataset(texts, targets, tuple(labels), (language,) * len(rows), (source,) * len(rows), **more)


def test_repr_is_short_and_shows_no_text():
    assert repr(make([[1, 0]] * 1000)) == "Dataset(1000 rows, labels joy fear, languages en)"


def test_length_is_the_number_of_texts():
    assert len(make([[1, 0], [0, 1], [0, 0]])) == 3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"targets": np.zeros((1, 2), dtype=np.int8)}, r"shape \(texts, labels\) = \(2, 2\)"),
        ({"targets": np.zeros((2, 2), dtype=np.int64)}, "int8"),
        ({"targets": np.full((2, 2), 2, dtype=np.int8)}, "got 2"),
        ({"languages": ("en",)}, "languages must have one entry per text, got 1 for 2"),
        ({"sources": ("a", "b", "c")}, "sources must have one entry per text, got 3 for 2"),
        ({"labels": ("joy", "joy")}, "labels must be unique"),
        ({"labels": ("joy",)}, "targets must be int8"),
    ],
)
def test_fields_that_disagree_are_refused(changes, message):
    fields = {
        "texts": ("one", "two"),
        "targets": np.zeros((2, 2), dtype=np.int8),
        "labels": ("joy", "fear"),
        "languages": ("en", "en"),
        "sources": ("s", "s"),
    }
    with pytest.raises(DataError, match=message):
        Dataset(**(fields | changes))


def test_select_takes_rows_in_the_given_order():
    chosen = make([[1, 0], [0, 1], [1, 1]]).select([2, 0])
    assert chosen.texts == ("sentence 2", "sentence 0")
    assert chosen.targets.tolist() == [[1, 1], [1, 0]]
    assert len(make([[1, 0]]).select([])) == 0


def test_with_labels_reorders_extends_and_drops():
    changed = make([[1, 0], [0, UNKNOWN]]).with_labels(("trust", "joy"))
    assert changed.labels == ("trust", "joy")
    assert changed.targets.tolist() == [[UNKNOWN, 1], [UNKNOWN, 0]]


def test_annotated_drops_rows_of_which_nothing_is_known():
    dataset = make([[UNKNOWN, UNKNOWN], [0, UNKNOWN], [1, 1]])
    assert dataset.annotated().texts == ("sentence 1", "sentence 2")


def test_fingerprint_is_stable_and_notices_every_change():
    dataset = make([[1, 0], [0, 1]])
    assert dataset.fingerprint == make([[1, 0], [0, 1]], language="de").fingerprint
    others = [make([[1, 0], [0, 0]]), make([[1, 0], [0, 1]], labels=("joy", "trust")), dataset.select([1, 0])]
    assert len({dataset.fingerprint, *(other.fingerprint for other in others)}) == 4


def test_fingerprint_is_the_hash_of_sized_strings_and_target_bytes():
    sized = b"".join(bytes([len(part), *[0] * 7]) + part for part in (b"joy", b"fear", b"sentence 0"))
    assert make([[1, UNKNOWN]]).fingerprint == hashlib.sha256(sized + b"\x01\xff").hexdigest()


def test_fingerprint_does_not_confuse_where_a_text_ends():
    def two(first, second):
        return Dataset((first, second), np.zeros((2, 1), dtype=np.int8), ("joy",), ("en",) * 2, ("s",) * 2)

    assert two("ab", "c").fingerprint != two("a", "bc").fingerprint


def test_summary_counts_and_is_json():
    summary = make([[1, 0], [1, UNKNOWN]]).summary()
    assert summary["rows"] == 2
    assert summary["languages"] == {"en": 2}
    assert summary["positives"] == {"joy": 2, "fear": 0}
    assert summary["known"] == {"joy": 2, "fear": 1}
    assert json.loads(json.dumps(summary)) == summary


def test_concatenate_unites_labels_and_leaves_the_rest_unknown():
    first = make([[1, 0]], labels=("pride", "surprise"), language="fi", bad_lines=(BadLine("a.csv", 3, "torn"),))
    second = make([[1, 1]], labels=("anger", "relief"), language="so")
    both = concatenate([first, second])
    assert both.labels == ("anger", "surprise", "pride", "relief")
    assert both.targets.tolist() == [[UNKNOWN, 0, 1, UNKNOWN], [1, UNKNOWN, UNKNOWN, 1]]
    assert both.languages == ("fi", "so")
    assert both.bad_lines == (BadLine("a.csv", 3, "torn"),)


def test_concatenate_refuses_nothing():
    with pytest.raises(DataError, match="at least one dataset"):
        concatenate([])


def test_map_labels_takes_any_positive_then_any_unknown():
    dataset = make([[0, 1, 0], [0, 0, 1], [0, UNKNOWN, 0], [0, 0, 0]], labels=("joy", "glee", "pride"))
    mapped = map_labels(dataset, {"glee": "joy"})
    assert mapped.labels == SEMEVAL_LABELS
    assert mapped.targets[:, SEMEVAL_LABELS.index("joy")].tolist() == [1, 0, UNKNOWN, 0]
    assert (mapped.targets[:, SEMEVAL_LABELS.index("trust")] == UNKNOWN).all()
