"""What it costs to normalise and tokenise: four times as long a text takes less than six times as long.

This is measured for texts that repeat any pair of the things that a text can consist of.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable, Iterator

from emoglot.encoders.onnx import OnnxEncoder
from emoglot.encoders.registry import BUNDLED_MODEL
from emoglot.text.limit import READ_CHARACTERS
from emoglot.text.normalise import normalise_text
from emoglot.text.patterns import KINDS

HIGHEST_RATIO = 6.0
TIMES = 4
SHORTEST = 0.0005  # seconds: what is faster is not measured exactly
ATTEMPTS = 4

# A token of each kind that the normaliser knows; the signs and letters below are parts of tokens, or none.
TOKENS = {
    "emoji": "👩🏽‍🚀",
    "url": "http://a.b/c",
    "email": "a@b.co",
    "user": "@bob",
    "money": "$5",
    "percent": "5%",
    "phone": "+1 555 123 4567",
    "time": "5:30",
    "date": "2018-05-21",
    "number": "1,2",
    "placeholder": "<url>",
    "emoticon": "<3",
    "hashtag": "#SoHappy",
}
assert TOKENS.keys() == KINDS.keys()
SIGNS = "1-.,@#:/<&;!'(+$=_\\ aAé愛ไﷺ한اـकि\u0301\u200d\ufe0f😀"
UNITS = (*TOKENS.values(), *SIGNS, "ို", "&amp;", "&#", "www.", "\\n")


def cpu_seconds(work: Callable[[str], object], text: str) -> float:
    began = time.process_time()
    work(text)
    return time.process_time() - began


def growth(work: Callable[[str], object], unit: str, length: int) -> float:
    """Return by how much the time grows when a text of `length` repeated units becomes four times as long."""
    short, long = (unit * (size // len(unit)) for size in (length, TIMES * length))
    return cpu_seconds(work, long) / max(SHORTEST, cpu_seconds(work, short))


def check_costs(seconds: float) -> Iterator[str]:
    """Yield each pair that was measured, in random order; raise AssertionError for a cost that is not linear."""
    encoder = OnnxEncoder(BUNDLED_MODEL / "encoder")
    works = {
        "normalise": (normalise_text, READ_CHARACTERS),
        "tokenise": (lambda text: encoder.count_tokens([text]), READ_CHARACTERS // TIMES),  # it never gets more
    }
    pairs = list(itertools.product(UNITS, UNITS))
    random.shuffle(pairs)
    until = time.monotonic() + seconds
    for first, second in pairs:
        if time.monotonic() > until:
            return
        for name, (work, length) in works.items():
            unit = first + second
            ratio = min(_until_linear(work, unit, length))
            assert ratio < HIGHEST_RATIO, f"to {name} {unit!r} repeated takes {ratio:.1f} times as long"
        yield unit


def _until_linear(work: Callable[[str], object], unit: str, length: int) -> Iterator[float]:
    """Yield ratios until one is low enough: other work on the machine only makes them higher."""
    for _ in range(ATTEMPTS):
        ratio = growth(work, unit, length)
        yield ratio
        if ratio < HIGHEST_RATIO:
            return
