"""How much of a text is read: a bound in characters, applied before anything slow."""

from __future__ import annotations

import re
from itertools import islice

READ_TOKENS = 512  # the most that an encoder reads of a text: the limit of XLM-R
# A token of ordinary writing has one to six characters, so nothing that would be read is lost, unless a text consists
# of addresses, spaces or repeated signs, which normalising shortens.
CHARACTERS_PER_TOKEN = 20
READ_CHARACTERS = READ_TOKENS * CHARACTERS_PER_TOKEN

_WORD = re.compile(r"\w")
_SPACED = re.compile(r"\S+\s+")


def cut(text: str) -> tuple[str, bool]:
    """Return the beginning of a text that can be read, and whether words come after it."""
    if len(text) <= READ_CHARACTERS:
        return text, False
    return text[:READ_CHARACTERS], _WORD.search(text, READ_CHARACTERS) is not None


def first_words(text: str, count: int) -> str:
    """Return the beginning of a text with at most this many words, separated by white space."""
    if len(text) < 2 * count:  # a word and a space have two characters or more
        return text
    last = next(islice(_SPACED.finditer(text), count - 1, None), None)
    return text[: last.end()] if last else text
