"""Where encoders live on this machine: one folder each in the user's cache."""

from __future__ import annotations

import os
import re
from pathlib import Path

from emoglot.encoders.onnx import DESCRIPTION_FILE

CACHE_VARIABLE = "EMOGLOT_CACHE"


def cache_folder() -> Path:
    """Give the folder for everything that can be made again: $EMOGLOT_CACHE, else the platform's cache folder."""
    if given := os.environ.get(CACHE_VARIABLE):
        return Path(given)
    from platformdirs import user_cache_path

    return Path(user_cache_path("emoglot"))


def encoder_folder(name: str) -> Path:
    """Give the folder an encoder of this name is installed in, there or not."""
    return cache_folder() / "encoders" / re.sub(r"[^\w.-]+", "--", name)


def is_installed(name: str) -> bool:
    """Say whether an encoder of this name is complete on this machine."""
    return (encoder_folder(name) / DESCRIPTION_FILE).is_file()


def installed_folders() -> list[Path]:
    """List the folders of the encoders that are installed."""
    # A name that begins with a dot is one in the making, or left by a process that died.
    return sorted(path.parent for path in (cache_folder() / "encoders").glob(f"[!.]*/{DESCRIPTION_FILE}"))


def folder_size(folder: Path) -> int:
    """Add up the bytes of the files in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
