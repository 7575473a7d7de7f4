"""The model folder: what a trained model is made of, written as JSON, safetensors and ONNX, and checked when read.

my-model/
├── model.json            labels, thresholds, config, encoder, data summary, metrics, hashes of the files below
├── weights.safetensors   the weights of the head and of the wide channel
├── head.onnx             the same head, compiled for onnxruntime
├── encoder/              the encoder, where it was trained along with the head
├── README.md             the model card, for people
└── languages.json        what was measured of each language, where somebody did
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from emoglot import card
from emoglot.config import Config
from emoglot.data.dataset import NO_LANGUAGE
from emoglot.encoders.onnx import DESCRIPTION_FILE as ENCODER_DESCRIPTION_FILE
from emoglot.errors import EmoglotError, ModelError, UsageError
from emoglot.files import folder_in_the_making
from emoglot.labels import check_names, is_unicode
from emoglot.language.names import PRIVATE_USE
from emoglot.strictness import STEPS, Strictness
from emoglot.text import NORMALISATION_VERSION
from emoglot.thresholds import NEVER
from emoglot.wide import Ngrams, WideChannel

FORMAT = "emoglot-model"
DOMAIN_MARK = PRIVATE_USE  # in a language code, before the name of a kind of text
FORMAT_VERSION = 1
DESCRIPTION_FILE = "model.json"
WEIGHTS_FILE = "weights.safetensors"
GRAPH_FILE = "head.onnx"
CARD_FILE = "README.md"
LANGUAGES_FILE = "languages.json"
ENCODER_FOLDER = "encoder"

# More than any model of ours could need; a folder from elsewhere must not fill the memory before it is refused.
MAX_FILE_BYTES = 2**30
MAX_DESCRIPTION_BYTES = 2**25

_CONTENTS = {DESCRIPTION_FILE, WEIGHTS_FILE, GRAPH_FILE, CARD_FILE, LANGUAGES_FILE, ENCODER_FOLDER}
_ENCODER_DESCRIPTION = f"{ENCODER_FOLDER}/{ENCODER_DESCRIPTION_FILE}"
_WIDE_PREFIX = "wide."
_HEAD_PREFIX = "head."


@dataclass(frozen=True)
class ModelState:
    """Everything that makes a trained model, except the encoder itself."""

    labels: tuple[str, ...]
    thresholds: NDArray[np.float64]
    config: Config
    encoder_name: str
    encoder_fingerprint: str
    weights: dict[str, NDArray[np.float32]]
    graph: bytes
    wide: WideChannel | None
    training: Mapping[str, Any]  # summaries of the data and of how training went
    metrics: Mapping[str, Any]  # as measured on held-out validation rows
    language_thresholds: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)  # instead of the others
    includes_encoder: bool = False  # in the folder: it was trained for this model alone
    strictness: Strictness | None = None  # thresholds for a wanted precision or recall

    @property
    def sentiment(self) -> tuple[str, ...]:
        """What the network says beside the labels, and behind them."""
        return tuple(self.config.training.sentiment)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of all that the network says."""
        return (*self.labels, *self.sentiment)

    def thresholds_for(self, language: str | None) -> NDArray[np.float64]:
        """Give the thresholds of a language such as "pt-BR", of "pt", or those of all languages together.

        Texts like those of a dataset are told as in BCP 47: "pt-BR-x-brighter", or "und-x-brighter" in any language.
        """
        found = (self.language_thresholds.get(code) for code in _broader(language or NO_LANGUAGE))
        return next((thresholds for thresholds in found if thresholds is not None), self.thresholds)

    def fingerprint(self) -> str:
        """Name what the scores are made by: all but the encoder, and the thresholds, which only cut them."""
        settings = json.dumps(self.config.to_dict(), sort_keys=True).encode()
        return _sha256(self.graph + save_tensors(_tensors(self)) + settings)


