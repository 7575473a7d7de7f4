"""Token vectors of many texts: encoded once, kept on disk, read through memory maps.

The cache is a folder per encoder and normalisation, holding immutable segments:

    <root>/<encoder fingerprint>-n<normalisation version>/<random name>/{keys,splits,spans,vectors}.npy

A segment is written under a temporary name and renamed when complete, so a crash at any byte leaves either a whole
segment or none, and two processes never touch the same file: at worst both encode the same text once.
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

from emoglot.encoders import Encoder, Ragged, runs_beside_itself
from emoglot.lanes import available_cores, side_by_side
from emoglot.text import NORMALISATION_VERSION

Progress = Callable[[int, int], None]  # texts done, texts in all

# Tokens in one call of the encoder: more gain nothing on a CPU, and XLM-R-large still fits into 4 GB.
TOKEN_BUDGET = 4096
# Tokens in one segment: what a crash can lose at most, about a minute of XLM-R on a laptop.
SEGMENT_TOKENS = 65536
_DRAFT_PREFIX = ".draft-"
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
        """Read a segment, mapping the vectors: one open file for each segment, as a process may have only so many."""
        small = {name: _read_array(folder, name) for name in ("keys", "splits", "spans")}
        segment = cls(**small, vectors=np.lib.format.open_memmap(folder / "vectors.npy", mode="r"))
        texts, tokens = len(segment.keys), len(segment.vectors)
        if segment.splits.shape != (texts + 1,) or segment.splits[-1] != tokens or segment.spans.shape != (tokens, 2):
            raise ValueError("the arrays do not fit together")
        return segment

    def write(self, folder: Path) -> Path:
        """Write and sync all arrays, then make the segment appear in one step."""
        draft = folder / f"{_DRAFT_PREFIX}{uuid.uuid4().hex}"
        draft.mkdir(parents=True)
        try:
            for name in _SEGMENT_ARRAYS:
                with (draft / f"{name}.npy").open("wb") as file:
                    np.save(file, getattr(self, name))
                    file.flush()
                    os.fsync(file.fileno())
            return draft.rename(folder / uuid.uuid4().hex)
        except OSError:  # a full disk: leave it no fuller
            shutil.rmtree(draft, ignore_errors=True)
            raise


_SEGMENT_ARRAYS = tuple(Segment.__dataclass_fields__)


@dataclass(frozen=True)
class Features:
    """The token vectors of a list of texts, row by row."""

    segments: tuple[Segment, ...]
    places: NDArray[np.int64]  # (texts, 3): segment, first token, past the last token
    dim: int

    def __len__(self) -> int:
        return len(self.places)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """The number of tokens of every text."""
        return np.asarray(self.places[:, 2] - self.places[:, 1])

    @property
    def rows_with_tokens(self) -> NDArray[np.int64]:
        """The rows that have a token: a text without any teaches nothing, and scores 0 by definition."""
        return np.flatnonzero(self.lengths)

    def vectors(self, row: int) -> NDArray[np.float16]:
        """The token vectors of one text (tokens, dim)."""
        segment, start, end = self.places[row]
        return np.asarray(self.segments[segment].vectors[start:end])

    def spans(self, row: int) -> NDArray[np.int32]:
        """The character spans of one text's tokens (tokens, 2)."""
        segment, start, end = self.places[row]
        return np.asarray(self.segments[segment].spans[start:end])

    def select(self, rows: NDArray[np.int64]) -> Features:
        """Keep some rows, in the order given."""
        return Features(self.segments, self.places[rows], self.dim)

    def pad(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.float16], NDArray[np.int64]]:
        """Give a batch (rows, longest, dim) padded with zeros, as it is stored, and the true lengths."""
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

    def beside(self, encoder: Encoder) -> FeatureCache:
        """Return the cache of another encoder in the same place."""
        return FeatureCache(self._root, encoder)

    def find(self, wanted: Collection[bytes]) -> Iterator[Segment]:
        """Open the segments that hold a wanted text; a damaged one is passed over and its texts are encoded again."""
        wanted = frozenset(wanted)
        for folder in sorted(self.folder.glob("[!.]*")):
            try:
                if not wanted.isdisjoint(_split_keys(_read_array(folder, "keys"))):
                    yield Segment.open(folder)
            except (FileNotFoundError, NotADirectoryError, ValueError):
                continue

    def add(self, segment: Segment) -> Segment:
        """Keep a segment for the next run, and give it back mapped from disk, so that memory does not fill up."""
        return Segment.open(segment.write(self.folder))

    def _remove_stale_drafts(self) -> None:
        # A draft this old belongs to a run that died; a younger one may be another process at work.
        for draft in self.folder.glob(f"{_DRAFT_PREFIX}*"):
            with suppress(FileNotFoundError):  # that process has just finished it
                if time.time() - draft.stat().st_mtime > _STALE_SECONDS:
                    shutil.rmtree(draft, ignore_errors=True)


def extract_features(
    encoder: Encoder,
    texts: Sequence[str],
    cache: FeatureCache | None = None,
    progress: Progress | None = None,
) -> Features:
    """Give the token vectors of normalised texts, encoding only those that the cache does not have."""
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
    """Address a text by its content."""
    return hashlib.blake2b(text.encode("utf-8"), digest_size=_KEY_BYTES).digest()


def length_sorted_batches(lengths: NDArray[np.int64], budget: int) -> Iterator[NDArray[np.int64]]:
    """Cut the rows, longest first, into batches of equal length and at most `budget` tokens, at least one row each.

    Nothing is padded: padding costs time, and changes the order of sums, so that the last bit of a text's scores would
    depend on its neighbours.
    """
    order = np.argsort(-lengths, kind="stable")
    for alike in np.split(order, np.flatnonzero(np.diff(lengths[order])) + 1):
        size = max(1, budget // max(1, int(lengths[alike].max(initial=0))))
        for first in range(0, len(alike), size):
            yield alike[first : first + size]


def _encode_segments(encoder: Encoder, texts: dict[bytes, str], report: Callable[[int], object]) -> Iterator[Segment]:
    """Encode texts in length-sorted batches and hand them on in segments."""
    keys, values = list(texts), list(texts.values())
    pending_keys: list[bytes] = []
    pending: list[Ragged] = []
    done = 0
    batches = list(length_sorted_batches(encoder.count_tokens(values), TOKEN_BUDGET))
    lanes = min(len(batches), len(available_cores())) if runs_beside_itself(encoder) else 1
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


def _make_segment(keys: Sequence[bytes], parts: Sequence[Ragged], dim: int) -> Segment:
    tokens = Ragged.join(parts, dim)
    # float16 has 11 significant bits and ends at 65,504, far beyond any hidden state.
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
