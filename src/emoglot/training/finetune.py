"""Fine-tuning: trains an encoder together with its head."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.optim import Optimizer

from emoglot.config import Config
from emoglot.encoders.base import Ragged, splits_of
from emoglot.encoders.bert_graph import can_compile
from emoglot.encoders.features import FeatureCache, Progress, extract_features
from emoglot.encoders.hub import HubEncoder
from emoglot.errors import UsageError
from emoglot.inference.folder import under
from emoglot.training.head import Head, make_head
from emoglot.training.part import Inputs

# Longer gradients, which come from unusual batches, are clipped.
_LARGEST_GRADIENT = 1.0
_FINAL_RATE = 0.02  # share of the learning rate in the last steps


@dataclass(frozen=True)
class TokenIds:
    """The token ids of texts, special tokens at both ends included."""

    rows: tuple[NDArray[np.int64], ...]
    frame: int  # number of special tokens per text

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """The number of tokens of every text, special tokens included."""
        return np.array([len(row) for row in self.rows], dtype=np.int64)

    @property
    def rows_with_tokens(self) -> NDArray[np.int64]:
        """The rows with a token that is not special."""
        return np.flatnonzero(self.lengths > self.frame)

    def select(self, rows: NDArray[np.int64]) -> TokenIds:
        """Return the rows with these indices."""
        return TokenIds(tuple(self.rows[row] for row in rows), self.frame)

    def pad(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return a batch (rows, longest), padded with 0, and the true lengths."""
        lengths = np.array([len(self.rows[row]) for row in rows], dtype=np.int64)
        batch = np.zeros((len(rows), int(lengths.max(initial=0))), dtype=np.int64)
        for slot, row in enumerate(rows):
            batch[slot, : lengths[slot]] = self.rows[row]
        return batch, lengths


def read_inputs(
    encoder: HubEncoder, texts: Sequence[str], config: Config, cache: FeatureCache | None, progress: Progress | None
) -> Inputs:
    """Return the inputs of the trained layers: token ids, or the output of the frozen layers, computed once."""
    settings = config.fine_tune
    check_layers(encoder, settings.frozen_layers)
    if settings.frozen_layers:
        lower = LowerLayers(encoder, settings.frozen_layers, settings.max_tokens)
        return extract_features(lower, texts, cache.beside(lower) if cache else None, progress)
    limit = min(settings.max_tokens, encoder.max_tokens)
    return TokenIds(tuple(encoder.token_ids(texts, limit)), sum(encoder.frame))


def check_layers(encoder: HubEncoder, frozen: int) -> None:
    """Raise UsageError if so many layers of this network cannot be frozen."""
    if not frozen:
        return
    layers = _layers(encoder.model)
    # Other networks share parameters between layers, or have more between embeddings and layers.
    if layers is None or not can_compile(encoder.model.config.to_dict()):
        raise UsageError(
            f"layers can be frozen one by one in BERT, RoBERTa and XLM-R, {encoder.name} is a "
            f"{encoder.model.config.model_type}: set fine_tune.frozen_layers=0"
        )
    if frozen >= len(layers):
        raise UsageError(f"fine_tune.frozen_layers must leave one of {len(layers)} layers to train, got {frozen}")