def _broader(language: str) -> Iterator[str]:
    """Give a language code and those that it falls back to, the nearest first."""
    name, mark, domain = language.partition(DOMAIN_MARK)
    names = dict.fromkeys((name, name.partition("-")[0]))
    if mark:
        yield from (f"{code}{mark}{domain}" for code in (*names, NO_LANGUAGE))
    yield from names


def check_target(folder: Path) -> None:
    """Refuse to write where that can't be, or where anything but a model, or an empty folder, would be lost."""
    if not is_unicode(str(folder)):
        raise UsageError(f"the name of a model folder is UTF-8, got {str(folder)!r}: choose another")
    above = next((parent for parent in folder.resolve().parents if parent.exists()), folder)
    if not above.is_dir() or not os.access(above, os.W_OK):
        raise UsageError(f"{folder} can't be written, as {above} is not a folder that we may write to: choose another")
    if folder.exists() and not _is_replaceable(folder):
        raise ModelError(f"{folder} is not a model folder, or not only: choose another name, nothing was overwritten")


def write_model(state: ModelState, folder: Path, version: str, encoder: Path | None = None) -> None:
    """Write the folder whole or not at all; only another model is ever replaced.

    `encoder` is the folder of an encoder that belongs to this model alone.
    """
    check_target(folder)
    contents = {WEIGHTS_FILE: save_tensors(_tensors(state)), GRAPH_FILE: state.graph}
    if encoder:
        # It has the hashes of the encoder's other files.
        contents[_ENCODER_DESCRIPTION] = (encoder / ENCODER_DESCRIPTION_FILE).read_bytes()
    description = _describe(state, version) | {
        "files": {name: {"bytes": len(data), "sha256": _sha256(data)} for name, data in contents.items()}
    }
    with folder_in_the_making(folder) as draft:
        if encoder:
            shutil.copytree(encoder, draft / ENCODER_FOLDER)
        for name, data in contents.items():
            (draft / name).write_bytes(data)
        text = json.dumps(description, indent=2, ensure_ascii=False, allow_nan=False)
        (draft / DESCRIPTION_FILE).write_text(text + "\n", encoding="utf-8")
        (draft / CARD_FILE).write_text(card.render(folder.name, description), encoding="utf-8")


def read_model(folder: Path) -> ModelState:
    """Read a folder, checking format, version, sizes, hashes, shapes and names."""
    description = _read_description(folder)
    weights_data = _read_file(folder, WEIGHTS_FILE, description)
    graph = _read_file(folder, GRAPH_FILE, description)
    includes_encoder = _ENCODER_DESCRIPTION in description["files"]
    if includes_encoder:
        _read_file(folder, _ENCODER_DESCRIPTION, description)
    try:
        config = Config.from_dict(_as(dict, description["config"]))
        labels = check_names(_as(list, description["labels"]))
        tensors = load_tensors(weights_data)
        state = ModelState(
            labels=labels,
            thresholds=_thresholds(description["thresholds"]),
            config=config,
            encoder_name=_as(str, description["encoder"]["name"]),
            encoder_fingerprint=_as(str, description["encoder"]["fingerprint"]),
            weights=_without_prefix(tensors, _HEAD_PREFIX),
            graph=graph,
            wide=_wide_channel(_without_prefix(tensors, _WIDE_PREFIX), config),
            training=_as(dict, description["training"]),
            metrics=_metrics(description["metrics"]),
            language_thresholds={
                language: _thresholds(values)
                for language, values in _as(dict, description.get("language_thresholds", {})).items()
            },
            includes_encoder=includes_encoder,
            strictness=_strictness(description.get("strictness")),
        )
        check_names(state.outputs)
    except (KeyError, TypeError, ValueError, OverflowError, SafetensorError, EmoglotError) as error:
        raise ModelError(f"{folder / DESCRIPTION_FILE} does not describe a model: {_reason(error)}") from error
    _check_state(state, description, folder)
    return state


