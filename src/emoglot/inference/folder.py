"""The model folder: a trained model as JSON, safetensors and ONNX files, which are checked when they are read.

my-model/
├── model.json            labels, thresholds, config, encoder, data summary, metrics, sizes and hashes of the files
├── weights.safetensors   the weights of the head and of the wide channel
├── head.onnx             the same head, compiled for onnxruntime
├── encoder/              the encoder, if it was trained together with the head
├── README.md             the model card
└── languages.json        the measured quality of each language, if it was measured
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save as save_tensors

from emoglot.config import Config
from emoglot.encoders.description import DESCRIPTION_FILE as ENCODER_DESCRIPTION_FILE
from emoglot.errors import EmoglotError, ModelError, UsageError
from emoglot.files import copy_files, folder_in_the_making, write_whole
from emoglot.inference import card
from emoglot.inference.checks import (
    check_encoder_name,
    check_head,
    check_labels,
    check_pages,
    check_state,
    read_file,
    read_tensors,
    sha256,
)
from emoglot.inference.description import (
    CARD_FILE,
    DESCRIPTION_FILE,
    LANGUAGES_FILE,
    EncoderReference,
    FileRecord,
    ModelDescription,
    StrictnessTables,
    Thresholds,
    read_content,
    read_description,
)
from emoglot.inference.metrics import Evaluation
from emoglot.inference.ngrams import Ngrams, WideChannel
from emoglot.inference.strictness import Strictness
from emoglot.inference.thresholds import NEVER
from emoglot.labels import check_names, is_unicode
from emoglot.text.language_names import NO_LANGUAGE, PRIVATE_USE
from emoglot.text.normalise import NORMALISATION_VERSION

DOMAIN_MARK = PRIVATE_USE  # in a language code, before the name of a domain
# Share of a language's own thresholds, if the language was only recognised; the rest are those for any text. With half,
# more greetings and questions get a label than with a quarter.
RECOGNISED_SHARE = 0.25
LEAST_PRECISION = 0.4  # of a label in texts of any language, if the language was only recognised
WEIGHTS_FILE = "weights.safetensors"
GRAPH_FILE = "head.onnx"
ENCODER_FOLDER = "encoder"

FILES = (DESCRIPTION_FILE, WEIGHTS_FILE, GRAPH_FILE, CARD_FILE, LANGUAGES_FILE)
_CONTENTS = {*FILES, ENCODER_FOLDER}
_ENCODER_DESCRIPTION = f"{ENCODER_FOLDER}/{ENCODER_DESCRIPTION_FILE}"
_WIDE_PREFIX = "wide."
_HEAD_PREFIX = "head."

T = TypeVar("T")


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
    training: Mapping[str, Any]  # summaries of the data and of the training
    metrics: Evaluation  # as measured on held-out validation rows
    # By language, instead of `thresholds`: chosen on labelled texts, and matched by translations.
    language_thresholds: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    matched_thresholds: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    includes_encoder: bool = False  # whether the encoder was trained for this model and is in its folder
    strictness: Strictness | None = None  # thresholds for a wanted precision or recall

    @property
    def sentiment(self) -> tuple[str, ...]:
        """The names of the outputs that follow the labels: positive, negative and the like."""
        return tuple(self.config.training.sentiment)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of all outputs of the network: the labels, then those of sentiment."""
        return (*self.labels, *self.sentiment)

    def thresholds_for(self, language: str | None, *, named: bool = True) -> NDArray[np.float64]:
        """Return the thresholds of a language such as "pt-BR", else those of "pt", else those for any text.

        "Those for any text" are those that translations matched to the language, if there are any. The code for texts
        of one domain ends in a private subtag of BCP 47: "pt-BR-x-brighter", or "und-x-brighter" for any language. A
        text in a recognised language may differ from the texts that chose the thresholds of that language. Therefore,
        unless the caller `named` the language, its thresholds are averaged with those for any text, and a label that
        would be right less than two times in five in texts of any language needs a higher score, at most the threshold
        for any text.
        """
        codes = tuple(_broader(language or NO_LANGUAGE))
        anyhow = next(
            (self.matched_thresholds[code] for code in codes if code in self.matched_thresholds), self.thresholds
        )
        own = next((self.language_thresholds[code] for code in codes if code in self.language_thresholds), anyhow)
        if named:
            return own
        mean = RECOGNISED_SHARE * own + (1 - RECOGNISED_SHARE) * anyhow
        if self.strictness is None:
            return mean
        return np.maximum(mean, np.minimum(self.strictness.thresholds(LEAST_PRECISION, None), anyhow))

    def thresholds_of(self, languages: Sequence[str | None], named: Sequence[bool]) -> NDArray[np.float64]:
        """Return the thresholds (texts, labels) for the language of each text, and whether the caller named it."""
        rows = list(zip(languages, named, strict=True))
        by_language = {pair: self.thresholds_for(pair[0], named=pair[1]) for pair in set(rows)}
        return np.array([by_language[pair] for pair in rows]).reshape(len(rows), len(self.labels))

    def fingerprint(self) -> str:
        """Return a hash of everything that scores depend on, except the encoder; thresholds do not change scores."""
        settings = json.dumps(self.config.to_dict(), sort_keys=True).encode()
        return sha256(self.graph + save_tensors(_tensors(self)) + settings)


