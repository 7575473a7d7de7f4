"""Normalisation of social-media text, with a map from every character to the original string.

Each rule finds one kind of irregularity and returns edits. The rules are applied in order until a whole pass changes
nothing, which makes the result idempotent.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html.entities import html5
from itertools import groupby

from emoglot.errors import UsageError
from emoglot.text.patterns import (
    COMPOSED,
    ENTITY,
    INVISIBLE,
    IRREGULAR_SPACE,
    JOINERS,
    LONG_LETTER,
    LONG_MARK,
    LONGEST_ENTITY,
    MANY_MARKS,
    MANY_MARKS_RUN,
    MARK,
    NOT_A_SIGN,
    NUMERIC_ENTITY,
    PICTURE_OR_KEYCAP,
    REPEATED_EMOJI,
    REPEATED_SIGN,
    TOKEN,
    TRIPLE,
    UNWANTED,
)

# Part of every feature-cache key: increase it when the output changes for any text.
NORMALISATION_VERSION = 1

# Ordinary text needs two passes, hashtags three; the bound covers what fuzzing has not found.
MAX_PASSES = 16

# Mentions and variation selectors of emoji carry no emotion: shrunk encoders and n-grams ignore them.
UNREAD = ("<user>", "\ufe0e", "\ufe0f")

Edit = tuple[int, int, str]  # the span [start, end) of a text and its replacement


@dataclass(frozen=True, slots=True)
class Normalised:
    """A normalised text; its character i came from the original characters starts[i] to ends[i], exclusive."""

    text: str
    starts: tuple[int, ...]
    ends: tuple[int, ...]

    def original_span(self, start: int, end: int) -> tuple[int, int]:
        """Return the span of the original text from which text[start:end] came."""
        if not 0 <= start <= end <= len(self.text):
            raise UsageError(f"a span must lie within the {len(self.text)} characters of the text, got {start}:{end}")
        if start < end:
            return self.starts[start], self.ends[end - 1]
        here = self.starts[start] if start < len(self.text) else max(self.ends, default=0)
        return here, here


def normalise(text: str) -> Normalised:
    """Normalise a text and record where each character came from."""
    regular, history = _rewrite(text)
    starts: Sequence[int] = range(len(text))
    ends: Sequence[int] = range(1, len(text) + 1)
    for edits in history:
        starts, ends = _remap(starts, ends, edits)
    return Normalised(regular, tuple(starts), tuple(ends))


def normalise_text(text: str) -> str:
    """Normalise a text: normalise(text).text without the cost of the map."""
    return _rewrite(text)[0]


def _rewrite(text: str) -> tuple[str, list[list[Edit]]]:
    """Apply the rules until nothing changes; return the text and the edits."""
    history: list[list[Edit]] = []
    for _ in range(MAX_PASSES):
        done = len(history)
        for rule in RULES:
            if edits := list(rule(text)):
                text = _apply(text, edits)
                history.append(edits)
        if len(history) == done:
            break
    return text, history


def _apply(text: str, edits: list[Edit]) -> str:
    pieces: list[str] = []
    at = 0
    for start, end, replacement in edits:
        pieces += text[at:start], replacement
        at = end
    pieces.append(text[at:])
    return "".join(pieces)


def _remap(starts: Sequence[int], ends: Sequence[int], edits: list[Edit]) -> tuple[list[int], list[int]]:
    """Update the map of a text after edits: a replacement comes from all that it replaces."""
    new_starts: list[int] = []
    new_ends: list[int] = []
    at = 0
    for start, end, replacement in edits:
        new_starts += starts[at:start]
        new_ends += ends[at:start]
        at = end
        if start < end:
            first, last = starts[start], ends[end - 1]
        else:  # an inserted space has an empty span, unless both sides came from one place
            first, last = min(starts[start], ends[start - 1]), ends[start - 1]
        new_starts += [first] * len(replacement)
        new_ends += [last] * len(replacement)
    new_starts += starts[at:]
    new_ends += ends[at:]
    return new_starts, new_ends


def _decode_entities(text: str) -> Iterator[Edit]:
    """Decode HTML entities, also those that result from decoding, from left to right on a stack."""
    if "&" not in text or not ENTITY.search(text):
        return
    stack: list[Edit] = []
    for at, char in enumerate(text):
        stack.append((at, at + 1, char))
        while stack[-1][2] == ";" and (size := _entity_size(stack)):
            start, end = stack[-size][0], at + 1
            decoded = _decode("".join(piece for _, _, piece in stack[-size:]))
            del stack[-size:]
            # Invisible characters must not separate the characters of an outer entity.
            if stack and (not decoded or (decoded in JOINERS and stack[-1][2].isascii())):
                start, _, decoded = stack.pop()
            stack.append((start, end, decoded))
    yield from ((start, end, piece) for start, end, piece in stack if piece != text[start:end])


def _entity_size(stack: list[Edit]) -> int:
    """Return the number of pieces of the entity at the end of the stack, or 0."""
    for size in range(2, min(LONGEST_ENTITY + 1, len(stack)) + 1):
        piece = stack[-size][2]
        if piece == "&":
            body = "".join(piece for _, _, piece in stack[-size:])
            return size if body[1:] in html5 or NUMERIC_ENTITY.fullmatch(body) else 0
        if not (piece.isascii() and (piece.isalnum() or piece == "#")):
            break
    return 0


def _decode(entity: str) -> str:
    return re.sub(INVISIBLE, "", unicodedata.normalize("NFC", html.unescape(entity)))


def _drop_unwanted(text: str) -> Iterator[Edit]:
    """Remove what is invisible or cannot be encoded; a surrogate pair becomes its character."""
    if text.isprintable():
        return
    for match in UNWANTED.finditer(text):
        start, end = match.span()
        is_pair = end - start == len("\ud83d\ude00") and match[0] < "\ue000"
        yield start, end, match[0].encode("utf-16", "surrogatepass").decode("utf-16") if is_pair else ""


def _compose(text: str) -> Iterator[Edit]:
    if text.isascii() or (not MANY_MARKS_RUN.search(text) and unicodedata.is_normalized("NFC", text)):
        return
    for match in COMPOSED.finditer(text):
        before = match[0]
        after = unicodedata.normalize("NFC", before if len(before) <= MANY_MARKS else _sort_marks(before))
        if after != before:
            yield match.start(), match.end(), after


def _sort_marks(text: str) -> str:
    """Decompose and put marks in canonical order, in less than quadratic time."""
    decomposed = "".join(unicodedata.normalize("NFD", char) for char in text)
    runs = groupby(decomposed, key=lambda char: unicodedata.combining(char) > 0)
    return "".join("".join(sorted(run, key=unicodedata.combining) if marks else run) for marks, run in runs)


def _regular_spaces(text: str) -> Iterator[Edit]:
    if text.isprintable() and "\\" not in text and "  " not in text and text == text.strip():
        return
    for match in IRREGULAR_SPACE.finditer(text):
        start, end = match.span()
        yield start, end, "" if start == 0 or end == len(text) else " "


def _at_most_two(run: re.Pattern[str], text: str, apart: str = "") -> Iterator[Edit]:
    """Keep two of a run; the second maps to the rest of it."""
    for match in run.finditer(text):
        yield match.end(1) + len(apart), match.end(), match[1]


def _short_marks(text: str) -> Iterator[Edit]:
    return _at_most_two(LONG_MARK, text) if TRIPLE.search(text) else iter(())


def _short_letters(text: str) -> Iterator[Edit]:
    return _at_most_two(LONG_LETTER, text) if TRIPLE.search(text) or MARK.search(text) else iter(())


def _few_emoji(text: str) -> Iterator[Edit]:
    return _at_most_two(REPEATED_EMOJI, text, apart=" ") if PICTURE_OR_KEYCAP.search(text) else iter(())


def _single_signs(text: str) -> Iterator[Edit]:
    """Keep one of a repeated sign; several dots become an ellipsis."""
    for match in REPEATED_SIGN.finditer(text):
        if not NOT_A_SIGN.match(match[1]):
            yield match.start(), match.end(), "…" if match[1] == "." else match[1]


def _tokens(text: str) -> list[Edit]:
    """Insert placeholders, put spaces around them and emoji, and split hashtags."""
    edits: list[Edit] = []
    for match in TOKEN.finditer(text):
        kind, (start, end) = match.lastgroup, match.span()
        if kind is None or kind == "emoticon":
            continue
        _gap(text, start, edits)
        if kind == "hashtag":
            _open_hashtag(text, start, end, edits)
            continue
        if kind not in ("emoji", "placeholder"):
            edits.append((start, end, f"<{kind}>"))
        _gap(text, end, edits)
    return edits


def _gap(text: str, at: int, edits: list[Edit]) -> None:
    """Insert a space, unless there is one."""
    space = (at, at, " ")
    if 0 < at < len(text) and text[at] != " " and text[at - 1] != " " and (not edits or edits[-1] != space):
        edits.append(space)


def _open_hashtag(text: str, start: int, end: int, edits: list[Edit]) -> None:
    """Separate the sign from the word, and the words of CamelCase and snake_case."""
    letters = False  # digits before any letter ("#4Ever") do not end a word
    for at in range(start + 1, end):
        before, char = text[at - 1], text[at]
        letters = letters or before.isalpha()
        lower_next = at + 1 < end and text[at + 1].islower()
        if char == "_":
            edits.append((at, at + 1, " "))
        elif before == "#" or (
            char.isupper() and (before.islower() or (letters and before.isdigit()) or (before.isupper() and lower_next))
        ):
            _gap(text, at, edits)


RULES: tuple[Callable[[str], Iterator[Edit] | list[Edit]], ...] = (
    _decode_entities,
    _drop_unwanted,
    _compose,
    _regular_spaces,
    _short_marks,
    _short_letters,
    _single_signs,
    _tokens,
    _few_emoji,
)
