"""Recipes: which files and rows they take, and what they refuse."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from emoglot.config import Config
from emoglot.data.dataset import Dataset
from emoglot.data.recipe import Recipe
from emoglot.data.registry import read
from emoglot.errors import DataError, UsageError
from emoglot.training.project import write_csv
from tests.conftest import make_dataset


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    data = make_dataset(4)
    for number in range(4):
        write_csv(data.select(range(16 * number, 16 * number + 16)), folder / "ours" / f"part{number}.csv")
    return folder


def recipe(tmp_path: Path, *lines: str) -> Recipe:
    path = tmp_path / "recipe.toml"
    path.write_text("\n".join(lines), encoding="utf-8")
    return Recipe.from_toml(path)


def take(tmp_path: Path, root: Path, *lines: str) -> Dataset:
    data = recipe(tmp_path, "[[data.train]]", 'path = "ours/*.csv"', *lines).read("train", root)
    assert data is not None
    return data


def test_settings_alone_are_a_recipe(tmp_path, root):
    plain = recipe(tmp_path, "[head]", "hidden = 4")
    assert Config.from_dict(plain.settings).head.hidden == 4
    assert plain.read("train", root) is None
    assert plain.files("train", root) == []


def test_settings_and_data_are_told_apart(tmp_path):
    both = recipe(tmp_path, "task = 'single-label'", "[[data.train]]", "path = 'x'", "[head]", "hidden = 4")
    assert dict(both.settings) == {"task": "single-label", "head": {"hidden": 4}}
    assert [entry.path for entry in both.data["train"]] == ["x"]


def test_a_pattern_takes_its_files_in_the_order_of_their_names(tmp_path, root):
    assert take(tmp_path, root).texts == make_dataset(4).texts
    files = recipe(tmp_path, "[[data.parallel]]", 'path = "*/part[13].csv"').files("parallel", root)
    assert files == [root / "ours" / "part1.csv", root / "ours" / "part3.csv"]


def test_entries_add_up_each_for_its_purpose(tmp_path, root):
    lines = [
        f'[[data.{name}]]\npath = "ours/part{part}.csv"'
        for name, part in (("train", 0), ("validation", 1), ("train", 2))
    ]
    listed = recipe(tmp_path, *lines)
    first, third = (read(root / "ours" / f"part{part}.csv") for part in (0, 2))
    assert listed.read("train", root).texts == first.texts + third.texts
    assert len(listed.read("validation", root)) == 16


def test_a_sample_has_as_many_rows_as_asked_for_and_is_always_the_same(tmp_path, root):
    sample = take(tmp_path, root, "rows = 10")
    assert len(sample) == 10
    assert take(tmp_path, root, "rows = 10").texts == sample.texts
    assert set(sample.texts) < set(make_dataset(4).texts)
    assert len(take(tmp_path, root, "rows = 1000")) == 64


def test_a_sample_of_each_dataset_and_language_is_no_larger_than_asked_for(tmp_path, root):
    whole, sample = take(tmp_path, root), take(tmp_path, root, "rows_each = 5")
    groups = Counter(zip(whole.sources, whole.languages, strict=True))
    assert len(groups) > 1
    assert Counter(zip(sample.sources, sample.languages, strict=True)) == {
        group: min(count, 5) for group, count in groups.items()
    }
    assert set(sample.texts) <= set(whole.texts)
    assert take(tmp_path, root, "rows_each = 5").texts == sample.texts
    assert take(tmp_path, root, "rows_each = 1000").texts == whole.texts


def test_languages_and_files_are_left_out(tmp_path, root):
    assert set(take(tmp_path, root, 'without_languages = ["ar", "es"]').languages) == {"en"}
    kept = take(tmp_path, root, 'without_files = ["part0.csv", "part2.csv"]')
    assert set(kept.sources) == {"part1", "part3"}


def test_no_file_found_is_told_with_the_way_out(tmp_path, root):
    with pytest.raises(DataError, match=r"there is no file ours/\*\.tsv in .*--root"):
        recipe(tmp_path, "[[data.train]]", 'path = "ours/*.tsv"').read("train", root)
    with pytest.raises(DataError, match="there is no file"):
        take(tmp_path, root, 'without_files = ["part0.csv", "part1.csv", "part2.csv", "part3.csv"]')


@pytest.mark.parametrize(
    "lines",
    [
        "[[data.train]]\nrows = 3",
        "[[data.train]]\npath = 3",
        "[[data.train]]\npath = 'x'\ncolour = 'red'",
        "[[data.train]]\npath = 'x'\nrows = 'many'",
        "[[data.train]]\npath = 'x'\nrows = true",
        "[[data.train]]\npath = 'x'\nwithout_languages = 'de'",
        "[data]\ntrain = ['x']",
        "[data]\ntrain = [3]",
    ],
)
def test_an_invalid_entry_is_refused(tmp_path, lines):
    with pytest.raises(UsageError, match=r"an entry of \[\[data.train\]\] is invalid: "):
        recipe(tmp_path, lines)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("path = 'x'\nrows = 0", "at least 1"),
        ("path = 'x'\nrepeats = -1", "at least 1"),
        ("path = ''", "inside the data folder"),
        ("path = '/etc/x'", "inside the data folder"),
    ],
)
def test_an_entry_out_of_range_is_refused(tmp_path, lines, message):
    with pytest.raises(UsageError, match=message):
        recipe(tmp_path, f"[[data.train]]\n{lines}")


def test_data_for_nothing_is_refused(tmp_path):
    with pytest.raises(UsageError, match="got validaton"):
        recipe(tmp_path, "[[data.validaton]]\npath = 'x'")


@pytest.mark.parametrize("lines", ["data = 3", "[data]\ntrain = 'x'", "[data.train]\npath = 'x'"])
def test_data_that_is_no_list_of_tables_is_refused(tmp_path, lines):
    with pytest.raises(UsageError, match=r"such as \[\[data\.train\]\]"):
        recipe(tmp_path, lines)


def test_rows_can_be_there_several_times(tmp_path, root):
    assert take(tmp_path, root, "repeats = 3").texts == 3 * make_dataset(4).texts


def test_texts_of_other_files_are_left_out(tmp_path, root):
    kept = take(tmp_path, root, 'without_texts_of = "ours/part[01].csv"')
    assert set(kept.sources) == {"part2", "part3"}
    with pytest.raises(DataError, match=r"there is no file none/\*"):
        take(tmp_path, root, 'without_texts_of = "none/*"')


def test_every_recipe_of_the_repository_can_be_read():
    for path in (Path(__file__).parents[2] / "recipes").glob("*.toml"):
        assert Recipe.from_toml(path).data


def test_files_are_chosen_by_name(tmp_path, root):
    assert len(take(tmp_path, root, 'only_files = ["part1*", "part3.csv"]')) == 32
    assert len(take(tmp_path, root, 'only_files = ["part*"]', 'without_files = ["part[12]*"]')) == 32


def test_a_permissive_recipe_learns_from_what_is_marked_and_measures_as_before(tmp_path, root):
    lines = [
        "[[data.train]]",
        'path = "ours/part0.csv"',
        "permissive = true",
        "[[data.train]]",
        'path = "ours/part1.csv"',
        "[[data.validation]]",
        'path = "ours/part2.csv"',
    ]
    whole, free = recipe(tmp_path, *lines), recipe(tmp_path, *lines).permissive()
    assert (len(whole.read("train", root)), len(free.read("train", root))) == (32, 16)
    assert free.read("validation", root).texts == whole.read("validation", root).texts
