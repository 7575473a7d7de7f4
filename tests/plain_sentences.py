"""How an answer to one of the plain sentences is judged."""

from __future__ import annotations

POSITIVE = {"joy", "love", "optimism", "trust"}
NEGATIVE = {"anger", "disgust", "fear", "pessimism", "sadness"}


def is_right(kind: str, listed: set[str], given: set[str]) -> bool:
    """Judge an answer as any reader would.

    An emotional sentence gets one of the labels that are listed for it, and none that contradicts all of them; one that
    denies an emotion does not get that emotion; one without emotion gets nothing.
    """
    if kind == "neutral":
        return not given
    if kind == "denial":
        return not listed & given
    if listed & POSITIVE and listed & NEGATIVE:
        contrary = set()
    else:
        contrary = POSITIVE if listed & NEGATIVE else NEGATIVE if listed & POSITIVE else set()
    return bool(listed & given) and not contrary & given
