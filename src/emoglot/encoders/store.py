"""Where encoders are installed: one folder each in the user's cache."""

from __future__ import annotations

import os
import re
from pathlib import Path

from emoglot.encoders.description import DESCRIPTION_FILE

CACHE_VARIABLE = "EMOGLOT_CACHE"


def cache_folder() -> Path:
    """Return the cache folder: $EMOGLOT_CACHE, else that of the platform. Everything in it can be recreated."""
    if given := os.environ.get(CACHE_VARIABLE):
        return Path(given)
    from platformdirs import user_cache_path

    return Path(user_cache_path("emoglot"))


def encoder_folder(name: str) -> Path:
    """Return the folder in which an encoder of this name is or would be installed."""
    return cache_folder() / "encoders" / re.sub(r"[^\w.-]+", "--", name)


def is_installed(name: str) -> bool:
    """Return whether an encoder of this name is installed."""
    try:
        return (encoder_folder(name) / DESCRIPTION_FILE).is_file()
    except (OSError, ValueError):  # not a valid name of a folder
        return False


def installed_folders() -> list[Path]:
    """Return the folders of the installed encoders."""
    # A name that begins with a dot is a draft, possibly left by a process that died.
    return sorted(path.parent for path in (cache_folder() / "encoders").glob(f"[!.]*/{DESCRIPTION_FILE}"))


def folder_size(folder: Path) -> int:
    """Return the number of bytes of all files in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
