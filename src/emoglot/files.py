"""Writing a folder whole or not at all, and hashing files of any size."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_CHUNK_BYTES = 1 << 20


@contextmanager
def folder_in_the_making(target: Path) -> Iterator[Path]:
    """Give an empty folder that takes the target's place when the block succeeds and vanishes when it fails."""
    target = target.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        yield draft
        draft.chmod(0o755)  # mkdtemp keeps others out; a shared folder wants them in
        if target.exists():
            old = Path(tempfile.mkdtemp(prefix=f".{target.name}-old-", dir=target.parent))
            target.rename(old / "old")
            try:
                draft.rename(target)
            except OSError:
                (old / "old").rename(target)
                raise
            finally:
                shutil.rmtree(old)
        else:
            draft.rename(target)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def write_whole(path: Path, text: str) -> None:
    """Make a text file appear whole or not at all."""
    draft = path.with_name(f"{path.name}.draft")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file, which is never in memory as a whole."""
    digest = hashlib.sha256()
    with path.open("rb") as opened:
        while chunk := opened.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()
