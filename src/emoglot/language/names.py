"""Names of languages: what a user may call them, and the code that this package uses."""

from __future__ import annotations

import re
import unicodedata
from difflib import get_close_matches
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from emoglot.errors import UsageError

# Names are a small table of our own: those of `language_data` take 13 MB, more than the code of the whole package.
# Codes are resolved by `langcodes`, which knows the thousands of ISO 639 and their old and broader forms in 1 MB.
NAMES_FILE = Path(__file__).with_name("names.tsv")
PRIVATE_USE = "-x-"  # of BCP 47: what follows is agreed between user and model, such as a domain
UNDETERMINED = "und"
_LONGEST = 100  # characters; names have up to 30, the rest is for a domain
# Codes that ISO 639 and its macrolanguages keep apart, and this package does not.
_SAME = {
    "nb": "no",
    "nn": "no",
    "fil": "tl",
    "tw": "ak",
    "fat": "ak",
    "yue": "zh",
    "wuu": "zh",
    "sh": "sr",
    "cnr": "sr",
}
_SAME |= dict.fromkeys(("acm", "aeb", "afb", "ajp", "apc", "ars"), "ar")
# Codes of ISO 639 that mean several languages, none, or one that has no code; and those left to private agreement.
_NO_LANGUAGE = re.compile("mul|mis|zxx|q[a-t][a-z]|x-.*")


def known_language(name: Any) -> str | None:
    """Return the code of a language, None for what names none: nothing, "und", or the "qme" of Twitter."""
    if not isinstance(name, str):
        return None
    try:
        code = resolve_language(name)
    except UsageError:
        return None
    return None if code == UNDETERMINED else code


def resolve_language(name: str) -> str:
    """Return the code of a language given as a code of ISO 639 or BCP 47, or as its English or own name.

    A region is kept where there is a code for it ("pt-BR") and dropped elsewhere; what follows "-x-" is kept as it is.
    """
    if len(name) > _LONGEST:
        raise UsageError(f"a language is a code or a name of at most {_LONGEST} characters, got {len(name)}")
    return _resolve(name)


@lru_cache(maxsize=4096)
def _resolve(name: str) -> str:
    language, mark, domain = name.partition(PRIVATE_USE)
    code = _by_name().get(_key(language)) or _by_code(language.strip().replace("_", "-"))
    if code is None or (mark and not domain):
        raise UsageError(
            f"a language is a code or a name, such as 'de', 'deu' or 'German', got {name!r}{_suggestion(language)}; "
            "'emoglot languages' lists those that were measured"
        )
    return f"{code}{mark}{domain}"


def _by_code(tag: str) -> str | None:
    """Return our code for a tag of BCP 47, None if there is no such language."""
    from langcodes import Language, standardize_tag
    from langcodes.tag_parser import LanguageTagError

    try:
        parsed = Language.get(tag)
    except LanguageTagError:
        return None
    language = parsed.extlangs[0] if parsed.extlangs else parsed.language
    if language is None or not parsed.is_valid() or _NO_LANGUAGE.fullmatch(language):
        return None
    regional = f"{language}-{parsed.territory}"
    broader = standardize_tag(language, macro=True)
    candidates = (regional, language, _SAME.get(language, ""), broader)
    return next((code for code in candidates if code in _names()), language)


def _suggestion(language: str) -> str:
    spelt = {_key(name): name for names in _names().values() for name in names}
    near = [spelt[key] for key in get_close_matches(_key(language), spelt, n=3, cutoff=0.75)]
    return f": did you mean {' or '.join(near)}?" if near else ""


@cache
def _names() -> dict[str, tuple[str, ...]]:
    """Return the names of each language by its code, the English one first."""
    lines = NAMES_FILE.read_text(encoding="utf-8").splitlines()
    fields = (line.split("\t") for line in lines)
    return {UNDETERMINED: (), **{code: tuple(names.split("|")) for code, names in fields}}


@cache
def _by_name() -> dict[str, str]:
    """Return the code of each code and name, as `_key` spells them."""
    found = {_key(name): code for code, names in _names().items() for name in names}
    return found | {_key(code): code for code in _names()}


def _key(name: str) -> str:
    """Spell a name without case, accents and the signs between its words."""
    plain = unicodedata.normalize("NFKD", name.casefold())
    letters = "".join(sign for sign in plain if not unicodedata.combining(sign))
    return " ".join(re.sub(r"[\s_\-()'’ʻʼ]+", " ", letters).split())
