"""The description of a model folder, `model.json`, and how it is read."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from emoglot.errors import ModelError, UsageError
from emoglot.files import check_regular
from emoglot.inference.metrics import Evaluation
from emoglot.schema import build

FORMAT = "emoglot-model"
FORMAT_VERSION = 1
DESCRIPTION_FILE = "model.json"
CARD_FILE = "README.md"
LANGUAGES_FILE = "languages.json"
# More than any model needs; an untrusted folder must not fill the memory before it is rejected.
MAX_DESCRIPTION_BYTES = 2**25

Thresholds = list[float | None]  # None for a label that is never predicted: JSON has no infinity


@dataclass(frozen=True)
class EncoderReference:
    """The encoder that a model was trained on."""

    name: str
    fingerprint: str


@dataclass(frozen=True)
class StrictnessTables:
    """The thresholds of each label for every hundredth of precision and recall."""

    precision: list[Thresholds]
    recall: list[Thresholds]


@dataclass(frozen=True)
class FileRecord:
    """The size and the hash of a file."""

    bytes: int
    sha256: str


@dataclass(frozen=True, kw_only=True)
class ModelDescription:
    """The content of `model.json`; entries with a default are missing in folders of earlier versions."""

    format: str = FORMAT
    version: int = FORMAT_VERSION
    emoglot: str = ""
    labels: list[str]
    thresholds: Thresholds
    language_thresholds: dict[str, Thresholds] = field(default_factory=dict)
    matched_thresholds: dict[str, Thresholds] = field(default_factory=dict)
    strictness: StrictnessTables | None = None
    encoder: EncoderReference
    normalisation: int | None = None
    config: dict[str, Any]
    training: dict[str, Any]
    metrics: Evaluation
    files: dict[str, FileRecord]


def read_description(folder: Path) -> ModelDescription:
    """Read model.json and check all entries."""
    content = read_content(folder)
    try:
        return build(ModelDescription, content, ignore_unknown=True)
    except UsageError as error:
        raise ModelError(
            f"{folder / DESCRIPTION_FILE} does not describe a model: {error}; copy or train it again"
        ) from error


def read_content(folder: Path) -> dict[str, Any]:
    """Read model.json and check its size, format and version."""
    path = folder / DESCRIPTION_FILE
    if not folder.is_dir():
        raise ModelError(f"there is no model folder {folder}: train one with `emoglot train --out {folder}`")
    if not path.is_file():
        raise ModelError(f"{folder} is not an emoglot model: it has no {DESCRIPTION_FILE}")
    check_place(path, folder, MAX_DESCRIPTION_BYTES)
    content = parse_json(path, path.read_bytes())
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ModelError(f"{path} does not describe an emoglot model: its format must be {FORMAT!r}")
    version = content.get("version")
    if type(version) is not int or version < 1:
        raise ModelError(f"{path}: version must be a positive integer, got {version!r}")
    if version > FORMAT_VERSION:
        raise ModelError(
            f"{folder} has format version {version}, this emoglot reads up to {FORMAT_VERSION}: pip install -U emoglot"
        )
    return content


def check_place(path: Path, folder: Path, most_bytes: int) -> None:
    """Raise ModelError for a file that is too large, a link that points outside the folder, a pipe or a device."""
    try:
        check_regular(path, folder, most_bytes)
    except (OSError, ValueError) as error:
        raise ModelError(f"{error}; copy the model folder again") from error


def parse_json(path: Path, data: bytes) -> Any:
    """Parse the content of a file; raise ModelError if it is not JSON or nested too deeply."""
    try:
        return json.loads(data.decode("utf-8"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise ModelError(
            f"{path} is not readable JSON: {error}; the folder is damaged, copy or train it again"
        ) from error


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")
