"""Runs a compiled head with onnxruntime: features in, logits and attention out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from emoglot.encoders.features import Features, length_sorted_batches
from emoglot.encoders.onnxruntime import import_onnxruntime
from emoglot.errors import ModelError
from emoglot.inference.ngrams import WideChannel

# Tokens per run: 64 tweets of 32 tokens; larger batches are not faster on a laptop.
TOKEN_BUDGET = 2048

Float = TypeVar("Float", bound=np.floating[Any])


class HeadRuntime:
    """An onnxruntime session over the bytes of a compiled head."""

    def __init__(self, graph: bytes) -> None:
        onnxruntime = import_onnxruntime()
        options = onnxruntime.SessionOptions()
        # Idle threads must not take time from the encoder.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.log_severity_level = 3  # errors only; warnings are about graph optimisation
        try:
            self._session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime raises its own unexported types
            raise ModelError(f"the model's network cannot be run by onnxruntime: {error}") from error
        self.dim, self.width = self._check_shape()

    def _check_shape(self) -> tuple[int, int]:
        inputs = {item.name: item.shape for item in self._session.get_inputs()}
        outputs = {item.name: item.shape for item in self._session.get_outputs()}
        if set(inputs) != {"vectors", "lengths"} or set(outputs) != {"logits", "attention"}:
            raise ModelError(f"the model's network must map vectors and lengths to logits and attention, got {inputs}")
        return int(inputs["vectors"][2]), int(outputs["logits"][1])

    def logits(self, features: Features) -> NDArray[np.float32]:
        """Return the logits (texts, labels); -∞ for a text without tokens."""
        result = np.full((len(features), self.width), -np.inf, dtype=np.float32)
        rows = features.rows_with_tokens
        for batch in length_sorted_batches(features.lengths[rows], TOKEN_BUDGET):
            result[rows[batch]] = self._run("logits", *features.pad(rows[batch]))
        return result

    def attention(self, features: Features, row: int) -> NDArray[np.float32]:
        """Return the attention weights of the tokens of one text; they sum to 1."""
        if not features.lengths[row]:
            return np.empty(0, dtype=np.float32)
        weights = self._run("attention", *features.pad(np.array([row])))
        return np.asarray(weights[0], dtype=np.float32)

    def _run(self, output: str, vectors: NDArray[np.float16], lengths: NDArray[np.int64]) -> Any:
        return self._session.run([output], {"vectors": vectors.astype(np.float32), "lengths": lengths})[0]


def logits_of(
    runtime: HeadRuntime, wide: WideChannel | None, features: Features, texts: Sequence[str]
) -> NDArray[np.float32]:
    """Return the logits of encoded texts: the head's, averaged with those of the wide channel if there is one."""
    logits = runtime.logits(features)
    return wide.join(logits, texts) if wide else logits


def score_features(
    runtime: HeadRuntime, wide: WideChannel | None, features: Features, texts: Sequence[str]
) -> NDArray[np.float32]:
    """Return the scores of encoded texts."""
    return sigmoid(logits_of(runtime, wide, features, texts))


def sigmoid(logits: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the scores of logits without overflow; -∞ becomes 0."""
    return np.asarray(np.exp(-np.logaddexp(0, -logits.astype(np.float64))), dtype=np.float32)


def logit(scores: NDArray[Float], lowest: float, highest: float) -> NDArray[Float]:
    """Return the logits of scores, which are first limited to a range: those of 0 and 1 are infinite."""
    inside = np.clip(scores, lowest, highest)
    return np.asarray(np.log(inside / (1 - inside)), dtype=scores.dtype)
