"""Tools to make hostile folders: altered on purpose, with hashes that fit."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from emoglot import load
from emoglot.errors import EmoglotError, EncoderError, ModelError

TEXT = "so happy today"


def edit_json(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change a JSON file."""
    values = json.loads(path.read_text(encoding="utf-8"))
    change(values)
    path.write_text(json.dumps(values), encoding="utf-8")


def put(folder: Path, name: str, data: bytes) -> None:
    """Replace a file of a model folder and record its hash."""
    (folder / name).write_bytes(data)
    record = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    edit_json(folder / "model.json", lambda values: values["files"].update({name: record}))


def put_in_encoder(folder: Path, name: str, data: bytes) -> None:
    """Replace a file of an encoder folder and record its hash."""
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_bytes(data)

    def record(values: dict[str, Any]) -> None:
        values["files"][name] = hashlib.sha256(data).hexdigest()
        values["sizes"][name] = len(data)

    edit_json(folder / "encoder.json", record)


def check_sentence(caught: EmoglotError, *parts: str) -> None:
    """Check that a message is one short sentence with what it must name."""
    message = str(caught)
    assert "\n" not in message
    assert len(message) < 900
    for part in parts:
        assert part in message


def check_refused(folder: Path, *parts: str) -> None:
    """Check that a model is refused while it is loaded."""
    with pytest.raises(ModelError) as caught:
        load(folder)
    check_sentence(caught.value, *parts)


def check_encoder_refused(call: Callable[[], object], *parts: str) -> None:
    """Check that an encoder is refused in one sentence."""
    with pytest.raises(EncoderError) as caught:
        call()
    check_sentence(caught.value, *parts)
