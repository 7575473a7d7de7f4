"""Files and folders: written whole or not at all, checked before they are read, hashed at any size."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tempfile
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TypeVar

_CHUNK_BYTES = 1 << 20

T = TypeVar("T")


@contextmanager
def draft(target: Path, *, is_folder: bool = False) -> Iterator[Path]:
    """Yield the path of a draft, which takes the target's place when the block succeeds and is removed when it fails.

    The draft of a file does not exist yet; that of a folder is an empty folder. Whoever reads the target meanwhile
    finds what was there before.
    """
    target = target.resolve() if is_folder else target
    target.parent.mkdir(parents=True, exist_ok=True)
    if is_folder:
        path = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    else:
        path = target.with_name(f"{target.name}.draft")  # always the same, so that a kill leaves no more than one
    try:
        yield path
        if is_folder:
            path.chmod(0o755)  # mkdtemp keeps others out; a shared folder wants them in
            _swap_folder(path, target)
        else:
            path.replace(target)
    finally:
        shutil.rmtree(path, ignore_errors=True) if is_folder else path.unlink(missing_ok=True)


def _swap_folder(path: Path, target: Path) -> None:
    """Put a folder in the place of another; if that fails, the other is put back, and never removed."""
    if not target.exists():
        path.rename(target)
        return
    aside = Path(tempfile.mkdtemp(prefix=f".{target.name}-old-", dir=target.parent))
    old = aside / "old"
    try:
        target.rename(old)
        path.rename(target)
    except BaseException:
        if old.exists():
            old.rename(target)
        aside.rmdir()
        raise
    shutil.rmtree(aside)


def folder_in_the_making(target: Path) -> AbstractContextManager[Path]:
    """Return the draft of a folder."""
    return draft(target, is_folder=True)


def made_in_scratch(make: Callable[[Path], T], owner: Callable[[T], object] = lambda made: made) -> T:
    """Return what `make` returns, given a temporary folder that is removed together with its owner."""
    scratch = Path(tempfile.mkdtemp(prefix="emoglot-"))
    try:
        made = make(scratch)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise
    weakref.finalize(owner(made), shutil.rmtree, scratch, ignore_errors=True)
    return made


def write_whole(path: Path, text: str) -> None:
    """Make a text file appear whole or not at all."""
    with draft(path) as made:
        made.write_text(text, encoding="utf-8")


def is_folder(name: str | os.PathLike[str]) -> bool:
    """Return whether there is a folder of this name; a name that no folder can have is none."""
    try:
        return Path(name).is_dir()
    except (OSError, ValueError):  # too long, or with a NUL
        return False


def check_regular(path: Path, folder: Path, most_bytes: int) -> int:
    """Return the size of a file in a folder from elsewhere.

    Raise ValueError for a file that is too large, a link that leads out of the folder, and a pipe or device.
    """
    if not path.resolve().is_relative_to(folder.resolve()):
        raise ValueError(f"{path} is a link that leads out of {folder}: put the file itself there")
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise ValueError(f"{path} must be a regular file, got a folder, pipe or device: remove it")
    if found.st_size > most_bytes:
        raise ValueError(f"{path} may have {most_bytes} bytes, got {found.st_size}: it is damaged or no file of ours")
    return found.st_size


def walk_files(folder: Path) -> Iterator[Path]:
    """Yield everything in a folder and the folders in it that is not itself a folder; links are not followed."""
    for place, folders, names in os.walk(folder):
        links = [name for name in folders if (Path(place) / name).is_symlink()]
        yield from (Path(place) / name for name in [*names, *links])


def copy_files(source: Path, target: Path) -> None:
    """Copy the files of a folder without their permissions, so that a copy of a read-only folder can be written."""
    for path in walk_files(source):
        copy = target / path.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file, which is never in memory as a whole."""
    digest = hashlib.sha256()
    with path.open("rb") as opened:
        while chunk := opened.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()
