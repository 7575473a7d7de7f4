"""Any Hugging Face model, by id or from a local folder, as a frozen encoder; XLM-RoBERTa is the reference."""

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
from emoglot.errors import EncoderError, MissingExtraError

# What XLM-R was trained to read at once; a longer text is cut there.
MAX_TOKENS = 512
_HUB_SECONDS = 10.0  # for the hub to say whether it has a model
_LONGEST_REASON = 120  # characters of somebody else's message that fit into a sentence of ours
# XLM-R numbers positions from 2, so that a table of 514 serves 512 tokens.
_FIRST_POSITION = 2
# No part of any token's hidden state; checkpoints may lack it, and it is then drawn at random.
_UNUSED = "pooler."
# How the last call padded and cut, not how a text is parted.
_NOT_THE_TOKENIZER = ("truncation", "padding")
# In one of these a transformers folder has its vocabulary.
_TOKENIZER_FILES = (
    "tokenizer.json",
    "sentencepiece.bpe.model",
    "spiece.model",
    "spm.model",
    "tokenizer.model",
    "vocab.txt",
    "vocab.json",
)
# What is computed with the weights. The rest of a config differs from one version of transformers to the next.
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
    """The hidden states of one layer (the last, unless told otherwise) of a pretrained transformer.

    The marks that frame a text (`<s>`, `</s>`) are read by the network but are no part of the text: they get no vector.
    """

    def __init__(self, name: str, *, layer: int | None = None, source: str | Path | None = None) -> None:
        self._torch = _import_torch()
        self.layer = layer
        self.folder = Path(source) if source is not None else None
        self.extends: tuple[str, ...] = ()  # the fingerprints of encoders whose weights these are, in other forms
        self.name = name if layer is None else f"{name}#{layer}"
        self.tokenizer, self.model = _load(str(source or name), is_folder=source is not None)
        # Whatever the folder says: vectors are found, and texts cut, from the left.
        self.tokenizer.padding_side = self.tokenizer.truncation_side = "right"
        if self.model.config.is_encoder_decoder:
            self.model = self.model.get_encoder()
        if self.tokenizer.pad_token is None:
            # Any token will do: the mask hides it from the network, and the lengths from the head.
            self.tokenizer.pad_token = self.tokenizer.eos_token or self.tokenizer.convert_ids_to_tokens(0)
        layers = int(self.model.config.num_hidden_layers)
        if layer is not None and not 0 <= layer <= layers:
            raise EncoderError(f"{name} has the layers 0 (embeddings) to {layers}, got layer {layer}")
        self._device = self._torch.device("cuda" if self._torch.cuda.is_available() else "cpu")
        # Half precision, in which some checkpoints come, is slow or unknown to a CPU.
        self.model.to(self._device).float().eval()
        positions = int(getattr(self.model.config, "max_position_embeddings", MAX_TOKENS + _FIRST_POSITION))
        if positions <= 0:  # as a network says that has no limit
            positions = MAX_TOKENS + _FIRST_POSITION
        self.max_tokens = min(MAX_TOKENS, int(self.tokenizer.model_max_length), positions - _FIRST_POSITION)

    @property
    def dim(self) -> int:
        """The hidden size of the network."""
        return int(self.model.config.hidden_size)

    @cached_property
    def fingerprint(self) -> str:
        """Hash tokenizer, settings, weights and layer: the name alone could come to mean another network."""
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
        """How many marks the tokenizer puts before a text, and behind it."""
        is_mark = self._tokenize(["a"])["special_tokens_mask"][0]
        before = is_mark.index(0)
        return before, is_mark[::-1].index(0)

    @property
    def unknown_id(self) -> int:
        """The id of a token that the vocabulary lacks, or of any mark where it lacks none."""
        found = self.tokenizer.unk_token_id
        return int(self.tokenizer.pad_token_id if found is None else found)

    def token_ids(self, texts: Sequence[str], limit: int) -> list[NDArray[np.int64]]:
        """Return the ids of every text, frame included, of at most `limit` tokens."""
        if not texts:  # transformers refuses an empty batch
            return []
        rows = self.tokenizer(list(texts), truncation=True, max_length=limit)["input_ids"]
        return [np.array(row, dtype=np.int64) for row in rows]

    def fresh_model(self, dropout: float) -> Any:
        """Return a copy of the network for training.

        The weights of attention are not dropped: it gains nothing here, and keeps torch from its fastest kernel.
        """
        model = copy.deepcopy(self.model)
        if getattr(model, "pooler", None) is not None:
            model.pooler = None  # no part of any token's vector
        for name, module in model.named_modules():
            if isinstance(module, self._torch.nn.Dropout):
                module.p = 0.0 if name.endswith("attention.self.dropout") else dropout
        return model

    def with_model(self, model: Any) -> HubEncoder:
        """Return this encoder with another network of the same shape."""
        twin = copy.copy(self)
        twin.__dict__.pop("fingerprint", None)  # it was computed of the old one
        twin.model, twin.folder, twin.extends = model, None, ()
        return twin

    def count_tokens(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Count subwords, frame included, as the network will pad them."""
        if not texts:  # transformers refuses an empty batch
            return np.empty(0, dtype=np.int64)
        encodings = self._tokenize(texts)
        return np.array([len(ids) for ids in encodings["input_ids"]], dtype=np.int64)

    def encode(self, texts: Sequence[str]) -> Ragged:
        """Run the network over one padded batch."""
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
        return Ragged(
            np.concatenate([rows[kept] for rows, kept in zip(states, text_tokens, strict=True)]),
            _spans(encodings["offset_mapping"], text_tokens),
            splits_of(np.array([len(kept) for kept in text_tokens], dtype=np.int64)),
        )

    def _tokenize(self, texts: Sequence[str]) -> Any:
        # Padding is left to `encode`, so that the masks and offsets here hold true tokens only.
        return self.tokenizer(
            list(texts),
            truncation=True,
            max_length=self.max_tokens,
            return_special_tokens_mask=True,
            return_offsets_mapping=True,
        )


def _spans(offsets: Sequence[Sequence[tuple[int, int]]], kept: Sequence[NDArray[np.int64]]) -> NDArray[np.int32]:
    rows = [np.array(row, dtype=np.int32).reshape(-1, 2)[indices] for row, indices in zip(offsets, kept, strict=True)]
    return np.concatenate(rows)


def _import_torch() -> Any:
    try:
        import torch
        import transformers  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(error.name or "torch", "hub", "an encoder from the Hugging Face hub") from error
    return torch


def _load(source: str, *, is_folder: bool) -> tuple[Any, Any]:
    """Load from the folder or the local cache first; ask the hub only for a name that is not there yet."""
    if is_folder and not any((Path(source) / name).is_file() for name in _TOKENIZER_FILES):
        # transformers would make up a tokenizer without a vocabulary.
        raise EncoderError(f"{source} has no tokenizer: put the {_TOKENIZER_FILES[0]} of its model there")
    try:
        tokenizer, model = _from_pretrained(source, local_files_only=True)
    except Exception as error:  # transformers, tokenizers and safetensors each raise types of their own
        if is_folder:
            raise EncoderError(f"{source} is not a readable transformers folder: {_reason(error)}") from error
        tokenizer, model = _download(source)
    if not tokenizer.is_fast:
        raise EncoderError(f"{source} has no fast tokenizer, so its tokens can't be traced to characters")
    return tokenizer, model


def _download(name: str) -> tuple[Any, Any]:
    from huggingface_hub import HfApi

    try:
        # Asked first, and once: without a network, transformers would try again for most of a minute.
        HfApi().model_info(name, timeout=_HUB_SECONDS)
        return _from_pretrained(name, local_files_only=False)
    except Exception as error:
        raise EncoderError(
            f"there is no encoder {name!r}: it is no folder, not installed, and the Hugging Face hub does not have it "
            f"or can't be reached ({_reason(error)}); `emoglot encoders` lists what can be used here"
        ) from error


def _reason(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)[:_LONGEST_REASON]


def _from_pretrained(source: str, local_files_only: bool) -> tuple[Any, Any]:
    """Load without transformers' own progress bars and reports; the user's setting is put back."""
    from transformers import AutoModel, AutoTokenizer
    from transformers.utils import logging as untyped_logging

    logging: Any = untyped_logging
    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    if local_files_only:  # a download may take minutes: there a bar is welcome
        logging.disable_progress_bar()
    try:
        tokenizer = AutoTokenizer.from_pretrained(source, local_files_only=local_files_only)
        return tokenizer, AutoModel.from_pretrained(source, local_files_only=local_files_only)
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()
