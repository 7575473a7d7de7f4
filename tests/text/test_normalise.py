"""Normalisation: idempotent, keeps every letter of every script, and knows where each character came from."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from emoglot.errors import UsageError
from emoglot.text.normalise import NORMALISATION_VERSION, normalise, normalise_text
from emoglot.text.patterns import PLACEHOLDERS

EXAMPLES = {
    # entities, escapes, spaces, what cannot be seen
    "a &amp; b": "a & b",
    "&amp;amp;lt;3": "<3",
    "it&#39;s &quot;ok&quot;": 'it\'s "ok"',
    "&am&#112; &notanentity; AT&T": "&amp &notanentity; AT&T",
    "&am&#112;;": "&",
    "one\\ntwo\\\\n \\t three\\r": "one two three",
    " \u3000a\t\n b\u00a0c ": "a b c",
    "nu\x00ll \ufeffbom\u200b soft\u00adhyphen \ud83d lone": "null bom softhyphen lone",
    "\ud83d\ude00": "😀",
    # things with a placeholder
    "see https://example.org/a?b=c#D.": "see <url> .",
    "www.example.org pic.twitter.com/Ab1 yes/no": "<url> <url> yes/no",
    "看http://t.cn/Ab1看": "看 <url> 看",
    "(ann.lee@example.co.uk)": "( <email> )",
    "@maria and .@ann_lee: h@te RT@bob": "<user> and . <user> : h@te RT <user>",
    "@tanakaさん @小明 @bob@host": "<user> さん <user> <user>",
    "$5 €1,200.50 5 € US$3k 5 $20": "<money> <money> <money> US <money> <number> <money>",
    "50% ٥٠٪ 3.5 %": "<percent> <percent> <percent>",
    "+1 (555) 123-4567 or (555) 123-4567, 555-123-4567": "<phone> or <phone> , <phone>",
    "5:30 17:05:59 5pm 5:30 p.m": "<time> <time> <time> <time>",
    "2018-05-21 21/05/2018 21.5.18": "<date> <date> <date>",
    "7 1,000.5 ٣٤ १२ ๑๒": "<number> <number> <number> <number> <number>",
    "covid19 b4 2nd gr8 5km": "covid19 b4 2nd gr8 5km",
    "我有3个": "我有 <number> 个",
    "I <3 you </3 :3 but 2:3": "I <3 you </3 :3 but <number> : <number>",
    "<user><url> <number>": "<user> <url> <number>",
    # hashtags
    "#SoHappyToday": "# So Happy Today",
    "wow#happy#USAToday!": "wow # happy # USA Today!",
    "#so_happy_2018 #4Ever #Covid19Sucks": "# so happy <number> # 4Ever # Covid19 Sucks",
    "#ПриветМир #فرح_كبير #嬉しい #खुशी": "# Привет Мир # فرح كبير # 嬉しい # खुशी",
    "# alone #": "# alone #",
    # elongation and repeated signs
    "soooo goood NOOOooo": "soo good NOOoo",
    "нееееет хаха ააააა ሰላምምምም 哈哈哈哈 ㅋㅋㅋㅋ": "неет хаха აა ሰላምም 哈哈 ㅋㅋ",
    "جمييييل جـــــدا": "جمييل جــدا",
    "कीकीकीकी มากกกก ดีีีี": "कीकी มากก ดีี",
    "aaaa\u0331": "aaa\u0331",
    "1000000": "<number>",
    "what?!?! no!!!! wait... hm.. so… (((": "what?!?! no! wait… hm… so… (",
    # emoji
    "yes😂😂😂😂no": "yes 😂 😂 no",
    "😂 😂 😂 👍👍🏽👍🏽👍🏽": "😂 😂 👍 👍🏽 👍🏽",
    "👩‍💻👩🏽‍🚀❤️‍🔥x": "👩‍💻 👩🏽‍🚀 ❤️‍🔥 x",
    "🇫🇷🇩🇪 5️⃣#️⃣ 🏴󠁧󠁢󠁥󠁮󠁧󠁿a": "🇫🇷 🇩🇪 5️⃣ #️⃣ 🏴󠁧󠁢󠁥󠁮󠁧󠁿 a",
    # scripts
    "cafe\u0301": "café",
    "\u1112\u1161\u11ab": "한",
    "ക്\u200d": "ക്\u200d",
    "\u200da\u200d\u200d \u200cb": "a\u200d b",
}

UNCHANGED = [
    "",
    "What a lovely morning, isn't it?",
    "أنا سعيد لأن الأمل آتٍ إلى البيت",
    "می‌خواهم امروز شاد باشم",
    "मुझे बारिश की आवाज़ बहुत पसंद है",
    "ফুলের গন্ধ ভালো লাগে",
    "วันนี้ฝนตกแต่ใจยังยิ้มได้",
    "今天的晚霞真让人安心。",
    "오늘은 바람이 참 따뜻하다",
    "დღეს ბაღში სიმშვიდეა",
    "ዛሬ ልቤ በደስታ ተሞላ",
    "Сегодня тихий и добрый вечер",
    "හෙට ශ්\u200dරී ලංකාවට යමු",
    "Im Garten saß ein müder Igel 🦔 und schlief",
]

# Written with escapes, which are resolved below, so that it can be read.
NASTY = r"""
a A aa é e\u0301 \u0301 \u0338 = < > & amp; &amp; &lt; &#39; # ## @ @bob bob@x.com http:// http:/ www. x.com/ 1 12 5 3
<3 :3 12:30 5pm pm \x5c \x5cn n _ __ ! !! . ... … $ € % + - ( ) / // : ; ' 😀 👍🏽 \U0001f3fd \u200d \u200c
\u200b \ufeff \ufe0f \u20e3 5\ufe0f\u20e3 🇫 🇷 🏴 \U000e0067 \ud83d \ude00 \x00 看 ไทย \u0e35 한
\u1100 \u1161 \u11a8 की \u093f ا ـ ـــ ٣ RT Foo BAR Http www <user> <url user>
&#8205; &#82 05; &#x5c; &semi; &num; &bsol; &commmat; &gggg; ½ ² \u037e \u0f73 \u0344 𞤢 𞥄 𑄶
com co ‼ * k 2018 -05- \u2000 \x20 \x20\x20 \x0a \u3000
"""
FRAGMENTS = [re.sub(r"\\[xuU]([0-9a-f]+)", lambda code: chr(int(code[1], 16)), word) for word in NASTY.split()]
anything = st.text(st.characters(), max_size=60)  # surrogates included
nasty = st.lists(st.sampled_from(FRAGMENTS), max_size=14).map("".join)
texts = st.one_of(anything, nasty, st.lists(st.one_of(anything, nasty), max_size=4).map(" ".join))


def letters(text: str) -> str:
    return "".join(c for c in text if unicodedata.category(c)[0] in "LM")


@pytest.mark.parametrize(("text", "expected"), EXAMPLES.items(), ids=ascii)
def test_example(text: str, expected: str) -> None:
    assert normalise(text).text == expected


@pytest.mark.parametrize("text", UNCHANGED)
def test_plain_text_is_left_alone_and_maps_to_itself(text: str) -> None:
    result = normalise(text)
    assert result.text == text
    for start in range(len(text) + 1):
        for end in range(start, len(text) + 1):
            assert result.original_span(start, end) == (start, end)


@settings(max_examples=1000)
@given(texts)
def test_idempotent_and_encodable(text: str) -> None:
    once = normalise(text).text
    assert once.encode("utf-8").decode("utf-8") == once
    assert normalise(once).text == once
    assert normalise_text(text) == once


@settings(max_examples=600)
@given(texts)
def test_output_is_composed_and_evenly_spaced(text: str) -> None:
    once = normalise(text).text
    assert unicodedata.is_normalized("NFC", once)
    assert once == " ".join(once.split())


@settings(max_examples=600)
@given(texts)
def test_map_is_monotone_and_within_the_text(text: str) -> None:
    result = normalise(text)
    assert len(result.starts) == len(result.ends) == len(result.text)
    assert list(result.starts) == sorted(result.starts)
    assert list(result.ends) == sorted(result.ends)
    assert all(0 <= start <= end <= len(text) for start, end in zip(result.starts, result.ends, strict=True))
    at = len(result.text)
    assert result.original_span(0, at)[0] <= result.original_span(at, at)[0] <= len(text)


# Letters, marks, signs and emoji, but nothing that begins an entity, an escape, a name, an address or a number.
harmless = st.characters(exclude_categories=["Cs", "Nd"], exclude_characters="&\\@:./$<>")
SCRIPTS = "aéßжДაሀابکमिीก็็한ㅏ\u1161看か\u0301\u094d\u200d\u200cـ ! # _ 😀 \ufe0f"


@settings(max_examples=1000)
@given(st.one_of(st.text(harmless, max_size=60), st.text(st.sampled_from(SCRIPTS), max_size=30)))
def test_no_letter_or_mark_is_lost(text: str) -> None:
    composed = unicodedata.normalize("NFC", text)
    assume(not re.search(r"(.+?)\W*\1\W*\1", composed))  # nothing thrice in a row
    assert letters(normalise(text).text) == letters(composed)


@given(st.sampled_from("aéжДაሀابमก한看か𞤢"), st.integers(1, 40), st.sampled_from(["", "x", " z"]))
def test_elongation_keeps_two_in_any_script(letter: str, count: int, rest: str) -> None:
    result = normalise(letter * count + rest)
    assert result.text == letter * min(count, 2) + rest
    assert result.original_span(0, min(count, 2)) == (0, count)


@pytest.mark.parametrize(
    ("text", "found", "origin"),
    [
        ("hi @maria!", "<user>", "@maria"),
        ("a &amp; b", "&", "&amp;"),
        ("cafe\u0301 now", "é", "e\u0301"),
        ("so https://example.org/x now", "<url>", "https://example.org/x"),
        ("x&#64;y and &#64;maria", "<user>", "&#64;maria"),
        ("#SoHappy", "Happy", "Happy"),
        ("#by_2018", "<number>", "2018"),
        ("sooooo x", "soo", "sooooo"),
        ("no!!!!", "!", "!!!!"),
        ("a😂😂😂😂b", "😂 😂", "😂😂😂😂"),
        ("a \n b", " ", " \n "),
        ("\ud83d\ude00!", "😀", "\ud83d\ude00"),
        ("𝒳𝒴 @bob", "<user>", "@bob"),
    ],
    ids=ascii,
)
def test_map_points_to_what_was_written(text: str, found: str, origin: str) -> None:
    result = normalise(text)
    at = result.text.index(found)
    start, end = result.original_span(at, at + len(found))
    assert text[start:end] == origin


def test_inserted_space_maps_to_nothing() -> None:
    assert normalise("ab😂").original_span(2, 3) == (2, 2)
    assert normalise("#SoHappy").original_span(4, 5) == (3, 3)


@pytest.mark.parametrize(("start", "end"), [(-1, 1), (2, 1), (0, 4)])
def test_span_outside_the_text_is_refused(start: int, end: int) -> None:
    with pytest.raises(UsageError, match=f"within the 3 characters of the text, got {start}:{end}"):
        normalise("abc").original_span(start, end)


@pytest.mark.parametrize("placeholder", PLACEHOLDERS)
def test_placeholder_survives(placeholder: str) -> None:
    assert normalise(f"({placeholder}{placeholder}s").text == f"( {placeholder} {placeholder} s"


MEGABYTE = 1_000_000
NEST = "".join(["&#5", "&#5", "&#5", "&#5", "&#4"] * 20_000) + "9" + ";" * 100_000  # an entity 100,000 deep
COSTLY = {
    **{unit: unit * (MEGABYTE // len(unit)) for unit in ["a", "!", "@", "&", "&amp;", "1", "1.", "\\", "@a", "\u0301"]},
    **{unit: unit * (MEGABYTE // 4 // len(unit)) for unit in ["😀", "😀😁", "#A", "a.", "a-", "ab@", "http://", "+1"]},
    **{unit: unit * (MEGABYTE // 4 // len(unit)) for unit in ["a\u0301", "कि", "𑄧", "&semi;", "<user>", "1 "]},
    "word": "abc" * 300_000 + "@",
    "number": "1." * 400_000 + "1a",
    "marks": "a" + "\u0316\u0301" * 200_000,
    "musical marks": "\U0001d165\U0001d167" * 100_000,
    "escape": "\\" * MEGABYTE + "x",
    "link": "http://a" + "!?" * 400_000,
    "units": "कि" * 150_000 + "@",
    "clusters": "ကို့" * 50_000 + "@",
    "nest": NEST,
}


@pytest.mark.parametrize("text", COSTLY.values(), ids=map(ascii, COSTLY))
def test_long_text_takes_linear_time(text: str) -> None:
    result = normalise_text(text)  # a quadratic rule would not return within the hour
    assert normalise_text(result) == result


def test_deep_entity_is_decoded_to_the_bottom() -> None:
    assert normalise(NEST).text == "<number>"


def test_version_is_a_positive_integer() -> None:
    assert isinstance(NORMALISATION_VERSION, int)
    assert NORMALISATION_VERSION >= 1