def read_thresholds(folder: Path) -> tuple[tuple[str, float | None], ...]:
    """Return the labels of a model, each with its threshold, without its weights; None for one that is never given."""
    description = _read_description(folder)
    try:
        return tuple(zip(check_names(description["labels"]), description["thresholds"], strict=True))
    except (KeyError, TypeError, ValueError, EmoglotError) as error:
        raise ModelError(f"{folder / DESCRIPTION_FILE} does not describe a model: {_reason(error)}") from error


def _is_replaceable(folder: Path) -> bool:
    contents = {path.name for path in folder.iterdir()} if folder.is_dir() else {folder.name}
    if not contents <= _CONTENTS:
        return False
    try:
        return not contents or bool(_read_description(folder))
    except ModelError:
        return False


def _describe(state: ModelState, version: str) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "emoglot": version,
        "labels": list(state.labels),
        "thresholds": listed(state.thresholds),
        "language_thresholds": {name: listed(values) for name, values in state.language_thresholds.items()},
        "strictness": _listed_strictness(state.strictness),
        "encoder": {"name": state.encoder_name, "fingerprint": state.encoder_fingerprint},
        "normalisation": NORMALISATION_VERSION,
        "config": state.config.to_dict(),
        "training": dict(state.training),
        "metrics": dict(state.metrics),
    }


def listed(thresholds: NDArray[np.float64]) -> list[float | None]:
    """List thresholds; JSON has no infinity, so a label that is never predicted has none."""
    return [None if value == NEVER else float(value) for value in thresholds]


def _thresholds(values: Any) -> NDArray[np.float64]:
    listed = [NEVER if value is None else float(_as((float, int), value)) for value in _as(list, values)]
    return np.array(listed, dtype=np.float64)


def _listed_strictness(strictness: Strictness | None) -> dict[str, list[list[float | None]]] | None:
    if strictness is None:
        return None
    return {name: [listed(row) for row in table] for name, table in vars(strictness).items()}


def _strictness(values: Any) -> Strictness | None:
    if values is None:
        return None
    tables = {name: np.array([_thresholds(row) for row in _as(list, values[name])]) for name in ("precision", "recall")}
    return Strictness(**tables)


def _metrics(values: Any) -> dict[str, Any]:
    metrics = _as(dict, values)
    _as(dict, _as(dict, metrics["overall"])["per_class"])
    return dict(metrics)


def _tensors(state: ModelState) -> dict[str, NDArray[Any]]:
    tensors: dict[str, NDArray[Any]] = {f"{_HEAD_PREFIX}{name}": array for name, array in state.weights.items()}
    if state.wide:
        tensors |= {f"{_WIDE_PREFIX}{name}": array for name, array in vars(state.wide.ngrams).items()}
        tensors |= {f"{_WIDE_PREFIX}weights": state.wide.weights, f"{_WIDE_PREFIX}bias": state.wide.bias}
    return {name: np.ascontiguousarray(array) for name, array in tensors.items()}


