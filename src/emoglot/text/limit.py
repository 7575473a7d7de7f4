"""How much of a text is read: a bound in characters, applied before anything slow."""

from __future__ import annotations

import re

READ_TOKENS = 512  # the most that an encoder reads of a text: the limit of XLM-R
# A token of ordinary writing has one to six characters, so nothing that would be read is lost, unless a text consists
# of addresses, spaces or repeated signs, which normalising shortens.
CHARACTERS_PER_TOKEN = 20
READ_CHARACTERS = READ_TOKENS * CHARACTERS_PER_TOKEN

_WORD = re.compile(r"\w")


def cut(text: str) -> tuple[str, bool]:
    """Return the beginning of a text that can be read, and whether words come after it."""
    if len(text) <= READ_CHARACTERS:
        return text, False
    return text[:READ_CHARACTERS], _WORD.search(text, READ_CHARACTERS) is not None
