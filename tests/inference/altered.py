"""What the tests of model folders share: texts to score, and ways to alter a folder."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from emoglot import load
from emoglot.errors import EmoglotError, ModelError

TEXTS = ["I am so happy", "Estoy furioso!!!", "", "أنا خائف 😱", "\ud800 x \x00", "no " * 700]


FILES = {"model.json", "weights.safetensors", "head.onnx", "README.md"}


def edit(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the description of a folder."""
    path = folder / "model.json"
    description = json.loads(path.read_text(encoding="utf-8"))
    change(description)
    path.write_text(json.dumps(description), encoding="utf-8")


def rehash(folder: Path, name: str) -> None:
    """Record what a file holds now, as somebody would who alters it on purpose."""
    data = (folder / name).read_bytes()
    recorded = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    edit(folder, lambda description: description["files"].update({name: recorded}))


def check_refused(folder: Path, message: str, kind: type[EmoglotError] = ModelError) -> None:
    with pytest.raises(kind) as caught:
        load(folder)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600


def content_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
