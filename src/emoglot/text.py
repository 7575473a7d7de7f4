"""Social-media text made regular, with a map from every character back to the user's own string.

Each rule looks for one kind of irregularity and answers with edits. The rules are run in order until a whole pass finds
nothing to edit, which makes the result idempotent; a rule leaves as little as possible for the next pass to find.
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

__all__ = ["NORMALISATION_VERSION", "PLACEHOLDERS", "Normalised", "normalise", "normalise_text"]

# Part of every feature-cache key: raise it when the output changes for any text.
NORMALISATION_VERSION = 1

# Ordinary text settles in two passes, hashtags need three; the bound is for what fuzzing has not found.
MAX_PASSES = 16

PLACEHOLDERS = tuple(
    f"<{kind}>" for kind in ("url", "email", "user", "money", "percent", "phone", "time", "date", "number")
)

# Who is spoken to, and whether an emoji is drawn in colour, says nothing about emotion: what we train does not read it.
UNREAD = ("<user>", "\ufe0e", "\ufe0f")

# `re` has no \p{M}. Beyond the basic plane whole blocks of scripts stand in for their marks, since each range of a set
# costs time at each character. Variation selectors and the keycap are marks too, but of emoji and not of words.
EMOJI_MARKS = "\ufe00-\ufe0f\u20e3"
ALL_MARKS = "".join(c for c in map(chr, range(0x300, 0x20000)) if unicodedata.category(c)[0] == "M")
BASIC_MARKS = re.sub(f"[{EMOJI_MARKS}\U00010000-\U0001ffff]", "", ALL_MARKS)
MARKS = BASIC_MARKS + "\U00011000-\U00011fff\U0001e000-\U0001e94a"
JOINERS = "\u200c\u200d"  # Persian and the Indic scripts spell with them
LETTER = r"[^\W\d_]"
WORD = rf"\w{MARKS}{JOINERS}"

# Scripts that put no space between words, or between a number and its particle: they do not bound a name or a number.
UNSPACED = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ecd\u0edc-\u0edf"  # Thai, Lao
    "\u1000-\u103f\u1050-\u108f\u109a-\u109d\u1780-\u17d3\u17d7\u17dc\u17dd"  # Myanmar, Khmer
    "\u3005-\u3007\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\uff66-\uff9f"  # kana
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # ideographs
    "\u1100-\u11ff\u3131-\u318e\ua960-\ua97f\uac00-\ud7fb"  # Hangul
)
START = rf"(?:(?<![{WORD}])|(?<=[{UNSPACED}]))"
END = rf"(?:(?![{WORD}])|(?=[{UNSPACED}]))"

PICTURES = (
    "\u203c\u2049\u231a\u231b\u2328\u23cf\u23e9-\u23fa\u25b6\u25c0\u25fb-\u25fe\u2600-\u2775\u2794-\u27bf"
    "\u2934\u2935\u2b05-\u2b07\u2b1b\u2b1c\u2b50\u2b55\U0001f000-\U0001f0ff\U0001f10d-\U0001faff"
)
TAGS = "\U000e0020-\U000e007f"  # spell the flags of England, Scotland and Wales
PICTURE = f"[{PICTURES}][\ufe0e\ufe0f\U0001f3fb-\U0001f3ff]*[{TAGS}]*"
KEYCAP = f"(?:{START}[0-9]|[#*])\ufe0f?\u20e3"
EMOJI = f"[\U0001f1e6-\U0001f1ff]{{2}}|{KEYCAP}|{PICTURE}(?:\u200d{PICTURE})*"  # a flag is two letters

# A quantifier is bounded wherever the match may fail after it, and START keeps a run from being tried again from its
# middle: together they keep the search linear.
DIGITS = r"\d+(?:[.,٫٬]\d+)*"
CURRENCY = "$¢-¥֏؋৲৳૱௹฿៛\u20a0-\u20c0﷼﹩＄￠￡￥￦"
SPACED = rf"(?![{UNSPACED}])[{WORD}]"
NAME = rf"(?:(?:{SPACED})+|[{UNSPACED}]+)"
LABELS = r"[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){0,3}"
SCHEME = rf"(?:(?i:https?|ftp):/|(?i:www)\.)(?=[{WORD}])"  # "//" is a repeated sign, already one "/" by then
BARE_HOST = rf"{LABELS}\.(?i:com|net|org|co|ly|be|gl|me|tv|io)/"

# By order of preference. Digits that touch a letter ("covid19", "b4", "2nd") are part of that word and stay.
# What begins with a letter or digit need not look at START again: CAN_BEGIN has, and each look costs time to compile.
KINDS = {
    "emoji": EMOJI,
    "url": rf"(?:{SCHEME}|{BARE_HOST})(?:{SPACED}|[!#$%&'()*+,./:;=?@~|\[\]-])*(?:{SPACED}|[#$%&=/+~-])",
    "email": rf"{START}[A-Za-z0-9._%+-]{{1,64}}@{LABELS}\.[A-Za-z]{{2,24}}{END}",
    "user": rf"(?:{START}|(?<=\bRT))@{NAME}(?:@{NAME})*",  # a letter before the @ makes it a word such as "h@te"
    "money": rf"[{CURRENCY}] ?{DIGITS}(?:[kKmMbB]n?)?{END}|{DIGITS} ?[{CURRENCY}](?! ?\d)",
    "percent": rf"{DIGITS} ?[%٪％]",
    "phone": rf"\+\d(?:[ .()-]{{0,2}}\d){{6,14}}{END}|(?:\(\d{{3}}\) ?|\d{{3}}[ .-])\d{{3}}[ .-]\d{{4}}{END}",
    "time": rf"(?:\d\d?:\d\d(?::\d\d)?(?: ?[aApP]\.?[mM])?|\d\d? ?[aApP]\.?[mM]){END}",
    "date": rf"(?:\d{{4}}[-/.]\d\d?[-/.]\d\d?|\d\d?[-/.]\d\d?[-/.](?:\d{{4}}|\d\d)){END}",
    "number": rf"{DIGITS}{END}",
    "placeholder": "|".join(PLACEHOLDERS),
    "emoticon": rf"(?:</?3+|(?<!\d)[:=]-?3){END}(?![.,]\d)",  # "<3" is love, not a number
    "hashtag": rf"#(?=_?[^\W_])[{WORD}]+",
}
# For speed: words that can't begin any token are passed over, and the rest is tried only where a token can begin.
# One mark at a time: in a run of marks, as Burmese has in each syllable, "several" would divide in 2ⁿ ways.
PLAIN = rf"{LETTER}+(?:[{BASIC_MARKS}]{LETTER}*)*(?:[ ,;!?'\"…،؟。，！？]+|\.(?: |\Z)|\Z)"
DONE = rf"(?<![^ ])(?:{'|'.join(PLACEHOLDERS)})(?: |\Z)"
CAN_BEGIN = rf"(?:{START}(?=\w)|(?=[<:=#*@+({CURRENCY}{PICTURES}]))"
ANY_KIND = "|".join(f"(?P<{kind}>{pattern})" for kind, pattern in KINDS.items())
TOKEN = re.compile(f"(?<![{WORD}])(?:{PLAIN}|{DONE})+|{CAN_BEGIN}(?:{ANY_KIND})")

NUMERIC_ENTITY = re.compile(r"&#(?:[0-9]{1,10}|[xX][0-9a-fA-F]{1,8});")
ENTITY = re.compile(rf"{NUMERIC_ENTITY.pattern}|&[A-Za-z][A-Za-z0-9]{{1,31}};")
LONGEST_ENTITY = max(map(len, html5))

SURROGATE_PAIR = "[\ud800-\udbff][\udc00-\udfff]"
INVISIBLE = (
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e001f]"
)
# A joiner is needed after a letter or mark, and between two pictures; tags are needed in a flag.
STRAY_JOINER = rf"(?<!{LETTER})(?<![{MARKS}])(?:(?<![{PICTURES}\ufe0e\ufe0f{TAGS}])|(?!\u200d[{PICTURES}]))[{JOINERS}]"
UNWANTED = re.compile(f"{SURROGATE_PAIR}|{INVISIBLE}|{STRAY_JOINER}|(?<![\U0001f3f4{TAGS}])[{TAGS}]+")

# What may compose with the character before it: marks, the vowels and finals of Hangul, and those of Kirat Rai.
COMPOSABLE = f"[{ALL_MARKS}\u1160-\u11ff\U00016d63\U00016d67-\U00016d6a]"
COMPOSED = re.compile(f".{COMPOSABLE}*", re.DOTALL)
# `unicodedata` sorts a run of marks in quadratic time, so a run this long is sorted before.
MANY_MARKS = 1000
MANY_MARKS_RUN = re.compile(f"[{BASIC_MARKS}\U00010000-\U0001efff]{{{MANY_MARKS}}}")

ESCAPE = r"(?<!\\)\\+[nrt]"  # the two characters "\n", as left by many an export
IRREGULAR_SPACE = re.compile(rf"\s*(?:  |[^\S ]|{ESCAPE})(?:\s|{ESCAPE})*|^ | \Z")
TRIPLE = re.compile(r"(.)\1\1", re.DOTALL)
MARK = re.compile(f"[{MARKS}]")
LONG_MARK = re.compile(rf"([{MARKS}])\1{{2,}}")
LONG_LETTER = re.compile(rf"(?!\b(?i:www)\.\w)({LETTER}[{MARKS}]{{0,8}})\1{{2,}}(?![{MARKS}])")
REPEATED_SIGN = re.compile(r"([\W_])(?:\1|(?<=[.…])[.…])+")
NOT_A_SIGN = re.compile(rf"[\s{MARKS}{EMOJI_MARKS}{PICTURES}]")
REPEATED_EMOJI = re.compile(rf"(?<![^ ])({EMOJI})(?: \1){{2,}}(?![^ ])")

PICTURE_OR_KEYCAP = re.compile(f"[{PICTURES}\u20e3]")

Edit = tuple[int, int, str]  # the [start, end) of a text and what takes its place


@dataclass(frozen=True, slots=True)
class Normalised:
    """A regular text; its character i came from the user's own characters starts[i] to ends[i], which is exclusive."""

    text: str
    starts: tuple[int, ...]
    ends: tuple[int, ...]

    def original_span(self, start: int, end: int) -> tuple[int, int]:
        """Give the span of the user's own text from which text[start:end] came."""
        if not 0 <= start <= end <= len(self.text):
            raise UsageError(f"a span must lie within the {len(self.text)} characters of the text, got {start}:{end}")
        if start < end:
            return self.starts[start], self.ends[end - 1]
        here = self.starts[start] if start < len(self.text) else max(self.ends, default=0)
        return here, here


