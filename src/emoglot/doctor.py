"""Examines an installation: versions, extras, encoders, caches, threads, telemetry and a test prediction."""

from __future__ import annotations

import importlib.util
import os
import platform
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from emoglot._version import __version__
from emoglot.concurrency import ONE_THREAD, available_cores
from emoglot.encoders import store
from emoglot.encoders.description import EncoderDescription
from emoglot.encoders.onnxruntime import TELEMETRY_SWITCH, import_onnxruntime
from emoglot.encoders.registry import BUNDLED_NAME, list_encoders
from emoglot.errors import EmoglotError
from emoglot.model import load

DISTRIBUTION = "emoglot"
DEVELOPMENT = ("dev", "docs")  # extras of those who work on emoglot itself
OK, NOTE, FAILED = "ok", "note", "failed"  # a note limits what can be installed, not what is here
# Packages that the core needs, and packages that most bug reports are about.
PACKAGES = ("numpy", "onnxruntime", "tokenizers", "safetensors", "typer", "rich")
LARGE_PACKAGES = ("torch", "transformers", "scikit-learn", "onnx", "pyarrow", "polars", "fastapi", "ray", "optuna")
LEAST_FREE_MEGABYTES = 500  # on the disk of the cache; the smallest encoder needs more
TEXT, EMOTION = "I am so happy that you are here!", "joy"
_REQUIREMENT = re.compile(r"([\w.-]+)(?:\[([\w,-]+)\])?.*?extra *== *['\"]([\w-]+)['\"]")


@dataclass(frozen=True)
class Finding:
    """One check: its result, and advice if there is a problem."""

    name: str
    found: str
    status: str = OK
    advice: str = ""
    seconds: float = 0.0


Examination = Callable[[], Iterator[Finding]]


def examine(model: Path | None = None) -> list[Finding]:
    """Return all findings about this installation and about a model; none of them raises."""
    examinations: dict[str, Examination] = {
        "system": _system,
        "packages": _packages,
        "extras": _extras,
        "encoders": _encoders,
        "cache": _caches,
        "threads": _threads,
        "telemetry": _telemetry,
        "model": lambda: _model(model),
    }
    return [finding for name, examination in examinations.items() for finding in _timed(name, examination)]


def is_healthy(findings: list[Finding]) -> bool:
    """Return whether everything that is installed works."""
    return all(finding.status != FAILED for finding in findings)


def _timed(name: str, examination: Examination) -> Iterator[Finding]:
    """Yield findings with the seconds that each took; an exception becomes a finding."""
    began = time.perf_counter()
    try:
        for finding in examination():
            seconds = time.perf_counter() - began
            yield Finding(finding.name, finding.found, finding.status, finding.advice, round(seconds, 3))
            began = time.perf_counter()
    except Exception as error:  # any error is a finding
        advice = "" if isinstance(error, EmoglotError) else "report this as a bug, with the output of this command"
        seconds = time.perf_counter() - began
        yield Finding(name, f"{type(error).__name__}: {error}", FAILED, advice, round(seconds, 3))


def _system() -> Iterator[Finding]:
    yield Finding("emoglot", f"{__version__} in {Path(__file__).parent}")
    yield Finding("Python", f"{platform.python_version()} ({platform.python_implementation()}) in {sys.prefix}")
    yield Finding("system", platform.platform())


def _packages() -> Iterator[Finding]:
    """Yield the versions of installed packages; those of the core are required."""
    for name in (*PACKAGES, *LARGE_PACKAGES):
        version = _version_of(name)
        if version is not None:
            yield Finding(name, version)
        elif name in PACKAGES:
            yield Finding(name, "not installed", FAILED, f"pip install --force-reinstall {DISTRIBUTION}")


def _extras() -> Iterator[Finding]:
    """Yield which extras are installed; a missing extra is not a problem."""
    extras = {extra: names for extra, names in required_by_extra().items() if extra not in DEVELOPMENT}
    missing = {extra: [name for name in names if _version_of(name) is None] for extra, names in extras.items()}
    present = [extra for extra, names in missing.items() if not names]
    yield Finding("extras present", ", ".join(present) or "none")
    absent = [f"{extra} (needs {', '.join(names)})" for extra, names in missing.items() if names]
    yield Finding("extras absent", "; ".join(absent) or "none")


