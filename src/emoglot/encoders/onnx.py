"""An encoder in a folder of its own, run by onnxruntime: `encoder.json`, `model.onnx` and `tokenizer.json`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emoglot.encoders.base import Ragged, splits_of
from emoglot.errors import EncoderError, UsageError
from emoglot.files import hash_file
from emoglot.onnxruntime import import_onnxruntime

DESCRIPTION_FILE = "encoder.json"
MODEL_FILE = "model.onnx"
TOKENIZER_FILE = "tokenizer.json"
FORMAT_VERSION = 1
LAYOUT = "padded"  # ids and mask (texts, tokens)
QUANTIZATIONS = ("none", "int8")
# Of the networks we write: old enough for every onnxruntime we accept, new enough for all operators used.
OPSET = 17
IR_VERSION = 8
FRAME_TOKENS = 2  # the marks around a text

# onnxruntime joins an addition and the normalisation after it into one kernel, which takes five times as long as both.
_SLOW_FUSION = "SkipLayerNormFusion"
_FINGERPRINT = re.compile(r"[\w-]+")  # it names a folder of the feature cache


@dataclass(frozen=True)
class Description:
    """What `encoder.json` says about the network beside it."""

    name: str
    fingerprint: str
    dim: int
    max_tokens: int
    layout: str
    input_names: tuple[str, str]
    output_name: str
    one_by_one: bool  # whether neighbours in a batch would change a text's vectors, so that each is read by itself
    files: dict[str, str] = field(default_factory=dict)  # the SHA-256 of every other file, by name
    version: int = FORMAT_VERSION
    # Fingerprints of encoders in whose place it can be used: what it was exported from, or what it adds words to.
    extends: tuple[str, ...] = ()

    def write(self, folder: Path) -> None:
        """Write the description; it comes last, so that a folder without it is a folder half made."""
        described = replace(self, files=_hashes(folder))
        (folder / DESCRIPTION_FILE).write_text(json.dumps(asdict(described), indent=2) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> Description:
        """Read and check the description of a folder."""
        path = folder / DESCRIPTION_FILE
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
            version = values.get("version", 0)
            if version > FORMAT_VERSION:
                raise EncoderError(f"{folder} was made by a newer emoglot (format {version}): pip install -U emoglot")
            extends = values.get("extends")  # younger than the others
            extends = [] if extends is None else extends
            older = {item.name: values[item.name] for item in fields(cls) if item.name != "extends"}
            description = cls(**older, extends=tuple(extends) if isinstance(extends, list) else extends)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise EncoderError(f"{path} is not a readable encoder description: {error}; install it again") from error
        description._check(path)
        return description

    def _check(self, path: Path) -> None:
        rules = {
            "name": isinstance(self.name, str),
            "fingerprint": isinstance(self.fingerprint, str) and _FINGERPRINT.fullmatch(self.fingerprint),
            "dim": type(self.dim) is int and self.dim > 0,
            "max_tokens": type(self.max_tokens) is int and FRAME_TOKENS < self.max_tokens < 2**31,
            "layout": self.layout == LAYOUT,
            "input_names": isinstance(self.input_names, list | tuple) and [*map(type, self.input_names)] == [str, str],
            "output_name": isinstance(self.output_name, str),
            "one_by_one": isinstance(self.one_by_one, bool),
            "files": isinstance(self.files, dict) and {MODEL_FILE, TOKENIZER_FILE} <= self.files.keys(),
            "extends": isinstance(self.extends, tuple) and all(isinstance(item, str) for item in self.extends),
            "version": type(self.version) is int and self.version > 0,
        }
        for name, is_kept in rules.items():
            if not is_kept:
                raise EncoderError(f"{path} is damaged: {name} can't be {getattr(self, name)!r}; install it again")


class OnnxEncoder:
    """Runs an exported network without torch.

    A network whose activations are scaled to whatever shares the batch, as those are that onnxruntime quantises, reads
    texts one at a time: a score never depends on its neighbours.
    """

    def __init__(self, folder: Path, name: str | None = None) -> None:
        self.folder = folder
        self.description = Description.read(folder)
        self.name = name or self.description.name
        if _hashes(folder) != self.description.files:
            raise EncoderError(f"the files of {folder} are not those it was made with: install or export it again")
        self._tokenizer = _load_tokenizer(folder, self.description.max_tokens)
        self._session = _open_session(folder)
        self._check_network()

    def _check_network(self) -> None:
        inputs = {item.name for item in self._session.get_inputs()}
        widths = {item.name: item.shape[-1] for item in self._session.get_outputs()}
        wanted = self.description
        if inputs != set(wanted.input_names) or widths.get(wanted.output_name) != wanted.dim:
            raise EncoderError(
                f"{self.folder / MODEL_FILE} must map {', '.join(wanted.input_names)} to {wanted.output_name} of "
                f"{wanted.dim} dimensions, got {', '.join(sorted(inputs))} to {widths}: install the encoder again"
            )

    @property
    def fingerprint(self) -> str:
        """The hash of what was exported and how."""
        return self.description.fingerprint

    @property
    def dim(self) -> int:
        """The length of a token vector."""
        return self.description.dim

    @property
    def tokenizer(self) -> Any:
        """What cuts a text into tokens, from the tokenizers library."""
        return self._tokenizer

    def count_tokens(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Count subwords, frame included."""
        return _lengths(self._tokenizer.encode_batch_fast(list(texts)))

    def encode(self, texts: Sequence[str]) -> Ragged:
        """Encode one batch, or, when quantised, each text by itself."""
        encodings = self._tokenizer.encode_batch(list(texts))
        if not encodings:
            return Ragged.join([], self.dim)
        if not self.description.one_by_one:
            return self._run(encodings)
        return Ragged.join([self._run([encoding]) for encoding in encodings], self.dim)

    def _run(self, encodings: Sequence[Any]) -> Ragged:
        """Run the network and keep the tokens that are text, not frame."""
        inputs = dict(zip(self.description.input_names, _padded(encodings), strict=True))
        states = self._session.run([self.description.output_name], inputs)[0]
        lengths = _lengths(encodings)
        states = np.concatenate([row[:length] for row, length in zip(states, lengths, strict=True)])
        spans = _flat((chain.from_iterable(encoding.offsets) for encoding in encodings), np.int32).reshape(-1, 2)
        is_frame = _flat((encoding.special_tokens_mask for encoding in encodings), np.bool_)
        if is_frame.any():
            owner = np.repeat(np.arange(len(lengths)), lengths)[~is_frame]
            lengths = np.bincount(owner, minlength=len(lengths)).astype(np.int64)
            states, spans = states[~is_frame], spans[~is_frame]
        return Ragged(np.asarray(states, dtype=np.float32), spans, splits_of(lengths))


