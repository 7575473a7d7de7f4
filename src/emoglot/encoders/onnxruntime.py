"""Imports onnxruntime with its telemetry switched off; no other module imports it."""

from __future__ import annotations

import importlib
import os
from typing import Any

# onnxruntime reads this variable on import. Without it, it writes to the user's cache folder and, in a long-running
# process, contacts a Microsoft host.
TELEMETRY_SWITCH = "ORT_DISABLE_TELEMETRY"


def import_onnxruntime(module: str = "onnxruntime") -> Any:
    """Import onnxruntime, or a module of it, without telemetry unless the user has set the variable."""
    if TELEMETRY_SWITCH not in os.environ:
        os.environ[TELEMETRY_SWITCH] = "1"  # also for child processes
        _disable_events(importlib.import_module("onnxruntime"))
    return importlib.import_module(module)


def _disable_events(onnxruntime: Any) -> None:
    """Switch telemetry off if onnxruntime was imported before."""
    disable = getattr(onnxruntime, "disable_telemetry_events", None)  # missing in some versions
    if disable is not None:
        disable()
