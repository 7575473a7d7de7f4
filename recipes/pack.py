"""Puts a trained model into the package.

python recipes/pack.py build/model
"""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from pathlib import Path

import emoglot
from emoglot.encoders.registry import BUNDLED_MODEL, BUNDLED_NAME
from emoglot.encoders.store import folder_size
from emoglot.inference.description import CARD_FILE, LANGUAGES_FILE
from emoglot.inference.folder import write_page


def main(model_folder: Path) -> None:
    """Save the model under the name of the encoder in the package, with the measured quality of its languages."""
    model = emoglot.load(model_folder)
    shutil.rmtree(BUNDLED_MODEL, ignore_errors=True)
    model.with_state(replace(model.state, encoder_name=BUNDLED_NAME)).save(BUNDLED_MODEL)
    card = (BUNDLED_MODEL / CARD_FILE).read_text(encoding="utf-8")  # it contains the name of a local folder
    card = card.replace(f"# {BUNDLED_MODEL.name}\n", f"# {BUNDLED_NAME}\n", 1)
    write_page(BUNDLED_MODEL, CARD_FILE, card.replace(f'emoglot.load("{BUNDLED_MODEL.name}")', "emoglot.load()"))
    if (languages := model_folder / LANGUAGES_FILE).exists():
        write_page(BUNDLED_MODEL, LANGUAGES_FILE, languages.read_text(encoding="utf-8"))
    sys.stdout.write(f"{BUNDLED_MODEL}: {folder_size(BUNDLED_MODEL) / 1e6:.1f} MB\n")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
