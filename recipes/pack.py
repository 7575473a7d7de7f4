"""Puts a trained model into the package.

python recipes/pack.py build/model
"""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from pathlib import Path

import emoglot
from emoglot.encoders import EMBEDDED_MODEL, EMBEDDED_NAME
from emoglot.encoders.store import folder_size
from emoglot.persist import CARD_FILE, LANGUAGES_FILE


def main(model_folder: Path) -> None:
    """Save the model under the name of the encoder in the package, with what was measured of its languages."""
    model = emoglot.load(model_folder)
    shutil.rmtree(EMBEDDED_MODEL, ignore_errors=True)
    model.with_state(replace(model.state, encoder_name=EMBEDDED_NAME)).save(EMBEDDED_MODEL)
    card = EMBEDDED_MODEL / CARD_FILE  # which names a folder that nobody else has
    text = card.read_text(encoding="utf-8").replace(f"# {EMBEDDED_MODEL.name}\n", f"# {EMBEDDED_NAME}\n", 1)
    card.write_text(text.replace(f'emoglot.load("{EMBEDDED_MODEL.name}")', "emoglot.load()"), encoding="utf-8")
    if (model_folder / LANGUAGES_FILE).exists():
        shutil.copy(model_folder / LANGUAGES_FILE, EMBEDDED_MODEL)
    sys.stdout.write(f"{EMBEDDED_MODEL}: {folder_size(EMBEDDED_MODEL) / 1e6:.1f} MB\n")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
