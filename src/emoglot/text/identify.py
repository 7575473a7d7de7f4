"""Language identification: for the languages of each script, a linear model on hashed n-grams."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from emoglot.errors import ModelError
from emoglot.text.arguments import check_texts
from emoglot.text.language_names import NO_LANGUAGE
from emoglot.text.letters import SCRIPTS, Letters, hash_ngrams, read_letters

WEIGHTS_FILE = Path(__file__).with_name("identifier.safetensors")
# Below LEAST_CONFIDENCE seven in ten results are wrong. On held-out posts of about ten words, nine in ten reach
# TRUSTED_CONFIDENCE, and 97 in 100 of those are right (benchmarks/language.py).
LEAST_CONFIDENCE = 0.3
TRUSTED_CONFIDENCE = 0.7

_CHUNK = 1024  # texts whose n-grams fit into the processor's cache


@dataclass(frozen=True)
class Identified:
    """A language code with the probability that it is right; "und" with 0 if the language is unknown."""

    code: str
    confidence: float


UNKNOWN_LANGUAGE = Identified(NO_LANGUAGE, 0.0)


@dataclass(frozen=True, eq=False)
class Identifier:
    """The trained model; each class is a script and a language, such as "Latn:de"."""

    classes: tuple[str, ...]
    checks: NDArray[np.uint8]  # (buckets,): distinguish the n-grams of one bucket
    vectors: NDArray[np.int8]  # (buckets, dimensions)
    weight: NDArray[np.float32]  # (classes, dimensions)
    bias: NDArray[np.float32]  # (classes,)

    def logits(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return the logits (texts, classes); -inf for classes of other scripts."""
        in_script = self._in_script
        letters = read_letters(texts, in_script.sum(axis=1) > 1)
        # In double precision, so that the order of summation in a batch has no effect.
        logits = self._mean_vectors(letters) @ self.weight.T.astype(np.float64) + self.bias
        return np.where(in_script[letters.scripts], logits, -np.inf)

    @cached_property
    def _in_script(self) -> NDArray[np.bool_]:
        """Return the classes of each script (scripts, classes)."""
        return np.array([[name.startswith(f"{script}:") for name in self.classes] for script in SCRIPTS])

    def _mean_vectors(self, letters: Letters) -> NDArray[np.float64]:
        """Return the sum of the vectors of the known n-grams of each text, divided by the root of their number."""
        count = len(letters.scripts)
        sums, known_count = np.zeros((count, self.vectors.shape[1])), np.zeros(count)
        for hashes, owners in hash_ngrams(letters):
            keys = (hashes >> np.uint64(32)).astype(np.uint32)
            buckets = bucket_of(keys, len(self.checks))
            known = self.checks[buckets] == keys.astype(np.uint8)
            owner = owners[known]
            if len(owner):
                firsts = np.flatnonzero(np.diff(owner, prepend=-1))
                sums[owner[firsts]] += np.add.reduceat(self.vectors[buckets[known]], firsts, axis=0, dtype=np.int32)
                known_count += np.bincount(owner, minlength=count)
        mean: NDArray[np.float64] = sums / np.sqrt(np.maximum(known_count, 1))[:, None]
        return mean

    def identify(self, texts: Sequence[str]) -> list[Identified]:
        """Return the most probable language of each text."""
        logits = self.logits(texts)
        best = logits.argmax(axis=1)
        highest = logits[np.arange(len(texts)), best]
        readable = np.isfinite(highest)
        with np.errstate(invalid="ignore"):
            confidence = 1 / np.exp(logits - highest[:, None]).sum(axis=1)
        codes = [name.partition(":")[2] for name in self.classes]
        return [
            Identified(codes[place], round(share, 4))
            if known and share >= LEAST_CONFIDENCE and codes[place] != NO_LANGUAGE
            else UNKNOWN_LANGUAGE
            for place, share, known in zip(best.tolist(), confidence.tolist(), readable.tolist(), strict=True)
        ]


def identify(texts: Sequence[str]) -> list[Identified]:
    """Return the language of each text; "und" if it has no letters, an unknown script or no probable language."""
    texts = check_texts(texts)
    model = load_identifier()
    found: list[Identified] = []
    for first in range(0, len(texts), _CHUNK):
        found += model.identify(texts[first : first + _CHUNK])
    return found


def bucket_of(keys: NDArray[np.uint32], buckets: int) -> NDArray[np.int64]:
    """Return the buckets of n-grams from the upper 24 bits of their keys; the lower 8 are the check."""
    found: NDArray[np.int64] = ((keys >> np.uint32(8)).astype(np.int64) * buckets) >> 24
    return found


_lock = threading.Lock()
_loaded: list[Identifier] = []


def load_identifier() -> Identifier:
    """Load the model in the package on first use, once for all threads."""
    with _lock:
        if not _loaded:
            _loaded.append(read_identifier(WEIGHTS_FILE))
        return _loaded[0]


def read_identifier(path: Path) -> Identifier:
    """Read a model from a file."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            tensors = {name: file.get_tensor(name) for name in ("checks", "vectors", "weight", "bias")}
            return Identifier(classes=tuple(file.metadata()["classes"].split()), **tensors)
    except (OSError, KeyError, SafetensorError) as error:
        raise ModelError(
            f"{path} must contain the weights of the language identifier, got: {error}; reinstall"
        ) from error


def save_identifier(model: Identifier, path: Path) -> None:
    """Write a model to a file."""
    from safetensors.numpy import save_file

    tensors = {name: getattr(model, name) for name in ("checks", "vectors", "weight", "bias")}
    save_file(
        {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()},
        path,
        {"classes": " ".join(model.classes)},
    )