def _without_prefix(tensors: Mapping[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    return {name.removeprefix(prefix): array for name, array in tensors.items() if name.startswith(prefix)}


def _wide_channel(tensors: Mapping[str, NDArray[Any]], config: Config) -> WideChannel | None:
    if not config.wide.enabled:
        return None
    ngrams = Ngrams(tensors["signs"], tensors["idf"], tensors["unknown_idf"])
    return WideChannel(config.wide, ngrams, tensors["weights"], tensors["bias"])


def _read_description(folder: Path) -> dict[str, Any]:
    path = folder / DESCRIPTION_FILE
    if not folder.is_dir():
        raise ModelError(f"there is no model folder {folder}: train one with `emoglot train --out {folder}`")
    if not path.is_file():
        raise ModelError(f"{folder} is no emoglot model: it has no {DESCRIPTION_FILE}")
    if path.stat().st_size > MAX_DESCRIPTION_BYTES:
        raise ModelError(f"{path} may have {MAX_DESCRIPTION_BYTES} bytes, got {path.stat().st_size}")
    try:
        description = json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse_constant)
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(
            f"{path} is not readable JSON: {error}; the folder is damaged, copy or train it again"
        ) from error
    if not isinstance(description, dict) or description.get("format") != FORMAT:
        raise ModelError(f"{path} does not describe an emoglot model: its format must be {FORMAT!r}")
    version = description.get("version")
    if type(version) is not int or version < 1:
        raise ModelError(f"{path}: version must be a positive integer, got {version!r}")
    if version > FORMAT_VERSION:
        raise ModelError(
            f"{folder} has format version {version}, this emoglot reads up to {FORMAT_VERSION}: pip install -U emoglot"
        )
    return description


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number in JSON")


def _read_file(folder: Path, name: str, description: Mapping[str, Any]) -> bytes:
    """Read a file whose size and hash must be those recorded."""
    try:
        recorded = description["files"][name]
        size, digest = int(recorded["bytes"]), str(recorded["sha256"])
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ModelError(f"{folder / DESCRIPTION_FILE} records no size and hash for {name}") from error
    path = folder / name
    if not path.is_file():
        raise ModelError(f"{folder} is incomplete: {name} is missing; copy or train it again")
    found = path.stat().st_size
    if found != size:
        raise ModelError(f"{path} must have {size} bytes, got {found}: it is truncated or foreign; copy it again")
    if found > MAX_FILE_BYTES:
        raise ModelError(f"{path} may have {MAX_FILE_BYTES} bytes, got {found}")
    data = path.read_bytes()
    if _sha256(data) != digest:
        raise ModelError(f"{path} was altered: its sha256 is not the recorded one; copy or train it again")
    return data


def _check_state(state: ModelState, description: Mapping[str, Any], folder: Path) -> None:
    width = len(state.labels)
    cuts = (state.thresholds, *state.language_thresholds.values())
    if any(thresholds.shape != (width,) for thresholds in cuts):
        raise ModelError(f"{folder}: there must be one threshold for each of {width} labels")
    tables = () if state.strictness is None else tuple(vars(state.strictness).values())
    if any(table.shape != (width, STEPS) for table in tables):
        raise ModelError(f"{folder}: strictness must have {STEPS} thresholds for each of {width} labels")
    for thresholds in (*cuts, *(table.ravel() for table in tables)):
        finite = thresholds[thresholds != NEVER]
        if not ((finite >= 0) & (finite <= 1)).all():
            raise ModelError(f"{folder}: thresholds must be in [0, 1] or null, got {listed(thresholds[:width])}")
    if description.get("normalisation") != NORMALISATION_VERSION:
        raise ModelError(
            f"{folder} was trained on normalisation {description.get('normalisation')}, "
            f"this emoglot has {NORMALISATION_VERSION}: train it again"
        )
    if state.wide:
        buckets = state.config.wide.buckets
        ngrams = [array.shape for array in vars(state.wide.ngrams).values()]
        shapes = (*ngrams, state.wide.weights.shape, state.wide.bias.shape)
        outputs = len(state.outputs)
        if shapes != ((buckets,), (buckets,), (1,), (buckets, outputs), (outputs,)):
            raise ModelError(
                f"{folder}: the wide channel must fit {buckets} buckets and {outputs} labels, got {shapes}"
            )
    # Not the other way round: a label that no validation row was annotated with has no figures.
    if strange := state.metrics["overall"]["per_class"].keys() - set(state.labels):
        raise ModelError(f"{folder}: there are metrics of {', '.join(sorted(strange))}, which is no label")


def _as(kind: Any, value: Any) -> Any:
    """Check the type of a value, which JSON does not."""
    if not isinstance(value, kind) or isinstance(value, bool):
        raise TypeError(f"{value!r} stands where a {getattr(kind, '__name__', 'number')} must")
    return value


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _reason(error: Exception) -> str:
    return f"{error.args[0]!r} is missing" if isinstance(error, KeyError) and error.args else str(error)
