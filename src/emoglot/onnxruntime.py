"""The way to onnxruntime: no other module imports it, so that its telemetry is off before it is loaded."""

from __future__ import annotations

import importlib
import os
from typing import Any

# onnxruntime reads this variable while it is loaded; without it, it writes to the user's cache folder and, in a process
# that lives long enough, looks up a host of Microsoft's.
TELEMETRY_SWITCH = "ORT_DISABLE_TELEMETRY"


def import_onnxruntime(module: str = "onnxruntime") -> Any:
    """Import onnxruntime, or a module of it, with its telemetry off unless the user has set the variable."""
    if TELEMETRY_SWITCH not in os.environ:
        os.environ[TELEMETRY_SWITCH] = "1"  # and stays, for the processes that this one starts
        _disable_events(importlib.import_module("onnxruntime"))
    return importlib.import_module(module)


def _disable_events(onnxruntime: Any) -> None:
    """Switch telemetry off where the program around us loaded onnxruntime before us."""
    disable = getattr(onnxruntime, "disable_telemetry_events", None)  # some versions have none
    if disable is not None:
        disable()