def required_by_extra() -> dict[str, list[str]]:
    """Return the packages that each extra needs, including those of nested extras."""
    try:
        requirements = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:  # run from source
        return {}
    names: dict[str, list[str]] = {}
    included: dict[str, list[str]] = {}
    for package, extras, extra in (found.groups() for found in map(_REQUIREMENT.match, requirements) if found):
        if package == DISTRIBUTION:
            included.setdefault(extra, []).extend(extras.split(","))
            names.setdefault(extra, [])
        else:
            names.setdefault(extra, []).append(package)
    return {
        extra: sorted({*own, *(name for other in included.get(extra, ()) for name in names.get(other, ()))})
        for extra, own in names.items()
    }


def _encoders() -> Iterator[Finding]:
    """Yield the installed encoders, and those whose folder is damaged."""
    for info in list_encoders():
        if info.installed:
            yield Finding("encoder", f"{info.name}, {info.megabytes:,.0f} MB")
    for folder in store.installed_folders():
        try:
            EncoderDescription.read(folder)
        except EmoglotError as error:
            yield Finding("encoder", str(error), FAILED, f"remove {folder}, then install the encoder again")


def _caches() -> Iterator[Finding]:
    root = store.cache_folder()
    for name in ("encoders", "features"):
        yield Finding(f"cache of {name}", f"{store.folder_size(root / name) / 1e6:,.0f} MB in {root / name}")
    existing = next(folder for folder in (root, *root.parents) if folder.exists())
    free = shutil.disk_usage(existing).free / 1e6
    if not os.access(existing, os.W_OK):
        yield Finding(
            "cache",
            f"{existing} is read-only",
            NOTE,
            f"to install encoders or to train, set {store.CACHE_VARIABLE} to a folder of yours",
        )
    elif free < LEAST_FREE_MEGABYTES:
        advice = f"to install encoders, free some space or set {store.CACHE_VARIABLE} to a folder on another disk"
        yield Finding("cache", f"{free:,.0f} MB free in {existing}", NOTE, advice)
    else:
        yield Finding("cache", f"{free:,.0f} MB free")


def _threads() -> Iterator[Finding]:
    cores = available_cores()
    limits = [f"{name}={os.environ[name]}" for name in ONE_THREAD if name in os.environ]
    yield Finding("threads", f"{len(cores)} of {os.cpu_count()} cores" + (f", {', '.join(limits)}" if limits else ""))


def _telemetry() -> Iterator[Finding]:
    """Yield whether onnxruntime's telemetry is off, as it is unless the user has switched it on."""
    import_onnxruntime()
    value = os.environ.get(TELEMETRY_SWITCH)
    state = "off" if value == "1" else "not switched off by emoglot, because you have set"
    yield Finding("telemetry", f"{state} ({TELEMETRY_SWITCH}={value})")


def _model(folder: Path | None) -> Iterator[Finding]:
    """Yield that a model loads, with its files checked, and what it predicts."""
    model = load(folder)
    yield Finding("model", str(folder) if folder else f"the one in the package, with {BUNDLED_NAME}")
    prediction = model.predict(TEXT)
    labels = ", ".join(f"{name} {prediction.scores[name]:.2f}" for name in prediction.labels) or "no emotion"
    if folder is None and EMOTION not in prediction.labels:
        advice = f"pip install --force-reinstall {DISTRIBUTION}: files or packages are damaged"
        yield Finding("prediction", f'"{TEXT}": {labels}, without {EMOTION}', FAILED, advice)
    else:
        yield Finding("prediction", f'"{TEXT}": {labels}')


def _version_of(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        # Some builds of a package have another name, such as onnxruntime-gpu.
        return "of unknown version" if importlib.util.find_spec(package.replace("-", "_")) else None
