"""A part of the data of a training: rows of a dataset with what an encoder made of their texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from emoglot.data.dataset import Dataset
from emoglot.encoders.base import Encoder
from emoglot.encoders.features import Features, extract_features
from emoglot.labels import Targets


class Inputs(Protocol):
    """Texts as inputs of a network: token vectors or token ids."""

    def __len__(self) -> int:
        """Return the number of texts."""

    @property
    def lengths(self) -> NDArray[np.int64]:
        """The number of tokens of every text."""

    @property
    def rows_with_tokens(self) -> NDArray[np.int64]:
        """The rows that have a token."""

    def select(self, rows: NDArray[np.int64]) -> Inputs:
        """Return the rows with these indices."""

    def pad(self, rows: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return a padded batch and the true lengths."""


@dataclass(frozen=True)
class Part:
    """The rows of one part, with their normalised texts and encoded inputs."""

    data: Dataset
    texts: Sequence[str]  # normalised
    inputs: Inputs  # of the network that is trained
    chances: NDArray[np.float32] | None = None  # probabilities of the labels, if given by teachers

    def __len__(self) -> int:
        return len(self.data)

    @property
    def features(self) -> Features:
        """The inputs, if they are token vectors."""
        assert isinstance(self.inputs, Features)
        return self.inputs

    @property
    def targets(self) -> Targets:
        """The targets of the rows."""
        return self.data.targets

    @property
    def learnt(self) -> NDArray[Any]:
        """What a network is trained to predict: the targets or, if there are any, probabilities in float32."""
        return self.targets if self.chances is None else self.chances

    def select(self, rows: NDArray[np.int64]) -> Part:
        """Return the rows with these indices."""
        chances = None if self.chances is None else self.chances[rows]
        return Part(self.data.select(rows), [self.texts[row] for row in rows], self.inputs.select(rows), chances)

    def with_tokens(self) -> Part:
        """Return the rows that have tokens."""
        return self.select(self.inputs.rows_with_tokens)

    def read_by(self, encoder: Encoder) -> Part:
        """Return the same rows encoded by another encoder."""
        return replace(self, inputs=extract_features(encoder, self.texts))