def _broader(language: str) -> Iterator[str]:
    """Yield a language code and its fallbacks, the nearest first."""
    name, mark, domain = language.partition(DOMAIN_MARK)
    names = dict.fromkeys((name, name.partition("-")[0]))
    if mark:
        yield from (f"{code}{mark}{domain}" for code in (*names, NO_LANGUAGE))
    yield from names


def check_target(folder: Path) -> None:
    """Raise UsageError if a model cannot be written, or would replace anything other than a model."""
    if not is_unicode(str(folder)):
        raise UsageError(f"the name of a model folder must be UTF-8, got {str(folder)!r}: choose another name")
    above = next((parent for parent in folder.resolve().parents if parent.exists()), folder)
    if not above.is_dir() or not os.access(above, os.W_OK):
        raise UsageError(f"{folder} cannot be written, because {above} is not a writable folder: choose another")
    if folder.exists() and not _is_replaceable(folder):
        raise ModelError(
            f"only a folder with nothing but a model can be replaced, got {folder}: choose another name; "
            "nothing was overwritten"
        )
    if folder.exists() and (os.path.samefile(folder, os.curdir) or os.path.ismount(folder)):
        raise UsageError(
            f"{folder} is the working directory or a mounted disk, which cannot be replaced: use a folder inside it"
        )


def write_model(
    state: ModelState, folder: Path, version: str, encoder: Path | None = None, hub_name: str | None = None
) -> None:
    """Write the folder atomically; only another model can be replaced.

    `encoder` is the folder of an encoder that is part of the model; `hub_name` is the name in the model card of a model
    that is uploaded to the Hugging Face hub.
    """
    check_target(folder)
    check_labels(state.labels)
    description = _describe(state, version)
    page = card.render_hub_card(hub_name, description) if hub_name else card.render_card(folder.name, description)
    contents = {WEIGHTS_FILE: save_tensors(_tensors(state)), GRAPH_FILE: state.graph}
    if encoder:
        # It contains the hashes of the other files of the encoder.
        contents[_ENCODER_DESCRIPTION] = (encoder / ENCODER_DESCRIPTION_FILE).read_bytes()
    recorded = {name: _record(data) for name, data in contents.items()}
    with folder_in_the_making(folder) as draft:
        if encoder:
            copy_files(encoder, draft / ENCODER_FOLDER)
        for name, data in contents.items():
            (draft / name).write_bytes(data)
        (draft / CARD_FILE).write_bytes(page.encode())  # not recorded, because it may be edited
        text = _as_json(asdict(replace(description, files=recorded)))
        (draft / DESCRIPTION_FILE).write_text(text, encoding="utf-8")


def write_page(folder: Path, name: str, text: str) -> None:
    """Write the card or the languages of an existing model; the size and hash of the languages are recorded."""
    if name not in (CARD_FILE, LANGUAGES_FILE):
        raise ValueError(f"only {CARD_FILE} and {LANGUAGES_FILE} can be written to an existing model, got {name!r}")
    content = read_content(folder)
    write_whole(folder / name, text)
    if name == LANGUAGES_FILE:
        content["files"][name] = asdict(_record(text.encode()))
        write_whole(folder / DESCRIPTION_FILE, _as_json(content))


def _record(data: bytes) -> FileRecord:
    return FileRecord(len(data), sha256(data))


def _as_json(content: Mapping[str, Any]) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def read_model(folder: Path) -> ModelState:
    """Read a folder and check format, version, sizes, hashes, operators, types, shapes and names."""
    description = read_description(folder)
    weights_data = read_file(folder, WEIGHTS_FILE, description)
    graph = read_file(folder, GRAPH_FILE, description)
    check_head(folder / GRAPH_FILE, graph)
    includes_encoder = _ENCODER_DESCRIPTION in description.files
    if includes_encoder:
        read_file(folder, _ENCODER_DESCRIPTION, description)
    check_pages(folder, description)
    tensors = read_tensors(folder / WEIGHTS_FILE, weights_data)
    with _described(folder):
        state = _state(description, tensors, graph, includes_encoder)
    check_state(state, description.normalisation, folder)
    return state


