"""A running service with a tiny model, and that model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import emoglot
from tests.service import Running, running


@pytest.fixture(scope="session")
def service(model_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    limits = ["--max-texts", 50, "--max-characters", 5000, "--max-body", 40_000, "--max-seconds", 3]
    with running(tmp_path_factory.mktemp("service"), "--model", model_folder, *limits) as found:
        yield found


@pytest.fixture(scope="session")
def local(model_folder: Path) -> emoglot.Model:
    return emoglot.load(model_folder)
