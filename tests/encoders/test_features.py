"""The feature cache: it gives what the encoder would, through crashes, damage and company."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from emoglot.encoders import features
from emoglot.encoders.base import Ragged
from emoglot.encoders.features import FeatureCache, Features, extract_features, length_sorted_batches, text_key
from emoglot.encoders.tiny import TinyEncoder

TEXTS = ["so happy today", "", "no", "the train leaves at noon from the old station", "¡qué miedo!", "no", "أنا سعيد"]
ARRAYS = ("keys", "splits", "spans", "vectors")


class CountingEncoder:
    """The tiny encoder, remembering what it was asked to encode."""

    def __init__(self, fingerprint: str = TinyEncoder.fingerprint) -> None:
        self.name = "counting"
        self.fingerprint = fingerprint
        self.dim = TinyEncoder.dim
        self.encoded: list[str] = []

    def count_tokens(self, texts: Sequence[str]) -> Any:
        return TinyEncoder().count_tokens(texts)

    def encode(self, texts: Sequence[str]) -> Ragged:
        self.encoded += texts
        return TinyEncoder().encode(texts)


def check_features(found: Features, texts: Sequence[str]) -> None:
    """Compare with each text encoded alone and rounded to half precision."""
    assert len(found) == len(texts)
    for row, text in enumerate(texts):
        expected = TinyEncoder().encode([text])
        np.testing.assert_array_equal(found.vectors(row), expected.vectors.astype(np.float16))
        np.testing.assert_array_equal(found.spans(row), expected.spans)
        assert found.lengths[row] == len(expected.vectors)


def extract(root: Path, texts: Sequence[str] = TEXTS, fingerprint: str = TinyEncoder.fingerprint) -> list[str]:
    """Extract through the cache, check the result, and say what had to be encoded."""
    encoder = CountingEncoder(fingerprint)
    check_features(extract_features(encoder, texts, FeatureCache(root, encoder)), texts)
    return encoder.encoded


def segment_folders(root: Path) -> list[Path]:
    return [path.parent for path in root.glob("*/[!.]*/keys.npy")]


def age(folder: Path, days: float) -> None:
    then = time.time() - days * 24 * 3600
    os.utime(folder, (then, then))


@pytest.fixture
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """So small that a few sentences make several batches and segments."""
    monkeypatch.setattr(features, "TOKEN_BUDGET", 8)
    monkeypatch.setattr(features, "SEGMENT_TOKENS", 6)
    monkeypatch.setattr(features, "COUNTED_AT_ONCE", 2)


@pytest.fixture(scope="module")
def whole_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("whole")
    extract(root)
    return root


# Without trouble


def test_without_a_cache() -> None:
    check_features(extract_features(TinyEncoder(), TEXTS), TEXTS)
    assert len(extract_features(TinyEncoder(), [])) == 0


def test_the_second_run_encodes_nothing(tmp_path: Path) -> None:
    assert sorted(extract(tmp_path)) == sorted(set(TEXTS))  # a text that occurs twice is encoded once
    assert extract(tmp_path) == []
    assert extract(tmp_path, TEXTS[::-1]) == []
    assert extract(tmp_path, ["new", *TEXTS]) == ["new"]


def test_texts_without_tokens_are_remembered_too(tmp_path: Path) -> None:
    assert extract(tmp_path, ["", "   "]) == ["", "   "]
    assert extract(tmp_path, ["   ", ""]) == []


@pytest.mark.usefixtures("small_segments")
def test_several_segments(tmp_path: Path) -> None:
    extract(tmp_path)
    assert len(segment_folders(tmp_path)) > 1
    assert extract(tmp_path) == []


@pytest.mark.usefixtures("small_segments")
def test_tokens_are_counted_of_a_few_texts_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[int] = []
    count = TinyEncoder.count_tokens
    monkeypatch.setattr(
        TinyEncoder, "count_tokens", lambda self, texts: (counted.append(len(texts)), count(self, texts))[1]
    )
    check_features(extract_features(TinyEncoder(), TEXTS), TEXTS)
    assert counted == [2, 2, 2]  # "no" occurs twice


def test_another_encoder_shares_nothing(tmp_path: Path) -> None:
    extract(tmp_path)
    assert len(extract(tmp_path, fingerprint="other")) == len(set(TEXTS))


def test_another_normalisation_shares_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    extract(tmp_path)
    monkeypatch.setattr(features, "NORMALISATION_VERSION", features.NORMALISATION_VERSION + 1)
    assert len(extract(tmp_path)) == len(set(TEXTS))


@pytest.mark.usefixtures("small_segments")
def test_progress_goes_forward_to_the_end(tmp_path: Path) -> None:
    encoder = CountingEncoder()
    extract(tmp_path, TEXTS[:2])
    calls: list[tuple[int, int]] = []
    extract_features(encoder, TEXTS, FeatureCache(tmp_path, encoder), lambda done, total: calls.append((done, total)))
    assert calls == sorted(calls)
    assert calls[-1] == (len(TEXTS), len(TEXTS))
    assert calls[0][0] > 2  # those of the cache count as done
    assert len(calls) > 2


def test_huge_values_stay_finite() -> None:
    class HugeEncoder(CountingEncoder):
        def encode(self, texts: Sequence[str]) -> Ragged:
            ragged = super().encode(texts)
            return Ragged(np.copysign(np.float32(1e6), ragged.vectors), ragged.spans, ragged.splits)

    vectors = extract_features(HugeEncoder(), ["so happy"]).vectors(0)
    np.testing.assert_array_equal(np.abs(vectors), np.float16(65504))


@given(rows=st.lists(st.integers(0, len(TEXTS) - 1), max_size=6))
def test_pad_equals_a_loop(rows: list[int]) -> None:
    found = extract_features(TinyEncoder(), TEXTS)
    batch, lengths = found.pad(np.array(rows, dtype=np.int64))
    words = [len(TEXTS[row].split()) for row in rows]
    assert lengths.tolist() == words
    assert batch.shape == (len(rows), max(words, default=0), TinyEncoder.dim)
    assert batch.dtype == np.float16
    for slot, row in enumerate(rows):
        for token in range(batch.shape[1]):
            expected = found.vectors(row)[token] if token < words[slot] else np.zeros(TinyEncoder.dim)
            assert (batch[slot, token] == expected).all()


def test_select_keeps_the_order_given() -> None:
    chosen = extract_features(TinyEncoder(), TEXTS).select(np.array([3, 0, 3]))
    check_features(chosen, [TEXTS[3], TEXTS[0], TEXTS[3]])


@given(lengths=st.lists(st.integers(0, 50), max_size=40), budget=st.integers(1, 200))
def test_batches(lengths: list[int], budget: int) -> None:
    batches = [batch.tolist() for batch in length_sorted_batches(np.array(lengths, dtype=np.int64), budget)]
    flat = [row for batch in batches for row in batch]
    assert sorted(flat) == list(range(len(lengths)))
    assert [lengths[row] for row in flat] == sorted(lengths, reverse=True)
    for batch in batches:
        assert len({lengths[row] for row in batch}) == 1
        assert len(batch) == 1 or len(batch) * lengths[batch[0]] <= budget
    # All but the last of a length hold as much as fits.
    full = [batch for batch, after in pairwise(batches) if lengths[batch[0]] == lengths[after[0]]]
    assert all((len(batch) + 1) * max(1, lengths[batch[0]]) > budget for batch in full)


def test_keys_differ_with_the_text() -> None:
    texts = ["", " ", "a", "A", "á", "a\u0301"]
    assert len({text_key(text) for text in texts}) == len(texts)
    assert text_key("a") == text_key("a")


# With trouble


def damaged(root: Path, name: str, content: bytes | None) -> Path:
    """Copy a cache, with one array of its segment replaced or gone."""
    copy = Path(tempfile.mkdtemp()) / "cache"
    shutil.copytree(root, copy)
    (folder,) = segment_folders(copy)
    path = folder / f"{name}.npy"
    path.unlink() if content is None else path.write_bytes(content)
    return copy


def check_recovery(copy: Path) -> None:
    """What was damaged is encoded again, and is then whole."""
    try:
        assert sorted(extract(copy)) == sorted(set(TEXTS))
        assert extract(copy) == []
    finally:
        shutil.rmtree(copy.parent)


@settings(max_examples=80)
@given(name=st.sampled_from(ARRAYS), data=st.data())
def test_a_segment_cut_at_any_byte(name: str, data: st.DataObject, whole_cache: Path) -> None:
    (folder,) = segment_folders(whole_cache)
    content = (folder / f"{name}.npy").read_bytes()
    check_recovery(damaged(whole_cache, name, content[: data.draw(st.integers(0, len(content) - 1))]))


@pytest.mark.parametrize("name", ARRAYS)
def test_a_segment_without_a_file(name: str, whole_cache: Path) -> None:
    check_recovery(damaged(whole_cache, name, None))


@settings(max_examples=20)
@given(name=st.sampled_from(ARRAYS), content=st.binary(max_size=200))
@example(name="keys", content=b"PK\x03\x04")
@example(name="keys", content=b"\x80\x04.")
def test_a_segment_with_foreign_content(name: str, content: bytes, whole_cache: Path) -> None:
    check_recovery(damaged(whole_cache, name, content))


@pytest.mark.parametrize("name", ARRAYS)
def test_a_segment_with_arrays_that_do_not_fit(name: str, whole_cache: Path, tmp_path: Path) -> None:
    (folder,) = segment_folders(whole_cache)
    np.save(tmp_path / "shorter.npy", np.load(folder / f"{name}.npy")[:-1])
    check_recovery(damaged(whole_cache, name, (tmp_path / "shorter.npy").read_bytes()))


def test_a_stray_file_is_no_segment(tmp_path: Path) -> None:
    extract(tmp_path)
    (segment_folders(tmp_path)[0].parent / "Thumbs.db").write_bytes(b"stray")
    assert extract(tmp_path) == []


def test_old_drafts_go_and_young_ones_stay(tmp_path: Path) -> None:
    extract(tmp_path)
    (folder,) = segment_folders(tmp_path)
    old, young = folder.parent / ".draft-old", folder.parent / ".draft-young"
    for draft in (old, young):
        shutil.copytree(folder, draft)
    age(old, 2)
    assert extract(tmp_path) == []
    assert not old.exists()
    assert young.exists()


def test_a_cache_that_is_too_large_loses_what_was_not_used_for_the_longest_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        extract(tmp_path, [f"text {number}"], fingerprint=f"encoder{number}")
    segments = [next(tmp_path.glob(f"encoder{number}-n*/[!.]*")) for number in range(4)]
    for segment, days in zip(segments, (5, 9, 7, 0.5), strict=True):
        age(segment, days)
    each = sum(path.stat().st_size for path in segments[0].iterdir())
    monkeypatch.setattr(features, "MOST_BYTES", 3 * each)
    assert extract(tmp_path, ["text 0"], fingerprint="encoder0") == []  # now it is the last that was used
    assert [segment.exists() for segment in segments] == [True, False, True, True]
    monkeypatch.setattr(features, "MOST_BYTES", 0)
    assert extract(tmp_path, ["text 3"], fingerprint="encoder3") == []
    assert [segment.exists() for segment in segments] == [True, False, False, True]  # those of the last day stay
    assert extract(tmp_path, ["text 1"], fingerprint="encoder1") == ["text 1"]


def test_cleaning_removes_no_file_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    extract(tmp_path)
    (segment,) = segment_folders(tmp_path)
    kept = [tmp_path / "mine.npy", tmp_path / "thesis-notes" / "mine.npy", segment / "mine.txt"]
    for path in kept:
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
        age(path.parent, 100)
    monkeypatch.setattr(features, "MOST_BYTES", 0)
    assert sorted(extract(tmp_path)) == sorted(set(TEXTS))
    assert all(path.read_text() == "mine" for path in kept)


def test_a_draft_that_vanishes_while_we_look(tmp_path: Path) -> None:
    extract(tmp_path)
    gone = segment_folders(tmp_path)[0].parent / ".draft-gone"
    gone.symlink_to(tmp_path / "nowhere")  # as seen by a process that lists it just before another renames it
    assert extract(tmp_path) == []


def test_a_draft_is_never_read(tmp_path: Path) -> None:
    extract(tmp_path)
    (folder,) = segment_folders(tmp_path)
    folder.rename(folder.parent / ".draft-unfinished")
    assert sorted(extract(tmp_path)) == sorted(set(TEXTS))


# Other processes

MANY_TEXTS = [f"text {' '.join('word' for _ in range(number % 7))} {number}" for number in range(200)]

CHILD = """
import os, signal, sys, time
from pathlib import Path
from emoglot.encoders import features
from emoglot.encoders.tiny import TinyEncoder

