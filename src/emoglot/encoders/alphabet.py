"""The alphabet of an encoder: the characters that its tokenizer knows."""

from __future__ import annotations

from typing import Any

from emoglot.text.normalise import UNREAD

# Of SentencePiece and WordPiece; other tokenizers have no unknown token.
_UNKNOWN_TOKENS = ("<unk>", "[UNK]")


class Alphabet:
    """Finds the characters that a tokenizer does not know; each is looked up once."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        ids = (tokenizer.token_to_id(name) for name in _UNKNOWN_TOKENS)
        self._unknown_id = next((found for found in ids if found is not None), None)
        self._known: set[str] = set()
        self._unknown: set[str] = set()

    def is_foreign(self, text: str) -> bool:
        """Return whether more than half of the letters of a text, or all characters but white space, are unknown."""
        if self._unknown_id is None or not (unknown := self._unknown_in(text)):
            return False
        for sign in UNREAD:
            text = text.replace(sign, "")
        letters = [character for character in text if character.isalnum()]
        known = [character for character in text if character not in unknown and not character.isspace()]
        return not known or 2 * sum(letter in unknown for letter in letters) > len(letters)

    def _unknown_in(self, text: str) -> set[str]:
        characters = set(text)
        for character in characters - self._known - self._unknown:
            ids = self._tokenizer.encode(character, add_special_tokens=False).ids
            (self._unknown if self._unknown_id in ids else self._known).add(character)
        return characters & self._unknown
