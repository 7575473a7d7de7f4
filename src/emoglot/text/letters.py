"""The letters of texts as arrays: their scripts and hashed n-grams."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

# The first and last code points of the blocks of each script; only letters and marks in them are used.
BLOCKS = {
    "Latn": "0041-024f 0250-02af 0300-036f 1e00-1eff 2c60-2c7f a720-a7ff",
    "Cyrl": "0400-052f 1c80-1c8f 2de0-2dff a640-a69f",
    "Arab": "0600-06ff 0750-077f 0870-08ff fb50-fdff fe70-fefc",
    "Deva": "0900-097f a8e0-a8ff",
    "Beng": "0980-09ff",
    "Ethi": "1200-139f 2d80-2ddf ab00-ab2f",
    "Hebr": "0590-05ff fb1d-fb4f",
    "Hani": "3005-3007 3400-4dbf 4e00-9fff f900-faff",
    "Kana": "3041-309f 30a1-30fa 30fc-30ff 31f0-31ff",
    "Hang": "1100-11ff 3131-318e a960-a97f ac00-d7fb",
    "Grek": "0370-03ff 1f00-1fff",
    "Armn": "0530-058f fb13-fb17",
    "Geor": "10a0-10ff 1c90-1cbf 2d00-2d2f",
    "Guru": "0a00-0a7f",
    "Gujr": "0a80-0aff",
    "Orya": "0b00-0b7f",
    "Taml": "0b80-0bff",
    "Telu": "0c00-0c7f",
    "Knda": "0c80-0cff",
    "Mlym": "0d00-0d7f",
    "Sinh": "0d80-0dff",
    "Thai": "0e00-0e7f",
    "Laoo": "0e80-0eff",
    "Tibt": "0f00-0fff",
    "Mymr": "1000-109f a9e0-a9ff aa60-aa7f",
    "Khmr": "1780-17ff",
    "Mtei": "abc0-abff aae0-aaff",
}
NO_SCRIPT = "Zyyy"  # not a letter; the code of ISO 15924
OTHER_SCRIPT = "Zzzz"  # a letter of any other script
SCRIPTS = (NO_SCRIPT, OTHER_SCRIPT, *BLOCKS)
_HAN, _KANA = (SCRIPTS.index(name) for name in ("Hani", "Kana"))
_TABLE_SIZE = 0x20000  # all letters beyond it are ideographs

# Weights of letters in the choice of a text's script. English words occur in texts of every script, the reverse is
# rare; an ideograph or a syllable equals two or three letters.
_WEIGHTS = np.array([{"Latn": 1, "Hani": 4, "Kana": 4, "Hang": 4}.get(name, 2) for name in SCRIPTS], dtype=np.float64)
_WEIGHTS[0] = 0
# About one letter in three of a Japanese sentence is kana; Chinese has a decorative の at most.
LEAST_KANA = 0.15

# A mention with what precedes it begins after a space; tried anywhere, it would take quadratic time in scripts without.
_NOISE = re.compile(
    r"(?:https?:|www\.)\S*|(?<!\S)\S*@\w[\w.]*|<\w+>|\b(?:RT|HTTPURL|USER|URL)\b|[\xad\u0640\u200b-\u200d]"
)
_APOSTROPHES = str.maketrans("’ʼ‘`´ʻ", "''''''")
_SPACE, _APOSTROPHE = ord(" "), ord("'")
MOST_CHARACTERS = 1000  # more do not improve the identification

LONGEST_NGRAM = 5
# Odd multipliers near 2^64 divided by the golden ratio and by √2: their powers spread over all 64 bits.
BASE = np.uint64(0x9E3779B97F4A7C15)
MIXER = np.uint64(0xB504F333F9DE6485)
_WORD = np.uint64(0x5851F42D4C957F2D)  # distinguishes the hashes of whole words from those of windows


@dataclass(frozen=True)
class Letters:
    """The words of texts in the script of each, concatenated with single spaces around words."""

    codes: NDArray[np.uint64]
    owners: NDArray[np.int64]  # (codes,): the text of each
    scripts: NDArray[np.int64]  # (texts,): indices of SCRIPTS


def clean(text: str) -> str:
    """Remove addresses, mentions, placeholders and invisible characters."""
    text = text[:MOST_CHARACTERS]
    if "&" in text:
        text = html.unescape(text)
    text = _NOISE.sub(" ", text)
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text).translate(_APOSTROPHES)
    return text.lower()


def read_letters(texts: Sequence[str], spelt: NDArray[np.bool_]) -> Letters:
    """Return the script of each text with its letters, these only for the scripts in `spelt` (scripts,)."""
    plain = [f" {clean(text)} " for text in texts]
    codes = np.frombuffer("".join(plain).encode("utf-32-le", "replace"), dtype=np.uint32)
    owners = np.repeat(np.arange(len(plain)), [len(text) for text in plain])
    script_of = _script_table()[np.minimum(codes, _TABLE_SIZE)]
    scripts = _main_scripts(script_of, owners, len(plain))
    kept = (script_of == scripts[owners]) & spelt[script_of]
    kept[1:-1] |= (codes[1:-1] == _APOSTROPHE) & kept[:-2] & kept[2:]
    codes = np.where(kept, codes, _SPACE)
    needed = ~_is_superfluous(codes, owners)
    return Letters(codes[needed].astype(np.uint64), owners[needed], scripts)


def hash_ngrams(letters: Letters) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.int64]]]:
    """Yield the hashes and owners of the n-grams of each length, then those of longer words."""
    codes, owners = letters.codes, letters.owners
    is_space = codes == _SPACE
    spaces_before = np.concatenate([[0], np.cumsum(is_space)])
    window = codes.copy()
    for length in range(1, LONGEST_NGRAM + 1):
        if length > 1:
            window = window[:-1] * BASE + codes[length - 1 :]
        if not len(window):
            return
        ends = np.arange(length, len(codes) + 1)
        spaces = spaces_before[ends] - spaces_before[ends - length]
        outer = is_space[: len(window)].astype(np.int64) + is_space[length - 1 :] * (length > 1)
        kept = (spaces == outer) & (spaces < length)  # no inner space, and not only spaces
        yield window[kept] * MIXER, owners[: len(window)][kept]
    yield _hash_words(codes, owners, is_space)


def _hash_words(
    codes: NDArray[np.uint64], owners: NDArray[np.int64], is_space: NDArray[np.bool_]
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Hash the words too long for an n-gram, each as Σ letter × base^place."""
    starts = np.flatnonzero(is_space[:-1] & ~is_space[1:]) + 1
    lengths = np.flatnonzero(is_space[1:] & ~is_space[:-1]) + 1 - starts
    long = lengths > LONGEST_NGRAM - 2
    starts, lengths = starts[long], lengths[long]
    if not len(starts):
        return np.empty(0, np.uint64), np.empty(0, np.int64)
    firsts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    places = np.arange(lengths.sum()) - np.repeat(firsts, lengths)
    powers = np.full(int(lengths.max()), BASE, dtype=np.uint64).cumprod(dtype=np.uint64)
    terms = codes[np.repeat(starts, lengths) + places] * powers[places]
    return (np.add.reduceat(terms, firsts) + _WORD) * MIXER, owners[starts]


