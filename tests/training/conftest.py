"""The encoder that tests of fine-tuning train."""

from __future__ import annotations

from pathlib import Path

import pytest

from emoglot.encoders.hub import HubEncoder
from emoglot.encoders.registry import load_trainable


@pytest.fixture(scope="module")
def encoder(xlmr_folder: Path) -> HubEncoder:
    return load_trainable(xlmr_folder)
