"""Folders are written whole or not at all, and what was there before is never lost."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from emoglot.files import folder_in_the_making, hash_file


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


def test_a_failure_while_swapping_puts_the_old_one_back(tmp_path, monkeypatch):
    write(tmp_path / "a", "old")
    rename = Path.rename

    def no_space(self, target):
        if self.name.startswith(".a-") and Path(target).name == "a":
            raise OSError(28, "No space left on device")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", no_space)
    with pytest.raises(OSError, match="No space left"):
        write(tmp_path / "a", "new")
    assert (tmp_path / "a" / "file").read_text(encoding="utf-8") == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("size", [0, 1, 1 << 20, (1 << 20) + 1, 3 << 20])
def test_a_file_is_hashed_whole(size, tmp_path):
    content = bytes(range(251)) * (size // 251 + 1)
    (tmp_path / "file").write_bytes(content[:size])
    assert hash_file(tmp_path / "file") == hashlib.sha256(content[:size]).hexdigest()
