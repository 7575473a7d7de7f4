"""Token vectors of many texts: encoded once, cached on disk, read through memory maps.

The cache is a folder per encoder and normalisation, holding immutable segments:

    <root>/<encoder fingerprint>-n<normalisation version>/<random name>/{keys,splits,spans,vectors}.npy

A segment is written under a temporary name and renamed when complete, so a crash leaves no incomplete segment. Two
processes never write the same file; at worst both encode the same text. A cache of more than MOST_BYTES loses the
segments that were not used for the longest time when it is opened, except those that were used in the last day.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emoglot.concurrency import available_cores, side_by_side
from emoglot.encoders.base import Encoder, Ragged
from emoglot.encoders.onnx import OnnxEncoder
from emoglot.files import folder_in_the_making
from emoglot.text.normalise import NORMALISATION_VERSION

Progress = Callable[[int, int], None]  # texts done, all texts

# Tokens per call of the encoder: more are not faster on a CPU, and XLM-R-large fits into 4 GB.
TOKEN_BUDGET = 4096
# Tokens per segment: the most that a crash can lose, about a minute of XLM-R on a laptop.
SEGMENT_TOKENS = 65536
COUNTED_AT_ONCE = 4096  # texts
MOST_BYTES = 20 * 10**9  # of all encoders: 350,000 tweets of XLM-R-large, or 900,000 of e5-small
_STALE_SECONDS = 24 * 3600
_KEY_BYTES = 16


@dataclass(frozen=True)
class Segment:
    """The tokens of some texts, in memory or mapped from disk."""

    keys: NDArray[np.uint8]  # (texts, 16)
    splits: NDArray[np.int64]  # (texts + 1,)
    spans: NDArray[np.int32]  # (tokens, 2)
    vectors: NDArray[np.float16]  # (tokens, dim)

    @classmethod
    def open(cls, folder: Path) -> Segment:
        """Read a segment; only the vectors are memory-mapped, to limit the number of open files."""
        small = {name: _read_array(folder, name) for name in ("keys", "splits", "spans")}
        segment = cls(**small, vectors=np.lib.format.open_memmap(folder / "vectors.npy", mode="r"))
        texts, tokens = len(segment.keys), len(segment.vectors)
        if segment.splits.shape != (texts + 1,) or segment.splits[-1] != tokens or segment.spans.shape != (tokens, 2):
            raise ValueError("the arrays do not fit together")
        return segment

    def write(self, folder: Path) -> Path:
        """Write the segment atomically and return its folder."""
        target = folder / uuid.uuid4().hex
        with folder_in_the_making(target) as draft:
            for name in _SEGMENT_ARRAYS:
                with (draft / f"{name}.npy").open("wb") as file:
                    np.save(file, getattr(self, name))
                    file.flush()
                    os.fsync(file.fileno())
        return target


_SEGMENT_ARRAYS = tuple(Segment.__dataclass_fields__)


@dataclass(frozen=True)
class Features:
    """The token vectors of a list of texts."""

    segments: tuple[Segment, ...]
    places: NDArray[np.int64]  # (texts, 3): segment, start and end of the tokens
    dim: int

    def __len__(self) -> int:
        return len(self.places)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """The number of tokens of every text."""
        return np.asarray(self.places[:, 2] - self.places[:, 1])

    @property
    def rows_with_tokens(self) -> NDArray[np.int64]:
        """The rows that have a token."""
        return np.flatnonzero(self.lengths)

    def vectors(self, row: int) -> NDArray[np.float16]:
        """Return the token vectors of one text (tokens, dim)."""
        segment, start, end = self.places[row]
        return np.asarray(self.segments[segment].vectors[start:end])

    def spans(self, row: int) -> NDArray[np.int32]:
        """Return the character spans of the tokens of one text (tokens, 2)."""
        segment, start, end = self.places[row]
        return np.asarray(self.segments[segment].spans[start:end])

    def select(self, rows: NDArray[np.int64]) -> Features:
        """Return the rows with these indices."""
        return Features(self.segments, self.places[rows], self.dim)

    def pad(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.float16], NDArray[np.int64]]:
        """Return a batch (rows, longest, dim) padded with zeros, and the true lengths."""
        lengths = self.lengths[rows]
        batch = np.zeros((len(rows), int(lengths.max(initial=0)), self.dim), dtype=np.float16)
        for slot, row in enumerate(rows):
            batch[slot, : lengths[slot]] = self.vectors(row)
        return batch, lengths


class FeatureCache:
    """The segments of one encoder on disk."""

    def __init__(self, root: Path, encoder: Encoder) -> None:
        self._root = root
        self.folder = root / f"{encoder.fingerprint}-n{NORMALISATION_VERSION}"
        self._remove_stale_drafts()
        self._remove_unused()

    def beside(self, encoder: Encoder) -> FeatureCache:
        """Return the cache of another encoder with the same root."""
        return FeatureCache(self._root, encoder)

    def find(self, wanted: Collection[bytes]) -> Iterator[Segment]:
        """Yield the segments with a wanted text; damaged ones are skipped."""
        wanted = frozenset(wanted)
        for folder in sorted(self.folder.glob("[!.]*")):
            try:
                if not wanted.isdisjoint(_split_keys(_read_array(folder, "keys"))):
                    segment = Segment.open(folder)
                    with suppress(OSError):  # a cache that is read-only can be used as well
                        os.utime(folder)  # the time of its last use
                    yield segment
            except (FileNotFoundError, NotADirectoryError, ValueError):
                continue

    def add(self, segment: Segment) -> Segment:
        """Write a segment and return it mapped from disk, which frees memory."""
        return Segment.open(segment.write(self.folder))

    def _remove_stale_drafts(self) -> None:
        # A draft this old belongs to a run that died; a younger one may be in use.
        for draft in self.folder.glob(".*"):
            with suppress(FileNotFoundError):  # it was just completed
                if time.time() - draft.stat().st_mtime > _STALE_SECONDS:
                    shutil.rmtree(draft, ignore_errors=True)

    def _remove_unused(self) -> None:
        found = []
        for folder in self._root.glob(f"*-n*/{'[0-9a-f]' * 32}"):
            with suppress(OSError):  # another process removes it
                size = sum(path.stat().st_size for path in folder.glob("*.npy"))
                found.append((folder.stat().st_mtime, folder, size))
        total = sum(size for _, _, size in found)
        for last_use, folder, size in sorted(found):
            if total <= MOST_BYTES or time.time() - last_use <= _STALE_SECONDS:
                return
            with suppress(OSError):  # it is mapped by a process on Windows, read-only, or has a file of the user
                for name in reversed(_SEGMENT_ARRAYS):  # the vectors first: without them, no other array is lost
                    (folder / f"{name}.npy").unlink(missing_ok=True)
                folder.rmdir()
            total -= size


def extract_features(
    encoder: Encoder,
    texts: Sequence[str],
    cache: FeatureCache | None = None,
    progress: Progress | None = None,
) -> Features:
    """Return the token vectors of normalised texts; only those that are not cached are encoded."""
    keys = [text_key(text) for text in texts]
    segments = list(cache.find(keys)) if cache else []
    places = {key: place for index, segment in enumerate(segments) for key, place in _places(segment, index)}
    missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in places}
    known = len(texts) - len(missing)
    for segment in _encode_segments(encoder, missing, lambda done: progress and progress(known + done, len(texts))):
        places.update(_places(segment, len(segments)))
        segments.append(cache.add(segment) if cache else segment)
    if progress:
        progress(len(texts), len(texts))
    table = np.array([places[key] for key in keys], dtype=np.int64).reshape(-1, 3)
    return Features(tuple(segments), table, encoder.dim)


def text_key(text: str) -> bytes:
    """Return the cache key of a text."""
    return hashlib.blake2b(text.encode("utf-8"), digest_size=_KEY_BYTES).digest()


def length_sorted_batches(lengths: NDArray[np.int64], budget: int) -> Iterator[NDArray[np.int64]]:
    """Yield batches of rows of equal length, longest first, with at most `budget` tokens or one row.

    There is no padding, which costs time and changes the order of sums, so that scores would depend on the batch.
    """
    order = np.argsort(-lengths, kind="stable")
    for alike in np.split(order, np.flatnonzero(np.diff(lengths[order])) + 1):
        size = max(1, budget // max(1, int(lengths[alike].max(initial=0))))
        for first in range(0, len(alike), size):
            yield alike[first : first + size]


def _encode_segments(encoder: Encoder, texts: dict[bytes, str], report: Callable[[int], object]) -> Iterator[Segment]:
    """Encode texts in length-sorted batches and yield segments."""
    keys, values = list(texts), list(texts.values())
    pending_keys: list[bytes] = []
    pending: list[Ragged] = []
    done = 0
    # The tokens of a single text need not be counted: it is a batch of its own.
    batches = [np.array([0])] if len(values) == 1 else _batches(encoder, values)
    # Parallel calls are faster than sequential ones only with onnxruntime.
    lanes = min(len(batches), len(available_cores())) if isinstance(encoder, OnnxEncoder) else 1
    for rows, tokens in side_by_side(lambda rows: encoder.encode([values[row] for row in rows]), batches, lanes):
        pending.append(tokens)
        pending_keys += [keys[row] for row in rows]
        done += len(rows)
        report(done)
        if sum(len(part.vectors) for part in pending) >= SEGMENT_TOKENS:
            yield _make_segment(pending_keys, pending, encoder.dim)
            pending_keys, pending = [], []
    if pending:
        yield _make_segment(pending_keys, pending, encoder.dim)


def _batches(encoder: Encoder, texts: Sequence[str]) -> list[NDArray[np.int64]]:
    # Tokens are counted for some texts at a time, since tokenizers return many bytes for each token.
    counts = [encoder.count_tokens(texts[at : at + COUNTED_AT_ONCE]) for at in range(0, len(texts), COUNTED_AT_ONCE)]
    return list(length_sorted_batches(np.concatenate([np.empty(0, np.int64), *counts]), TOKEN_BUDGET))


def _make_segment(keys: Sequence[bytes], parts: Sequence[Ragged], dim: int) -> Segment:
    tokens = Ragged.join(parts, dim)
    # The largest float16 is 65,504, far beyond any hidden state.
    vectors = np.clip(tokens.vectors, -65504, 65504, out=tokens.vectors).astype(np.float16)
    return Segment(
        np.frombuffer(b"".join(keys), np.uint8).reshape(-1, _KEY_BYTES), tokens.splits, tokens.spans, vectors
    )


def _places(segment: Segment, index: int) -> Iterator[tuple[bytes, tuple[int, int, int]]]:
    splits = segment.splits.tolist()
    for row, key in enumerate(_split_keys(segment.keys)):
        yield key, (index, splits[row], splits[row + 1])


def _split_keys(keys: NDArray[np.uint8]) -> Iterator[bytes]:
    data = keys.tobytes()
    return (data[start : start + _KEY_BYTES] for start in range(0, len(data), _KEY_BYTES))


def _read_array(folder: Path, name: str) -> NDArray[Any]:
    with (folder / f"{name}.npy").open("rb") as file:
        return np.asarray(np.lib.format.read_array(file, allow_pickle=False))