def normalise(text: str) -> Normalised:
    """Make a text regular and remember where each character came from."""
    regular, history = _rewrite(text)
    starts: Sequence[int] = range(len(text))
    ends: Sequence[int] = range(1, len(text) + 1)
    for edits in history:
        starts, ends = _remap(starts, ends, edits)
    return Normalised(regular, tuple(starts), tuple(ends))


def normalise_text(text: str) -> str:
    """Make a text regular: normalise(text).text without the cost of the map."""
    return _rewrite(text)[0]


def _rewrite(text: str) -> tuple[str, list[list[Edit]]]:
    """Run the rules until nothing changes, and keep what they did."""
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
    """Carry the map of a text over its edits: a replacement comes from all that it replaces."""
    new_starts: list[int] = []
    new_ends: list[int] = []
    at = 0
    for start, end, replacement in edits:
        new_starts += starts[at:start]
        new_ends += ends[at:start]
        at = end
        if start < end:
            first, last = starts[start], ends[end - 1]
        else:  # an inserted space is empty, unless it parts what came from one place
            first, last = min(starts[start], ends[start - 1]), ends[start - 1]
        new_starts += [first] * len(replacement)
        new_ends += [last] * len(replacement)
    new_starts += starts[at:]
    new_ends += ends[at:]
    return new_starts, new_ends


