"""The bound on the characters of a text that are looked at."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from emoglot.text.limit import READ_CHARACTERS, cut, first_words


@given(st.text(), st.integers(0, 3))
def test_a_beginning_is_kept_and_words_after_it_are_reported(text, copies):
    whole = text * (copies * READ_CHARACTERS // max(1, len(text)))
    beginning, has_more = cut(whole)
    assert whole.startswith(beginning)
    assert len(beginning) == min(len(whole), READ_CHARACTERS)
    rest = whole[len(beginning) :]
    assert has_more >= any(character.isalnum() for character in rest)
    assert has_more <= bool(rest)


def test_signs_and_spaces_after_it_are_no_words():
    assert cut("a" * READ_CHARACTERS + "…! \n" * 100) == ("a" * READ_CHARACTERS, False)


@given(st.text(alphabet="ab \n\u3000"), st.integers(1, 5))
def test_the_first_words_are_a_beginning_with_as_many_words(text, count):
    beginning = first_words(text, count)
    assert text.startswith(beginning)
    if len(beginning) < len(text):
        assert beginning.split() == text.split()[:count]
    elif len(text) >= 2 * count:
        assert len(text.split()) <= count
