"""Language codes: converts the codes and names that users give to those of this package."""

from __future__ import annotations

import re
import unicodedata
from difflib import get_close_matches
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from emoglot.errors import UsageError

# Names are in a small table, since the package `language_data` takes 13 MB. Codes are resolved by `langcodes`, which
# knows those of ISO 639 with their deprecated and broader forms in 1 MB.
NAMES_FILE = Path(__file__).with_name("language_names.tsv")
PRIVATE_USE = "-x-"  # of BCP 47; a domain follows
NO_LANGUAGE = "und"  # the code of ISO 639 for an undetermined language
ANY = "any"  # given as a language: do not identify it, use the thresholds for any text
_LONGEST = 100  # characters; names have up to 30, the rest is the domain
# Codes that ISO 639 distinguishes and this package does not.
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
# Codes of ISO 639 for several languages, none, one without a code, and private use.
_NOT_ONE = re.compile("mul|mis|zxx|q[a-t][a-z]|x-.*")


def known_language(name: Any) -> str | None:
    """Return the code of a language, or None for a value that names none, such as "und" or Twitter's "qme"."""
    if not isinstance(name, str):
        return None
    try:
        code = resolve_language(name)
    except UsageError:
        return None
    return None if code == NO_LANGUAGE else code


def resolve_language(name: str) -> str:
    """Return the code of a language given as a code of ISO 639 or BCP 47, or by its English or native name.

    A region is kept only if the table has it ("pt-BR"); what follows "-x-" is kept unchanged.
    """
    if len(name) > _LONGEST:
        raise UsageError(f"a language must be a code or a name of at most {_LONGEST} characters, got {len(name)}")
    return _resolve(name)


@lru_cache(maxsize=4096)
def _resolve(name: str) -> str:
    language, mark, domain = name.partition(PRIVATE_USE)
    code = _by_name().get(_key(language)) or _by_code(language.strip().replace("_", "-"))
    if code is None or (mark and not domain):
        raise UsageError(
            f"a language must be an ISO code, such as 'de' or 'deu', or a name that 'emoglot languages' lists, such as "
            f"'German', got {name!r}{_suggestion(language) or ': use its code, or any'}"
        )
    return f"{code}{mark}{domain}"


def _by_code(tag: str) -> str | None:
    """Return the code of a BCP 47 tag, or None if there is no such language."""
    from langcodes import Language, standardize_tag
    from langcodes.tag_parser import LanguageTagError

    try:
        parsed = Language.get(tag)
    except LanguageTagError:
        return None
    language = parsed.extlangs[0] if parsed.extlangs else parsed.language
    if language is None or not parsed.is_valid() or _NOT_ONE.fullmatch(language):
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
    """Return the names of each language by code, the English one first."""
    lines = NAMES_FILE.read_text(encoding="utf-8").splitlines()
    fields = (line.split("\t") for line in lines)
    return {NO_LANGUAGE: (), **{code: tuple(names.split("|")) for code, names in fields}}


@cache
def _by_name() -> dict[str, str]:
    """Return the code of each code and name in the form of `_key`."""
    found = {_key(name): code for code, names in _names().items() for name in names}
    return found | {_key(code): code for code in _names()}


def _key(name: str) -> str:
    """Return a name without case, accents and punctuation."""
    plain = unicodedata.normalize("NFKD", name.casefold())
    letters = "".join(sign for sign in plain if not unicodedata.combining(sign))
    return " ".join(re.sub(r"[\s_\-()'’ʻʼ]+", " ", letters).split())