def _decode_entities(text: str) -> Iterator[Edit]:
    """Decode HTML entities, and those that decoding brings to light, from left to right on a stack."""
    if "&" not in text or not ENTITY.search(text):
        return
    stack: list[Edit] = []
    for at, char in enumerate(text):
        stack.append((at, at + 1, char))
        while stack[-1][2] == ";" and (size := _entity_size(stack)):
            start, end = stack[-size][0], at + 1
            decoded = _decode("".join(piece for _, _, piece in stack[-size:]))
            del stack[-size:]
            # Nothing invisible may come between the characters of an outer entity.
            if stack and (not decoded or (decoded in JOINERS and stack[-1][2].isascii())):
                start, _, decoded = stack.pop()
            stack.append((start, end, decoded))
    yield from ((start, end, piece) for start, end, piece in stack if piece != text[start:end])


def _entity_size(stack: list[Edit]) -> int:
    """Count the pieces of the entity that ends the stack: 0 if there is none."""
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
    """Drop what can't be seen or encoded; two surrogates that make a pair become the character they stand for."""
    if text.isprintable():  # none of it is
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
    """Decompose and put marks in canonical order, in time that is not quadratic."""
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
    """Keep two of a run: the second stands for the rest as well."""
    for match in run.finditer(text):
        yield match.end(1) + len(apart), match.end(), match[1]


def _short_marks(text: str) -> Iterator[Edit]:
    return _at_most_two(LONG_MARK, text) if TRIPLE.search(text) else iter(())


def _short_letters(text: str) -> Iterator[Edit]:
    return _at_most_two(LONG_LETTER, text) if TRIPLE.search(text) or MARK.search(text) else iter(())


def _few_emoji(text: str) -> Iterator[Edit]:
    return _at_most_two(REPEATED_EMOJI, text, apart=" ") if PICTURE_OR_KEYCAP.search(text) else iter(())


def _single_signs(text: str) -> Iterator[Edit]:
    """Keep one of a repeated sign; dots become an ellipsis, which is not a full stop."""
    for match in REPEATED_SIGN.finditer(text):
        if not NOT_A_SIGN.match(match[1]):
            yield match.start(), match.end(), "…" if match[1] == "." else match[1]


def _tokens(text: str) -> list[Edit]:
    """Put placeholders in, set them and emoji apart, open hashtags."""
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
    """Insert a space, where there is none yet."""
    space = (at, at, " ")
    if 0 < at < len(text) and text[at] != " " and text[at - 1] != " " and (not edits or edits[-1] != space):
        edits.append(space)


def _open_hashtag(text: str, start: int, end: int, edits: list[Edit]) -> None:
    """Part the sign from the word, and the words of CamelCase and snake_case from each other."""
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
