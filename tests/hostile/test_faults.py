"""A disk that fails loses nothing: some of the faults that `make hostile` tries."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hostile.faults import attack, compile_shim


def test_a_disk_that_fails_loses_nothing(model_folder: Path, tmp_path: Path) -> None:
    shim = compile_shim(tmp_path)
    if shim is None:
        pytest.skip("needs Linux and a C compiler")
    tried = attack(shim, model_folder, tmp_path / "scratch")
    assert min(tried[kind] for kind in ("ENOSPC", "EIO", "short")) >= 10
