"""The trainable heads: map token vectors to one logit per label and the attention of each token."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from emoglot.config import HeadConfig

# Standard deviation of the initial states in training, as in the paper's code; zeros in prediction.
INITIAL_STATE_SPREAD = 0.01
# XML-CNN's windows and bottleneck, and the paper's number of filters for each window.
CNN_WINDOWS = (2, 4, 8)
CNN_FILTERS = 32
CNN_BOTTLENECK = 512
CNN_CHUNKS = 8  # of dynamic pooling; a tweet has about 30 tokens, a chunk about four

_RECURRENT = {"lstm": nn.LSTM, "gru": nn.GRU, "rnn": nn.RNN}


class RecurrentHead(nn.Module):
    """Recurrent layers in one or two directions, attention pooling, a linear layer."""

    def __init__(self, config: HeadConfig, dim: int, labels: int) -> None:
        super().__init__()
        directions = 2 if config.bidirectional else 1
        inner = config.hidden * directions
        sizes = [dim] + [inner] * (config.layers - 1)
        self.layers = nn.ModuleList(RecurrentLayer(config, size) for size in sizes)
        self.attention = nn.Parameter(torch.zeros(inner))
        self.output = nn.Linear(inner, labels)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, vectors: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Map (batch, tokens, dim) and true lengths to logits (batch, labels) and attention (batch, tokens)."""
        states = vectors
        for depth, layer in enumerate(self.layers):
            if depth:
                states = self.dropout(states)
            states = layer(states, lengths)  # (batch, tokens, hidden × directions)
        relevance = states @ self.attention  # (batch, tokens)
        beta = torch.softmax(relevance.masked_fill(~token_mask(states, lengths), -torch.inf), dim=1)
        pooled = (beta[:, None] @ states)[:, 0]  # (batch, hidden × directions)
        return self.output(self.dropout(pooled)), beta


class RecurrentLayer(nn.Module):
    """One recurrent layer that is not affected by padding.

    For the backward direction every text is reversed within its own length, so that padding comes last in both
    directions. This is equivalent to packed sequences, and faster, since it uses oneDNN's kernels.
    """

    def __init__(self, config: HeadConfig, dim: int) -> None:
        super().__init__()
        cell = _RECURRENT[config.kind]
        self.ahead = cell(dim, config.hidden, batch_first=True)
        self.back = cell(dim, config.hidden, batch_first=True) if config.bidirectional else None

    def forward(self, states: Tensor, lengths: Tensor) -> Tensor:
        """Map (batch, tokens, in) to the concatenated states of both directions."""
        ahead: Tensor = self.ahead(states, self._initial(self.ahead, states))[0]
        if self.back is None:
            return ahead
        turned = turn_around(states, lengths)
        back = self.back(turned, self._initial(self.back, states))[0]
        return torch.cat([ahead, turn_around(back, lengths)], dim=2)

    def _initial(self, cell: nn.RNNBase, states: Tensor) -> Tensor | tuple[Tensor, Tensor] | None:
        if not self.training:
            return None  # zeros
        shape = (1, len(states), cell.hidden_size)
        hidden = INITIAL_STATE_SPREAD * torch.randn(shape, device=states.device)
        if isinstance(cell, nn.LSTM):
            return hidden, INITIAL_STATE_SPREAD * torch.randn(shape, device=states.device)
        return hidden


class XmlCnnHead(nn.Module):
    """Convolutions over tokens, max-pooling in a fixed number of chunks, a bottleneck, a linear layer (Liu et al.).

    Chunks depend on the length of each text. There is no attention: all tokens have the same weight.
    """

    def __init__(self, config: HeadConfig, dim: int, labels: int) -> None:
        super().__init__()
        self.convolutions = nn.ModuleList(nn.Conv1d(dim, CNN_FILTERS, width) for width in CNN_WINDOWS)
        self.bottleneck = nn.Linear(len(CNN_WINDOWS) * CNN_FILTERS * CNN_CHUNKS, CNN_BOTTLENECK)
        self.output = nn.Linear(CNN_BOTTLENECK, labels)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, vectors: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Map (batch, tokens, dim) and true lengths to logits (batch, labels) and even weights (batch, tokens)."""
        mask = token_mask(vectors, lengths)
        chunks = chunk_mask(vectors, lengths)  # (batch, chunks, tokens)
        channels = (vectors * mask[..., None]).transpose(1, 2)  # (batch, dim, tokens)
        pooled = []
        for width, convolution in zip(CNN_WINDOWS, self.convolutions, strict=True):
            # A window starts at every token; past the end of a text there are zeros.
            padded = nn.functional.pad(channels, (0, width - 1))
            activation = torch.relu(convolution(padded))  # (batch, filters, tokens)
            # ReLU is never negative, so zeros outside a chunk do not change its maximum.
            pooled.append((activation[:, :, None] * chunks[:, None]).amax(dim=3).flatten(1))
        hidden = torch.relu(self.bottleneck(self.dropout(torch.cat(pooled, dim=1))))
        return self.output(self.dropout(hidden)), mask / lengths[:, None]


class LabelAttentionHead(nn.Module):
    """A linear layer on every token, pooled by one attention per label.

    With a fine-tuned encoder it is as good as recurrent layers and much faster.
    """

    def __init__(self, config: HeadConfig, dim: int, labels: int) -> None:
        super().__init__()
        self.attention = nn.Parameter(torch.zeros(labels, dim))
        self.output = nn.Linear(dim, labels)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, vectors: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Map (batch, tokens, dim) and true lengths to logits (batch, labels) and mean attention (batch, tokens)."""
        relevance = vectors @ self.attention.T  # (batch, tokens, labels)
        mask = token_mask(vectors, lengths)[..., None]
        beta = torch.softmax(relevance.masked_fill(~mask, -torch.inf), dim=1)
        votes = self.output(self.dropout(vectors))  # (batch, tokens, labels)
        return (beta * votes).sum(dim=1), beta.mean(dim=2)


Head = RecurrentHead | XmlCnnHead | LabelAttentionHead


def make_head(config: HeadConfig, dim: int, labels: int) -> Head:
    """Return a head of the kind that the config names."""
    if config.kind == "xml-cnn":
        return XmlCnnHead(config, dim, labels)
    if config.kind == "attention":
        return LabelAttentionHead(config, dim, labels)
    return RecurrentHead(config, dim, labels)


def token_mask(states: Tensor, lengths: Tensor) -> Tensor:
    """Return the mask of true tokens (batch, tokens)."""
    return torch.arange(states.shape[1], device=states.device) < lengths[:, None]


def turn_around(states: Tensor, lengths: Tensor) -> Tensor:
    """Reverse every text within its own length, without its padding."""
    position = torch.arange(states.shape[1], device=states.device)
    source = torch.where(token_mask(states, lengths), lengths[:, None] - 1 - position, position)
    return states.gather(1, source[..., None].expand_as(states))


def chunk_mask(states: Tensor, lengths: Tensor) -> Tensor:
    """Return the mask of each chunk (batch, chunks, tokens): chunk c of n tokens is ⌊cn/C⌋ to ⌈(c+1)n/C⌉."""
    position = torch.arange(states.shape[1], device=states.device)
    chunk = torch.arange(CNN_CHUNKS, device=states.device)
    start = chunk * lengths[:, None] // CNN_CHUNKS  # (batch, chunks)
    end = ((chunk + 1) * lengths[:, None] + CNN_CHUNKS - 1) // CNN_CHUNKS
    return (position >= start[..., None]) & (position < end[..., None])