features.TOKEN_BUDGET, features.SEGMENT_TOKENS = 64, 100
root, go, dies_at = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
synced = 0
sync = os.fsync

def counting_sync(descriptor):
    global synced
    synced += 1
    if synced == dies_at:
        os.kill(os.getpid(), signal.SIGKILL)
    sync(descriptor)

os.fsync = counting_sync
while not go.exists():
    time.sleep(0.001)
texts = sys.stdin.read().split("|")
features.extract_features(TinyEncoder(), texts, features.FeatureCache(root, TinyEncoder()))
"""


def start_child(root: Path, go: Path, dies_at: int = 0) -> subprocess.Popen[str]:
    command = [sys.executable, "-W", "error", "-c", CHILD, str(root), str(go), str(dies_at)]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdin is not None
    child.stdin.write("|".join(MANY_TEXTS))
    child.stdin.close()
    child.stdin = None
    return child


def test_two_processes_at_once(tmp_path: Path) -> None:
    root, go = tmp_path / "cache", tmp_path / "go"
    children = [start_child(root, go) for _ in range(3)]
    go.touch()
    for child in children:
        _, errors = child.communicate(timeout=60)
        assert (child.returncode, errors) == (0, "")
    assert extract(root, MANY_TEXTS) == []
    assert not list(root.glob("*/.*"))


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no SIGKILL on this system")
@pytest.mark.parametrize("dies_at", [1, 7, 12])
def test_a_process_killed_while_writing(dies_at: int, tmp_path: Path) -> None:
    root, go = tmp_path / "cache", tmp_path / "go"
    go.touch()
    child = start_child(root, go, dies_at)
    child.communicate(timeout=60)
    assert child.returncode == -signal.SIGKILL
    assert len(list(root.glob("*/.*"))) == 1
    finished = (dies_at - 1) // len(ARRAYS)
    assert len(segment_folders(root)) == finished
    known = sum(len(np.load(folder / "keys.npy")) for folder in segment_folders(root))
    assert (known > 0) == (finished > 0)
    assert len(extract(root, MANY_TEXTS)) == len(MANY_TEXTS) - known
    assert extract(root, MANY_TEXTS) == []


def test_many_small_segments_do_not_use_up_the_open_files(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource", reason="limits on open files are a thing of POSIX")
    texts = [f"text number {row}" for row in range(60)]
    for text in texts:
        extract_features(TinyEncoder(), [text], FeatureCache(tmp_path, TinyEncoder()))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    opened = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 64
    resource.setrlimit(resource.RLIMIT_NOFILE, (opened + 80, hard))
    try:
        counting = CountingEncoder()
        extract_features(counting, texts, FeatureCache(tmp_path, counting))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert counting.encoded == []
