"""An encoder folder run by onnxruntime: `encoder.json`, `model.onnx` and `tokenizer.json`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emoglot.encoders.base import Ragged, splits_of
from emoglot.encoders.description import (
    MODEL_FILE,
    TOKENIZER_FILE,
    EncoderDescription,
    check_files,
)
from emoglot.encoders.foreign import foreign_errors
from emoglot.encoders.onnxruntime import import_onnxruntime
from emoglot.errors import EncoderError, UsageError
from emoglot.text.limit import first_words

QUANTIZATIONS = ("none", "int8")
# Of written networks: old enough for every supported onnxruntime, new enough for all operators used.
OPSET = 17
IR_VERSION = 8

# onnxruntime fuses an addition and the normalisation after it into one kernel, which takes five times as long as both.
_SLOW_FUSION = "SkipLayerNormFusion"
_AGAIN = "install the encoder again"


class OnnxEncoder:
    """Runs an exported network without torch.

    A network that onnxruntime quantised scales its activations over the whole batch. It encodes one text at a time, so
    that a score does not depend on the other texts of a batch.
    """

    def __init__(self, folder: Path, name: str | None = None) -> None:
        self.folder = folder
        self.description = EncoderDescription.read(folder)
        self.name = name or self.description.name
        check_files(folder, self.description)
        self.tokenizer = _load_tokenizer(folder, self.description.max_tokens)
        self._session = _open_session(folder)
        self._check_network()

    def __reduce__(self) -> tuple[type[OnnxEncoder], tuple[Path, str]]:
        return OnnxEncoder, (self.folder, self.name)

    def _check_network(self) -> None:
        # Names that are not UTF-8 fail here, not when the session is opened.
        with foreign_errors(self.folder / MODEL_FILE, EncoderError, "cannot be read", _AGAIN):
            inputs = {item.name for item in self._session.get_inputs()}
            widths = {item.name: item.shape[-1] if item.shape else None for item in self._session.get_outputs()}
        wanted = self.description
        if inputs != set(wanted.input_names) or widths.get(wanted.output_name) != wanted.dim:
            raise EncoderError(
                f"{self.folder / MODEL_FILE} must map {', '.join(wanted.input_names)} to {wanted.output_name} of "
                f"{wanted.dim} dimensions, got {', '.join(sorted(inputs))} to {widths}: install the encoder again"
            )

    @property
    def fingerprint(self) -> str:
        """A hash of the exported network and the export settings."""
        return self.description.fingerprint

    @property
    def dim(self) -> int:
        """The length of a token vector."""
        return self.description.dim

    def count_tokens(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Count tokens, special tokens included."""
        return _lengths(self._tokenize(self.tokenizer.encode_batch_fast, texts))

    def encode(self, texts: Sequence[str]) -> Ragged:
        """Encode one batch, or each text separately if the network requires it."""
        encodings = self._tokenize(self.tokenizer.encode_batch, texts)
        if not encodings:
            return Ragged.join([], self.dim)
        if not self.description.one_by_one:
            return self._run(encodings)
        return Ragged.join([self._run([encoding]) for encoding in encodings], self.dim)

    def _tokenize(self, method: Callable[[list[str]], list[Any]], texts: Sequence[str]) -> list[Any]:
        """Tokenise the beginnings of texts: a word has at least one token, so words beyond the limit are not read."""
        limit = self.description.max_tokens
        beginnings = [first_words(text, limit) for text in texts]
        with foreign_errors(self.folder / TOKENIZER_FILE, EncoderError, "failed on a text", _AGAIN):
            found = method(beginnings)
            for row, text in enumerate(texts):
                # Unless the tokenizer dropped words, for example such that consist of control characters.
                if len(beginnings[row]) < len(text) and len(found[row]) < limit:
                    found[row] = method([text])[0]
        return found

    def _run(self, encodings: Sequence[Any]) -> Ragged:
        """Run the network, and drop the special tokens around each text."""
        inputs = dict(zip(self.description.input_names, _padded(encodings), strict=True))
        lengths = _lengths(encodings)
        with foreign_errors(self.folder / MODEL_FILE, EncoderError, "cannot be run", _AGAIN):
            states = self._session.run([self.description.output_name], inputs)[0]
        if states.dtype.kind != "f" or states.shape != (len(encodings), lengths.max(), self.dim):
            raise EncoderError(
                f"{self.folder / MODEL_FILE} must return {self.dim} numbers for each of {lengths.max()} tokens, got "
                f"{states.dtype} of the shape {states.shape}: {_AGAIN}"
            )
        states = np.concatenate([row[:length] for row, length in zip(states, lengths, strict=True)])
        spans = _flat((chain.from_iterable(encoding.offsets) for encoding in encodings), np.int32).reshape(-1, 2)
        is_frame = _flat((encoding.special_tokens_mask for encoding in encodings), np.bool_)
        if is_frame.any():
            owner = np.repeat(np.arange(len(lengths)), lengths)[~is_frame]
            lengths = np.bincount(owner, minlength=len(lengths)).astype(np.int64)
            states, spans = states[~is_frame], spans[~is_frame]
        return Ragged(np.asarray(states, dtype=np.float32), spans, splits_of(lengths))


def check_quantization(name: str) -> None:
    """Raise an error for an unknown quantisation."""
    if name not in QUANTIZATIONS:
        raise UsageError(f"a quantisation must be one of {', '.join(QUANTIZATIONS)}, got {name!r}")


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
    """Concatenate rows to one array, which is several times faster than one array per row."""
    return np.fromiter(chain.from_iterable(rows), dtype)


def _load_tokenizer(folder: Path, max_tokens: int) -> Any:
    from tokenizers import Tokenizer

    with foreign_errors(folder / TOKENIZER_FILE, EncoderError, "cannot be read", _AGAIN):
        tokenizer = Tokenizer.from_file(str(folder / TOKENIZER_FILE))
        tokenizer.no_padding()
        tokenizer.enable_truncation(max_tokens)
        return tokenizer


def _open_session(folder: Path) -> Any:
    onnxruntime = import_onnxruntime()
    options = onnxruntime.SessionOptions()
    # Two parallel calls with one thread each are 1.5 times as fast as one call with two threads.
    options.intra_op_num_threads = 1
    options.log_severity_level = 3  # errors only; warnings are about graph optimisation
    with foreign_errors(folder / MODEL_FILE, EncoderError, "cannot be run", _AGAIN):
        return onnxruntime.InferenceSession(
            folder / MODEL_FILE,
            options,
            providers=["CPUExecutionProvider"],
            disabled_optimizers=[_SLOW_FUSION],
        )
