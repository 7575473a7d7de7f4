"""Runs commands and checks what they print, where they print it, and their exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from emoglot.data.dataset import Dataset
from emoglot.labels import names_where

USAGE, DATA, ENCODER, MODEL, TRAINING = 2, 3, 4, 5, 6
QUICK = ["--set", "head.hidden=8", "--set", "head.layers=1", "--set", "training.max_epochs=2"]


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str

    def records(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]


Run = Callable[..., Result]


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "emoglot", *map(str, arguments)]


def shell(*arguments: object, stdin: bytes = b"", **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Run a command in a process of its own."""
    env = {**os.environ, "COLUMNS": "200", **environment}
    return subprocess.run(command(*arguments), input=stdin, capture_output=True, check=False, env=env)


def write_table(path: Path, data: Dataset) -> Path:
    rows = zip(data.texts, data.languages, data.targets == 1, strict=True)
    lines = [f"{text}\t{language}\t{','.join(names_where(chosen, data.labels))}" for text, language, chosen in rows]
    path.write_text("\n".join(["text\tlanguage\tlabels", *lines]) + "\n", encoding="utf-8")
    return path


def write_recipe(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def check_error(result: Result, code: int, *parts: str) -> None:
    """An error is one sentence on standard error, and nothing on standard output."""
    assert (result.code, result.out) == (code, ""), result.err
    assert result.err.startswith("error: ")
    assert result.err.count("\n") == 1
    for part in parts:
        assert part in result.err
