"""Hugging Face models as frozen encoders, by id or from a local folder."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emoglot.encoders.base import Ragged, splits_of
from emoglot.errors import EncoderError, needs_extra, reason_of
from emoglot.text.limit import READ_TOKENS

_HUB_SECONDS = 10.0  # timeout of a query to the hub
# XLM-R numbers positions from 2: a table of 514 is for 512 tokens.
_FIRST_POSITION = 2
# Not used for hidden states; random if a checkpoint lacks it.
_UNUSED = "pooler."
_COMPUTED = "position_ids"  # part of some old checkpoints
_LEAST_TOKENS = 3  # a text of one token, and a special one at both ends
# State of the last call, not part of the tokenizer.
_NOT_THE_TOKENIZER = ("truncation", "padding")
# Files with the vocabulary in a transformers folder.
_TOKENIZER_FILES = (
    "tokenizer.json",
    "sentencepiece.bpe.model",
    "spiece.model",
    "spm.model",
    "tokenizer.model",
    "vocab.txt",
    "vocab.json",
)
# Settings that affect the result. Others differ between versions of transformers.
_SETTINGS = (
    "model_type",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "hidden_act",
    "layer_norm_eps",
)


class HubEncoder:
    """The hidden states of one layer, by default the last, of a pretrained transformer.

    Special tokens (`<s>`, `</s>`) are input of the network, but get no vector.
    """

    def __init__(self, name: str, *, layer: int | None = None, source: str | Path | None = None) -> None:
        _import_torch()  # raises an error with the pip command if it is missing
        self.layer = layer
        self.folder = Path(source) if source is not None else None
        self.extends: tuple[str, ...] = ()  # fingerprints of encoders with the same weights in another form
        self.name = name if layer is None else f"{name}#{layer}"
        self.tokenizer, self.model = _load(str(source or name), is_folder=source is not None)
        # Independent of the folder: padding and truncation at the end.
        self.tokenizer.padding_side = self.tokenizer.truncation_side = "right"
        if self.model.config.is_encoder_decoder:
            self.model = self.model.get_encoder()
        if self.tokenizer.pad_token is None:
            # Any token, since padding is masked.
            self.tokenizer.pad_token = self.tokenizer.eos_token or self.tokenizer.convert_ids_to_tokens(0)
        layers = int(self.model.config.num_hidden_layers)
        if layer is not None and not 0 <= layer <= layers:
            raise EncoderError(f"{name} has the layers 0 (embeddings) to {layers}, got layer {layer}")
        self._device = self._torch.device("cuda" if self._torch.cuda.is_available() else "cpu")
        # Some checkpoints are in half precision, which is slow or unsupported on a CPU.
        self.model.to(self._device).float().eval()
        positions = int(getattr(self.model.config, "max_position_embeddings", READ_TOKENS + _FIRST_POSITION))
        if positions <= 0:  # the network has no limit
            positions = READ_TOKENS + _FIRST_POSITION
        self.max_tokens = min(READ_TOKENS, _longest_input(self.tokenizer, name), positions - _FIRST_POSITION)
        pieces, rows = len(self.tokenizer), self.model.get_input_embeddings().num_embeddings
        if pieces > rows:
            raise EncoderError(
                f"the tokenizer of {name} has {pieces} pieces, its network only {rows}: copy both from the same model"
            )

    @property
    def _torch(self) -> Any:
        return _import_torch()  # not an attribute: a module cannot be pickled

    @property
    def dim(self) -> int:
        """The hidden size of the network."""
        return int(self.model.config.hidden_size)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of tokenizer, settings, weights and layer."""
        tokenizer = json.loads(self.tokenizer.backend_tokenizer.to_str())
        kept = {key: value for key, value in tokenizer.items() if key not in _NOT_THE_TOKENIZER}
        settings = {name: getattr(self.model.config, name, None) for name in _SETTINGS}
        digest = hashlib.sha256(json.dumps([kept, settings], sort_keys=True, default=str).encode())
        for key, tensor in sorted(self.model.state_dict().items()):
            if key.startswith(_UNUSED):
                continue
            digest.update(key.encode())
            digest.update(np.ascontiguousarray(tensor.cpu().numpy()).data)
        digest.update(f"layer={self.layer} max_tokens={self.max_tokens}".encode())
        return digest.hexdigest()[:32]

    @cached_property
    def frame(self) -> tuple[int, int]:
        """The numbers of special tokens before and after a text."""
        is_mark = self._tokenize(["a"])["special_tokens_mask"][0]
        before = is_mark.index(0)
        return before, is_mark[::-1].index(0)

    @property
    def unknown_id(self) -> int:
        """The id of the unknown token, or of padding if there is none."""
        found = self.tokenizer.unk_token_id
        return int(self.tokenizer.pad_token_id if found is None else found)

    def token_ids(self, texts: Sequence[str], limit: int) -> list[NDArray[np.int64]]:
        """Return the token ids of every text, special tokens included, at most `limit`."""
        if not texts:  # transformers fails for an empty batch
            return []
        rows = self.tokenizer(list(texts), truncation=True, max_length=limit)["input_ids"]
        return [np.array(row, dtype=np.int64) for row in rows]

    def fresh_model(self, dropout: float) -> Any:
        """Return a copy of the network for training.

        There is no dropout of attention weights: it did not help, and prevents torch's fastest kernel.
        """
        model = copy.deepcopy(self.model)
        if getattr(model, "pooler", None) is not None:
            model.pooler = None  # not used for token vectors
        for name, module in model.named_modules():
            if isinstance(module, self._torch.nn.Dropout):
                module.p = 0.0 if name.endswith("attention.self.dropout") else dropout
        return model

    def with_model(self, model: Any) -> HubEncoder:
        """Return a copy of this encoder with another network of the same shape."""
        twin = copy.copy(self)
        twin.__dict__.pop("fingerprint", None)  # cached for the old network
        twin.model, twin.folder, twin.extends = model, None, ()
        return twin

    def count_tokens(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Count tokens, special tokens included."""
        return np.array([len(ids) for ids in self.token_ids(texts, self.max_tokens)], dtype=np.int64)

    def encode(self, texts: Sequence[str]) -> Ragged:
        """Encode one padded batch."""
        if not texts:
            return Ragged.join([], self.dim)
        encodings = self._tokenize(texts)
        batch = self.tokenizer.pad(
            {key: encodings[key] for key in ("input_ids", "attention_mask")}, padding=True, return_tensors="pt"
        ).to(self._device)
        with self._torch.inference_mode():
            output = self.model(**batch, output_hidden_states=self.layer is not None)
        states = output.last_hidden_state if self.layer is None else output.hidden_states[self.layer]
        states = states.float().cpu().numpy()  # (texts, padded tokens, dim)
        text_tokens = [np.flatnonzero(np.array(mask) == 0) for mask in encodings["special_tokens_mask"]]
        offsets = [np.array(row, dtype=np.int32).reshape(-1, 2) for row in encodings["offset_mapping"]]
        return Ragged(
            np.concatenate([rows[kept] for rows, kept in zip(states, text_tokens, strict=True)]),
            np.concatenate([rows[kept] for rows, kept in zip(offsets, text_tokens, strict=True)]),
            splits_of(np.array([len(kept) for kept in text_tokens], dtype=np.int64)),
        )

    def _tokenize(self, texts: Sequence[str]) -> Any:
        # Without padding, so that masks and offsets contain true tokens only.
        return self.tokenizer(
            list(texts),
            truncation=True,
            max_length=self.max_tokens,
            return_special_tokens_mask=True,
            return_offsets_mapping=True,
        )


def _import_torch() -> Any:
    with needs_extra("hub", "an encoder from the Hugging Face hub"):
        import torch
        import transformers  # noqa: F401
    return torch


def _longest_input(tokenizer: Any, name: str) -> int:
    """Return how many tokens the tokenizer says that the network reads."""
    given = tokenizer.model_max_length
    if not isinstance(given, int | float) or given < _LEAST_TOKENS:
        raise EncoderError(
            f"model_max_length in the tokenizer_config.json of {name} must be a number of at least {_LEAST_TOKENS}, "
            f"got {given!r}"
        )
    return int(given)


def _load(source: str, *, is_folder: bool) -> tuple[Any, Any]:
    """Load tokenizer and network from a folder or the local cache, else from the hub."""
    if is_folder and not any((Path(source) / name).is_file() for name in _TOKENIZER_FILES):
        # transformers would create a tokenizer without a vocabulary.
        raise EncoderError(f"{source} has no tokenizer: copy the {_TOKENIZER_FILES[0]} of its model there")
    try:
        tokenizer, model = _from_pretrained(source, local_files_only=True)
    except EncoderError:
        raise
    except Exception as error:  # transformers, tokenizers and safetensors raise many types
        if is_folder:
            raise EncoderError(f"{source} is not a readable transformers folder: {reason_of(error)}") from error
        tokenizer, model = _download(source)
    if not tokenizer.is_fast:
        raise EncoderError(f"{source} has no fast tokenizer, so its tokens have no character spans")
    return tokenizer, model


def _download(name: str) -> tuple[Any, Any]:
    from huggingface_hub import HfApi

    try:
        # One query first: without a network, transformers would retry for most of a minute.
        HfApi().model_info(name, timeout=_HUB_SECONDS)
        return _from_pretrained(name, local_files_only=False)
    except EncoderError:
        raise
    except Exception as error:
        raise EncoderError(
            f"there is no encoder {name!r}: it is not a folder, not installed, and the Hugging Face hub does not have "
            f"it or cannot be reached ({reason_of(error)}); `emoglot encoders` lists the available encoders"
        ) from error


def _from_pretrained(source: str, local_files_only: bool) -> tuple[Any, Any]:
    """Load without messages and progress bars of transformers; its settings are restored."""
    from transformers import AutoModel, AutoTokenizer
    from transformers.utils import logging as untyped_logging

    logging: Any = untyped_logging
    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    if local_files_only:  # keep the progress bars of downloads
        logging.disable_progress_bar()
    try:
        # Without the second setting, transformers would ask in a terminal whether to run code of the model.
        settings = {"local_files_only": local_files_only, "trust_remote_code": False}
        tokenizer = AutoTokenizer.from_pretrained(source, **settings)
        model, found = AutoModel.from_pretrained(source, output_loading_info=True, **settings)
    except ValueError as error:
        if "trust_remote_code" not in str(error):
            raise
        raise EncoderError(
            f"{source} needs code of its own, which emoglot does not run: use another encoder"
        ) from error
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()
    missing = sorted(
        key for key in found["missing_keys"] if not key.startswith(_UNUSED) and not key.endswith(_COMPUTED)
    )
    if missing:  # transformers would replace them by random ones
        raise EncoderError(
            f"the weights of {source} lack {len(missing)} tensors that its config.json asks for, the first is "
            f"{missing[0]}: copy its files again"
        )
    return tokenizer, model
