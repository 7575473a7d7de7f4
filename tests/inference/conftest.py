"""A model folder to be altered, and what it holds."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from emoglot.inference.folder import ModelState, read_model


@pytest.fixture
def folder(model_folder: Path, tmp_path: Path) -> Path:
    """A copy to be damaged."""
    return Path(shutil.copytree(model_folder, tmp_path / "model"))


@pytest.fixture(scope="session")
def state(model_folder: Path) -> ModelState:
    return read_model(model_folder)