@contextmanager
def _described(folder: Path) -> Iterator[None]:
    """Raise ModelError, with the file, for an invalid description."""
    try:
        yield
    except (KeyError, ValueError, EmoglotError) as error:
        reason = f"the tensor {error} is missing" if isinstance(error, KeyError) else error
        raise ModelError(f"{folder / DESCRIPTION_FILE} does not describe a model: {reason}") from error


def _state(
    description: ModelDescription, tensors: Mapping[str, NDArray[Any]], graph: bytes, includes_encoder: bool
) -> ModelState:
    config = Config.from_dict(description.config)
    encoder, tables = description.encoder, description.strictness
    state = ModelState(
        labels=check_labels(description.labels),
        thresholds=_thresholds(description.thresholds),
        config=config,
        encoder_name=encoder.name if includes_encoder else check_encoder_name(encoder.name),
        encoder_fingerprint=encoder.fingerprint,
        weights=under(_HEAD_PREFIX, tensors),
        graph=graph,
        wide=_wide_channel(under(_WIDE_PREFIX, tensors), config),
        training=description.training,
        metrics=description.metrics,
        language_thresholds=_thresholds_by_language(description.language_thresholds),
        matched_thresholds=_thresholds_by_language(description.matched_thresholds),
        includes_encoder=includes_encoder,
        strictness=None if tables is None else Strictness(_table(tables.precision), _table(tables.recall)),
    )
    check_names(state.outputs)
    return state


def read_thresholds(folder: Path) -> tuple[tuple[str, float | None], ...]:
    """Return the labels of a model with their thresholds, without its weights; None for one that is never predicted."""
    description = read_description(folder)
    with _described(folder):
        return tuple(zip(check_labels(description.labels), description.thresholds, strict=True))


def _is_replaceable(folder: Path) -> bool:
    contents = {path.name for path in folder.iterdir()} if folder.is_dir() else {folder.name}
    if not contents <= _CONTENTS:
        return False
    try:
        return not contents or bool(read_content(folder))
    except ModelError:
        return False


def _describe(state: ModelState, version: str) -> ModelDescription:
    found = state.strictness
    tables = StrictnessTables([*map(listed, found.precision)], [*map(listed, found.recall)]) if found else None
    return ModelDescription(
        emoglot=version,
        labels=list(state.labels),
        thresholds=listed(state.thresholds),
        language_thresholds=listed_by_language(state.language_thresholds),
        matched_thresholds=listed_by_language(state.matched_thresholds),
        strictness=tables,
        encoder=EncoderReference(state.encoder_name, state.encoder_fingerprint),
        normalisation=NORMALISATION_VERSION,
        config=state.config.to_dict(),
        training=dict(state.training),
        metrics=state.metrics,
        files={},
    )


def listed(thresholds: NDArray[np.float64]) -> Thresholds:
    """Return thresholds as a list; a label that is never predicted has None."""
    return [None if value == NEVER else float(value) for value in thresholds]


def listed_by_language(thresholds: Mapping[str, NDArray[np.float64]]) -> dict[str, Thresholds]:
    """Return the thresholds of languages as lists."""
    return {language: listed(values) for language, values in thresholds.items()}


def _thresholds_by_language(thresholds: Mapping[str, Thresholds]) -> dict[str, NDArray[np.float64]]:
    return {language: _thresholds(values) for language, values in thresholds.items()}


def _thresholds(values: Thresholds) -> NDArray[np.float64]:
    return np.array([NEVER if value is None else value for value in values], dtype=np.float64)


def _table(rows: list[Thresholds]) -> NDArray[np.float64]:
    return np.array([_thresholds(row) for row in rows])


def _tensors(state: ModelState) -> dict[str, NDArray[Any]]:
    tensors: dict[str, NDArray[Any]] = {f"{_HEAD_PREFIX}{name}": array for name, array in state.weights.items()}
    if state.wide:
        tensors |= {f"{_WIDE_PREFIX}{name}": array for name, array in vars(state.wide.ngrams).items()}
        tensors |= {f"{_WIDE_PREFIX}{name}": array for name, array in state.wide.weight_arrays().items()}
    return {name: np.ascontiguousarray(array) for name, array in tensors.items()}


def under(prefix: str, tensors: Mapping[str, T]) -> dict[str, T]:
    """Return the tensors whose names begin with a prefix, without the prefix."""
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def _wide_channel(tensors: Mapping[str, NDArray[Any]], config: Config) -> WideChannel | None:
    if not config.wide.enabled:
        return None
    ngrams = Ngrams(tensors["signs"], tensors["idf"], tensors["unknown_idf"])
    return WideChannel(config.wide, ngrams, tensors["weights"], tensors["steps"], tensors["bias"])
