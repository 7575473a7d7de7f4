"""What the tests of files share: small windows, and a model."""

from __future__ import annotations

from pathlib import Path

import pytest

import emoglot
from emoglot.batch import window


@pytest.fixture(autouse=True)
def small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window, "WINDOW_ROWS", 10)


@pytest.fixture(scope="module")
def local(model_folder: Path) -> emoglot.Model:
    return emoglot.load(model_folder)
