"""Folders are written whole or not at all, and what was there before is never lost."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from emoglot.files import draft, folder_in_the_making, hash_file, write_whole


def write(target: Path, content: str) -> None:
    with folder_in_the_making(target) as draft:
        (draft / "file").write_text(content, encoding="utf-8")


def test_a_folder_appears_with_its_parents(tmp_path):
    write(tmp_path / "a" / "b", "new")
    assert (tmp_path / "a" / "b" / "file").read_text(encoding="utf-8") == "new"


def test_a_folder_is_replaced_and_nothing_is_left_beside_it(tmp_path):
    write(tmp_path / "a", "old")
    write(tmp_path / "a", "new")
    assert (tmp_path / "a" / "file").read_text(encoding="utf-8") == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_failure_while_writing_leaves_the_old_one(tmp_path):
    write(tmp_path / "a", "old")
    with pytest.raises(ZeroDivisionError), folder_in_the_making(tmp_path / "a") as draft:
        (draft / "file").write_text(str(1 / 0), encoding="utf-8")
    assert (tmp_path / "a" / "file").read_text(encoding="utf-8") == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("moved", [".a-", "a"])  # the new folder, or the old one
def test_a_failure_while_swapping_puts_the_old_one_back(moved, error, tmp_path, monkeypatch):
    write(tmp_path / "a", "old")
    rename = Path.rename

    def fail(self, target):
        if self.name.startswith(moved):
            raise error
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fail)
    with pytest.raises(type(error)):
        write(tmp_path / "a", "new")
    assert (tmp_path / "a" / "file").read_text(encoding="utf-8") == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("failures", [1, 2])
@pytest.mark.parametrize("error", [OSError(5, "Input/output error"), KeyboardInterrupt()], ids=repr)
def test_whatever_fails_while_swapping_the_old_one_is_kept(error, failures, tmp_path, monkeypatch):
    """Where it cannot be put back, either, it is beside its place."""
    write(tmp_path / "a", "old")
    rename = Path.rename
    left = failures

    def fail(self, target):
        nonlocal left
        if Path(target).name == "a" and left:
            left -= 1
            raise error
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fail)
    with pytest.raises(type(error)):
        write(tmp_path / "a", "new")
    (kept,) = (path for path in tmp_path.rglob("file"))
    assert kept.read_text(encoding="utf-8") == "old"
    assert (kept == tmp_path / "a" / "file") == (failures == 1)


@pytest.mark.parametrize("size", [0, 1, 1 << 20, (1 << 20) + 1, 3 << 20])
def test_a_file_is_hashed_whole(size, tmp_path):
    content = bytes(range(251)) * (size // 251 + 1)
    (tmp_path / "file").write_bytes(content[:size])
    assert hash_file(tmp_path / "file") == hashlib.sha256(content[:size]).hexdigest()


def test_a_file_appears_whole_with_its_parents(tmp_path):
    with draft(tmp_path / "a" / "file") as path:
        path.write_text("new", encoding="utf-8")
        assert not (tmp_path / "a" / "file").exists()
    assert (tmp_path / "a" / "file").read_text(encoding="utf-8") == "new"
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["file"]


def test_a_failure_while_writing_leaves_the_old_file(tmp_path):
    write_whole(tmp_path / "file", "old")
    with pytest.raises(ZeroDivisionError), draft(tmp_path / "file") as path:
        path.write_text(f"half{path.write_text('half', encoding='utf-8') / 0}", encoding="utf-8")
    assert (tmp_path / "file").read_text(encoding="utf-8") == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_draft_that_was_never_written(tmp_path):
    with pytest.raises(FileNotFoundError), draft(tmp_path / "file"):
        pass
    assert list(tmp_path.iterdir()) == []