class LowerLayers:
    """The lowest layers of an encoder as a frozen encoder; special tokens also get vectors."""

    def __init__(self, encoder: HubEncoder, layers: int, max_tokens: int) -> None:
        self._encoder, self._layers = encoder, layers
        self._max_tokens = min(max_tokens, encoder.max_tokens)
        self.name = f"{encoder.name}#{layers}"
        self.fingerprint = f"{encoder.fingerprint}-lowest-{layers}-of-{self._max_tokens}"
        self.dim = encoder.dim

    def count_tokens(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Count tokens, special tokens included."""
        return np.array([len(ids) for ids in self._encoder.token_ids(texts, self._max_tokens)], dtype=np.int64)

    def encode(self, texts: Sequence[str]) -> Ragged:
        """Encode one padded batch."""
        ids = TokenIds(tuple(self._encoder.token_ids(texts, self._max_tokens)), sum(self._encoder.frame))
        padded, lengths = ids.pad(np.arange(len(texts)))
        model = self._encoder.model
        mask = np.arange(padded.shape[1]) < lengths[:, None]
        with torch.inference_mode():
            states = model(
                input_ids=torch.from_numpy(padded).to(model.device),
                attention_mask=torch.from_numpy(mask).long().to(model.device),
                output_hidden_states=True,
            ).hidden_states[self._layers]
        vectors = states.float().cpu().numpy()[mask]
        # The spans of these tokens are not used.
        return Ragged(vectors, np.zeros((len(vectors), 2), np.int32), splits_of(lengths))


class TunedNetwork(nn.Module):
    """An encoder with its head: maps token ids, or the output of frozen layers, to logits and attention."""

    def __init__(self, encoder: nn.Module, head: Head, frame: tuple[int, int], precision: str) -> None:
        super().__init__()
        self.encoder, self.head = encoder, head
        self._before, self._after = frame
        self._is_reduced = precision == "bfloat16"

    def forward(self, inputs: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Map a padded batch and its true lengths, special tokens included, to logits and attention."""
        mask = torch.arange(inputs.shape[1], device=inputs.device) < lengths[:, None]
        name = "inputs_embeds" if inputs.is_floating_point() else "input_ids"
        with _bfloat16(inputs.device) if self._is_reduced and self.training else nullcontext():
            states = self.encoder(**{name: inputs}, attention_mask=mask.long()).last_hidden_state
        # (batch, tokens, dim), without special tokens, as in prediction
        logits, attention = self.head(states.float()[:, self._before :], lengths - self._before - self._after)
        return logits, attention


@contextmanager
def _bfloat16(device: torch.device) -> Iterator[None]:
    """Compute products in bfloat16, sums and norms in float32."""
    # On a CPU, torch's fused attention is seven times as slow in bfloat16 as in float32, its plain one is not.
    attention = sdpa_kernel(SDPBackend.MATH) if device.type == "cpu" else nullcontext()
    with attention, torch.autocast(device.type, torch.bfloat16):
        yield


class FineTuner:
    """A `trainer.Learner` that trains an encoder and its head."""

    largest_gradient: float | None = _LARGEST_GRADIENT

    def __init__(self, encoder: HubEncoder, config: Config) -> None:
        self._encoder, self._config = encoder, config
        self.batches_per_step = config.fine_tune.accumulate

    def make_network(self, labels: int) -> nn.Module:
        """Return the pretrained encoder with a randomly initialised head."""
        settings = self._config.fine_tune
        model = self._encoder.fresh_model(settings.dropout)
        if not settings.embeddings:
            model.get_input_embeddings().requires_grad_(False)
            if (embeddings := getattr(model, "embeddings", None)) is not None:
                embeddings.requires_grad_(False)
        if settings.frozen_layers:
            model.embeddings = _Through()
            model.encoder.layer = model.encoder.layer[settings.frozen_layers :]
        head = make_head(self._config.head, self._encoder.dim, labels)
        return TunedNetwork(model, head, self._encoder.frame, settings.precision)

    def make_optimiser(self, network: nn.Module, biases: Sequence[Tensor]) -> Optimizer:
        """Return AdamW with learning rates that decrease from the head to the lowest layer."""
        assert isinstance(network, TunedNetwork)
        settings = self._config.fine_tune
        head_rate = self._config.training.learning_rate
        groups = [
            *_groups(network.head, head_rate, settings.weight_decay),
            {"params": list(biases), "lr": head_rate, "weight_decay": 0.0},
        ]
        layers = _layers(network.encoder) or []
        in_layers = {id(tensor) for layer in layers for tensor in layer.parameters()}
        for depth, layer in enumerate(layers):
            rate = settings.learning_rate * settings.layer_decay ** (len(layers) - 1 - depth)
            groups += _groups(layer, rate, settings.weight_decay)
        # Parameters outside of layers: embeddings, or all of a network of another architecture.
        rate = settings.learning_rate * settings.layer_decay ** len(layers)
        groups += _groups(network.encoder, rate, settings.weight_decay, without=in_layers)
        return torch.optim.AdamW([group for group in groups if group["params"]], fused=True)

    def rate(self, step: int, steps: int) -> float:
        """Return the factor of the learning rates: it rises in the first steps, then falls to the end."""
        warm_up = max(1.0, self._config.fine_tune.warm_up * steps)
        return min(1.0, (step + 1) / warm_up) * max(_FINAL_RATE, 1 - step / steps)

    def drop(self, padded: Tensor, is_dropped: Tensor) -> Tensor:
        """Return inputs with some tokens, possibly special ones, replaced by the unknown token."""
        if padded.is_floating_point():
            return padded * ~is_dropped[..., None]
        return padded.masked_fill(is_dropped, self._encoder.unknown_id)

    def tuned_encoder(self, weights: Mapping[str, NDArray[np.float32]]) -> HubEncoder:
        """Return the whole encoder, frozen layers included, with trained weights."""
        model = self._encoder.fresh_model(dropout=0.0)
        frozen = self._config.fine_tune.frozen_layers
        part, prefix = (model.encoder.layer[frozen:], "encoder.encoder.layer.") if frozen else (model, "encoder.")
        trained = {name: torch.from_numpy(array.copy()) for name, array in under(prefix, weights).items()}
        found = part.load_state_dict(trained, strict=False)
        lost = [name for name in weights if name.startswith("encoder.") and not name.startswith(prefix)]
        assert not [*found.unexpected_keys, *lost], (found.unexpected_keys, lost)
        return self._encoder.with_model(model.eval())


class _Through(nn.Module):
    """Replaces the layers below, which were run before: returns its input."""

    def forward(self, *_: Any, inputs_embeds: Tensor, **__: Any) -> Tensor:
        return inputs_embeds


def _layers(model: nn.Module) -> Any:
    """Return the layers of a BERT or RoBERTa, lowest first; None for other networks."""
    layers = getattr(getattr(model, "encoder", None), "layer", None)
    return layers if isinstance(layers, nn.ModuleList) else None


def _groups(module: nn.Module, rate: float, decay: float, without: Collection[int] = ()) -> list[dict[str, Any]]:
    """Return the trained parameters in two groups: matrices, which decay, and biases and norms, which do not."""
    parameters = [tensor for tensor in module.parameters() if tensor.requires_grad and id(tensor) not in without]
    return [
        {"params": [tensor for tensor in parameters if tensor.ndim > 1], "lr": rate, "weight_decay": decay},
        {"params": [tensor for tensor in parameters if tensor.ndim <= 1], "lr": rate, "weight_decay": 0.0},
    ]
