"""Files and folders: atomic writes, checks of untrusted files, hashes of files of any size."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tempfile
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

_CHUNK_BYTES = 1 << 20

T = TypeVar("T")


@contextmanager
def draft(target: Path) -> Iterator[Path]:
    """Yield the path of a file to write, which replaces the target if the block succeeds and is removed if it fails."""
    target.parent.mkdir(parents=True, exist_ok=True)
    path = target.with_name(f"{target.name}.draft")  # always the same name, so that a kill leaves at most one
    try:
        yield path
        path.replace(target)
    finally:
        path.unlink(missing_ok=True)


@contextmanager
def folder_in_the_making(target: Path) -> Iterator[Path]:
    """Yield an empty folder, which replaces the target if the block succeeds and is removed if it fails."""
    target = target.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        path = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    except OSError as error:  # with the name that the user knows
        raise OSError(error.errno, error.strerror, str(target)) from error
    try:
        yield path
        path.chmod(0o755)  # mkdtemp creates a folder that others cannot read
        _swap_folder(path, target)
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _swap_folder(path: Path, target: Path) -> None:
    """Replace a folder by another; if that fails, the old folder is put back and never removed."""
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


def made_in_scratch(make: Callable[[Path], T], owner: Callable[[T], object] = lambda made: made) -> T:
    """Return the result of `make` in a temporary folder, which is removed when the owner of the result is deleted."""
    scratch = Path(tempfile.mkdtemp(prefix="emoglot-"))
    try:
        made = make(scratch)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise
    weakref.finalize(owner(made), shutil.rmtree, scratch, ignore_errors=True)
    return made


def write_whole(path: Path, text: str) -> None:
    """Write a text file atomically."""
    with draft(path) as made:
        made.write_text(text, encoding="utf-8")


def is_folder(name: str | os.PathLike[str]) -> bool:
    """Return whether a folder exists; False for an invalid name."""
    try:
        return Path(name).is_dir()
    except (OSError, ValueError):  # too long, or with a NUL
        return False


def check_regular(path: Path, folder: Path, most_bytes: int) -> int:
    """Return the size of a file in an untrusted folder.

    Raise ValueError for a file that is too large, a link that points outside the folder, a pipe or a device.
    """
    if not path.resolve().is_relative_to(folder.resolve()):
        raise ValueError(f"{path} is a link that points outside of {folder}: replace it by the file itself")
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise ValueError(f"{path} must be a regular file, got a folder, pipe or device: remove it")
    if found.st_size > most_bytes:
        raise ValueError(
            f"{path} may have at most {most_bytes} bytes, got {found.st_size}: it is damaged or not a file of emoglot"
        )
    return found.st_size


def walk_files(folder: Path) -> Iterator[Path]:
    """Yield all files in a folder and its subfolders; links are not followed."""
    for place, folders, names in os.walk(folder):
        links = [name for name in folders if (Path(place) / name).is_symlink()]
        yield from (Path(place) / name for name in [*names, *links])


def copy_files(source: Path, target: Path) -> None:
    """Copy the files of a folder without their permissions, so that the copy of a read-only folder is writable."""
    for path in walk_files(source):
        copy = target / path.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file, which is read in chunks."""
    digest = hashlib.sha256()
    with path.open("rb") as opened:
        while chunk := opened.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()
