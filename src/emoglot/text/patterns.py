"""The regular expressions of normalisation: tokens, marks, emoji, spaces and repetitions."""

from __future__ import annotations

import re
import unicodedata
from html.entities import html5

PLACEHOLDERS = tuple(
    f"<{kind}>" for kind in ("url", "email", "user", "money", "percent", "phone", "time", "date", "number")
)

# `re` has no \p{M}. Beyond the basic plane whole blocks are used instead of marks, since each range of a set costs time
# at each character. Variation selectors and the keycap are marks of emoji, not of words.
EMOJI_MARKS = "\ufe00-\ufe0f\u20e3"
ALL_MARKS = "".join(c for c in map(chr, range(0x300, 0x20000)) if unicodedata.category(c)[0] == "M")
BASIC_MARKS = re.sub(f"[{EMOJI_MARKS}\U00010000-\U0001ffff]", "", ALL_MARKS)
MARKS = BASIC_MARKS + "\U00011000-\U00011fff\U0001e000-\U0001e94a"
JOINERS = "\u200c\u200d"  # part of the spelling in Persian and the Indic scripts
LETTER = r"[^\W\d_]"
WORD = rf"\w{MARKS}{JOINERS}"

# Scripts without spaces between words, or between a number and its particle: a name or number may touch them.
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
TAGS = "\U000e0020-\U000e007f"  # in the flags of England, Scotland and Wales
PICTURE = f"[{PICTURES}][\ufe0e\ufe0f\U0001f3fb-\U0001f3ff]*[{TAGS}]*"
KEYCAP = f"(?:{START}[0-9]|[#*])\ufe0f?\u20e3"
EMOJI = f"[\U0001f1e6-\U0001f1ff]{{2}}|{KEYCAP}|{PICTURE}(?:\u200d{PICTURE})*"  # a flag is two letters

# Quantifiers are bounded wherever the match may fail after them, and START prevents matches that begin within a run:
# together they keep the search linear.
DIGITS = r"\d+(?:[.,٫٬]\d+)*"
CURRENCY = "$¢-¥֏؋৲৳૱௹฿៛\u20a0-\u20c0﷼﹩＄￠￡￥￦"
SPACED = rf"(?![{UNSPACED}])[{WORD}]"
NAME = rf"(?:(?:{SPACED})+|[{UNSPACED}]+)"
LABELS = r"[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){0,3}"
SCHEME = rf"(?:(?i:https?|ftp):/|(?i:www)\.)(?=[{WORD}])"  # repeated signs are removed before: "//" is "/"
BARE_HOST = rf"{LABELS}\.(?i:com|net|org|co|ly|be|gl|me|tv|io)/"

# In order of preference. Digits next to a letter ("covid19", "b4", "2nd") are part of the word and stay. Patterns that
# begin with a letter or digit omit START, which CAN_BEGIN includes, to save compile time.
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
# For speed: words that cannot begin a token are skipped, and the rest is tried only where a token can begin.
# One mark at a time: a quantifier on marks would match a run of them, as in Burmese syllables, in 2ⁿ ways.
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
# Joiners are kept after a letter or mark and between two pictures; tags are kept in a flag.
STRAY_JOINER = rf"(?<!{LETTER})(?<![{MARKS}])(?:(?<![{PICTURES}\ufe0e\ufe0f{TAGS}])|(?!\u200d[{PICTURES}]))[{JOINERS}]"
UNWANTED = re.compile(f"{SURROGATE_PAIR}|{INVISIBLE}|{STRAY_JOINER}|(?<![\U0001f3f4{TAGS}])[{TAGS}]+")

# Characters that may compose with the one before: marks, vowels and finals of Hangul and of Kirat Rai.
COMPOSABLE = f"[{ALL_MARKS}\u1160-\u11ff\U00016d63\U00016d67-\U00016d6a]"
COMPOSED = re.compile(f".{COMPOSABLE}*", re.DOTALL)
# `unicodedata` sorts a run of marks in quadratic time, so a run of this length is sorted before.
MANY_MARKS = 1000
MANY_MARKS_RUN = re.compile(f"[{BASIC_MARKS}\U00010000-\U0001efff]{{{MANY_MARKS}}}")

ESCAPE = r"(?<!\\)\\+[nrt]"  # the two characters "\n", as some exports contain
IRREGULAR_SPACE = re.compile(rf"\s*(?:  |[^\S ]|{ESCAPE})(?:\s|{ESCAPE})*|^ | \Z")
TRIPLE = re.compile(r"(.)\1\1", re.DOTALL)
MARK = re.compile(f"[{MARKS}]")
LONG_MARK = re.compile(rf"([{MARKS}])\1{{2,}}")
LONG_LETTER = re.compile(rf"(?!\b(?i:www)\.\w)({LETTER}[{MARKS}]{{0,8}})\1{{2,}}(?![{MARKS}])")
REPEATED_SIGN = re.compile(r"([\W_])(?:\1|(?<=[.…])[.…])+")
NOT_A_SIGN = re.compile(rf"[\s{MARKS}{EMOJI_MARKS}{PICTURES}]")
REPEATED_EMOJI = re.compile(rf"(?<![^ ])({EMOJI})(?: \1){{2,}}(?![^ ])")

PICTURE_OR_KEYCAP = re.compile(f"[{PICTURES}\u20e3]")