def _main_scripts(script_of: NDArray[np.int64], owners: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Return the script with the highest weight in each text, or that of no letters."""
    size = len(SCRIPTS)
    weights = np.bincount(owners * size + script_of, minlength=count * size).reshape(count, size) * _WEIGHTS
    ideographs = weights[:, _HAN] + weights[:, _KANA]
    is_japanese = (ideographs > 0) & (weights[:, _KANA] >= LEAST_KANA * ideographs)
    weights[:, _KANA] = np.where(is_japanese, ideographs, 0)
    weights[:, _HAN] = np.where(is_japanese, 0, ideographs)
    found: NDArray[np.int64] = weights.argmax(axis=1)
    return found


def _is_superfluous(codes: NDArray[np.uint32], owners: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which characters are a repeated space, or the third of equal letters ("sooo")."""
    as_before = np.concatenate([[False], (codes[1:] == codes[:-1]) & (owners[1:] == owners[:-1])])
    twice = np.concatenate([[False], as_before[:-1]])
    found: NDArray[np.bool_] = as_before & (twice | (codes == _SPACE))
    return found


@cache
def _script_table() -> NDArray[np.int64]:
    """Return the script of each code point as an index of SCRIPTS; the last entry is for all higher ones."""
    table = np.zeros(_TABLE_SIZE + 1, dtype=np.int64)
    is_part = np.array([unicodedata.category(chr(code))[0] in "LM" for code in range(_TABLE_SIZE)])
    table[:-1][is_part] = SCRIPTS.index(OTHER_SCRIPT)
    for script, blocks in BLOCKS.items():
        for block in blocks.split():
            first, last = (int(end, 16) for end in block.split("-"))
            inside = table[first : last + 1]
            inside[is_part[first : last + 1]] = SCRIPTS.index(script)
    table[0xFE00:0xFE10] = 0  # variation selectors of emoji
    table[0x20D0:0x2100] = 0  # enclosing marks such as the keycap
    table[-1] = _HAN
    return table