def check_quantization(name: str) -> None:
    """Refuse a quantisation that there is not."""
    if name not in QUANTIZATIONS:
        raise UsageError(f"a quantisation is one of {', '.join(QUANTIZATIONS)}, got {name!r}")


def _hashes(folder: Path) -> dict[str, str]:
    """Hash every file of an encoder's folder but its description."""
    files = [path for path in sorted(folder.iterdir()) if path.is_file() and path.name != DESCRIPTION_FILE]
    return {path.name: hash_file(path) for path in files}


def _padded(encodings: Sequence[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    width = max(len(encoding.ids) for encoding in encodings)
    ids = np.zeros((len(encodings), width), dtype=np.int64)
    mask = np.zeros_like(ids)
    for row, encoding in enumerate(encodings):
        ids[row, : len(encoding.ids)] = encoding.ids
        mask[row, : len(encoding.ids)] = 1
    return ids, mask


def _lengths(encodings: Sequence[Any]) -> NDArray[np.int64]:
    return np.array([len(encoding) for encoding in encodings], dtype=np.int64)


def _flat(rows: Iterable[Iterable[Any]], dtype: Any) -> NDArray[Any]:
    """Lay rows end to end: one array for all is several times faster than one for each."""
    return np.fromiter(chain.from_iterable(rows), dtype)


def _load_tokenizer(folder: Path, max_tokens: int) -> Any:
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(folder / TOKENIZER_FILE))
    except Exception as error:  # tokenizers raises bare Exception
        raise EncoderError(f"{folder / TOKENIZER_FILE} can't be read: {error}; install the encoder again") from error
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_tokens)
    return tokenizer


def _open_session(folder: Path) -> Any:
    onnxruntime = import_onnxruntime()
    options = onnxruntime.SessionOptions()
    # Two calls side by side, of one thread each, are half again as fast as one call with two threads.
    options.intra_op_num_threads = 1
    options.log_severity_level = 3  # errors only; warnings are about graph optimisation
    try:
        return onnxruntime.InferenceSession(
            folder / MODEL_FILE,
            options,
            providers=["CPUExecutionProvider"],
            disabled_optimizers=[_SLOW_FUSION],
        )
    except Exception as error:  # onnxruntime raises its own unexported types
        raise EncoderError(f"{folder / MODEL_FILE} can't be run: {error}; install the encoder again") from error
