"""What the tests of encoders share: texts, and ways to alter a folder or an environment."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

TEXTS = [
    "What a wonderful day, I am so happy",
    "",
    "¡Qué alegría verte!",
    "أنا سعيد جدا اليوم",
    "x",
    "tea 🙂 at 5… <user> ½",
    "   ",
    "Se fue y no paro de llorar, y no vuelve más, y la noche es larga",
]


NETWORKS = ("hub", "onnx", "int8")


def python_without(*modules: str, code: str, arguments: tuple[str, ...] = ()) -> str:
    """Run code where importing these modules fails, as if they were not installed."""
    block = f"import sys\nsys.modules.update(dict.fromkeys({modules!r}))\n"
    command = [sys.executable, "-W", "error", "-c", block + code, *arguments]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout.strip()


def changed_copy(folder: Path, target: Path, **changes: Any) -> Path:
    shutil.copytree(folder, target)
    values = json.loads((target / "encoder.json").read_text())
    (target / "encoder.json").write_text(json.dumps(values | changes))
    return target
