"""Names of languages, and the language of a text."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emoglot.encoders.registry import BUNDLED_MODEL
from emoglot.errors import DataError, ModelError, UsageError
from emoglot.text import identify as module
from emoglot.text.identify import (
    LEAST_CONFIDENCE,
    TRUSTED_CONFIDENCE,
    UNKNOWN_LANGUAGE,
    WEIGHTS_FILE,
    Identified,
    identify,
    load_identifier,
    read_identifier,
    save_identifier,
)
from emoglot.text.language_names import resolve_language
from emoglot.text.letters import LONGEST_NGRAM, SCRIPTS, hash_ngrams, read_letters

LISTED = json.loads((BUNDLED_MODEL / "languages.json").read_text(encoding="utf-8"))

SENTENCES = {
    "af": "Ek is baie bly dat jy gister by ons kom kuier het.",
    "am": "ዛሬ ከጓደኞቼ ጋር ስለተገናኘሁ በጣም ደስ ብሎኛል።",
    "ar": "أنا سعيد جدا لأنك جئت لزيارتنا اليوم في البيت.",
    "be": "Сёння ў мяне вельмі добры настрой, бо прыехала сястра.",
    "bg": "Днес съм много щастлив, защото най-накрая се прибрах у дома.",
    "bn": "আজ আমার মনটা খুব ভালো কারণ বোন বাড়ি এসেছে।",
    "ca": "Avui estic molt content perquè la meva germana ha tornat a casa.",
    "cs": "Dneska mám opravdu špatnou náladu, protože mi ujel autobus.",
    "cy": "Dw i'n hapus iawn achos bod fy chwaer wedi dod adref heddiw.",
    "da": "Jeg er rigtig ked af, at I ikke kunne komme til min fødselsdag.",
    "de": "Ich freue mich riesig, dass ihr morgen alle zu Besuch kommt.",
    "el": "Σήμερα είμαι πολύ χαρούμενη γιατί γύρισε ο αδελφός μου.",
    "en": "I am so glad that you could all come over for dinner last night.",
    "eo": "Mi tre ĝojas, ke vi hodiaŭ povis veni al nia hejmo.",
    "es": "Estoy muy contento porque mi hermana por fin ha vuelto a casa.",
    "et": "Mul on nii hea meel, et sa täna meile külla tulid.",
    "eu": "Oso pozik nago nire arreba etxera itzuli delako.",
    "fa": "امروز خیلی خوشحالم چون خواهرم به خانه برگشته است.",
    "fi": "Olen niin iloinen, että pääsit tulemaan meille eilen illalla.",
    "fr": "Je suis vraiment déçue que tu ne sois pas venue hier soir.",
    "ga": "Tá áthas an domhain orm gur tháinig mo dheirfiúr abhaile inniu.",
    "gu": "આજે હું ખૂબ ખુશ છું કારણ કે મારી બહેન ઘરે આવી છે.",
    "ha": "Ina matukar farin ciki saboda 'yar uwata ta dawo gida yau.",
    "he": "אני כל כך שמח שאחותי חזרה היום הביתה.",
    "hi": "आज मैं बहुत खुश हूँ क्योंकि मेरी बहन घर आई है।",
    "hu": "Nagyon örülök, hogy tegnap este el tudtál jönni hozzánk.",
    "hy": "Այսօր ես շատ ուրախ եմ, որովհետև քույրս տուն է եկել։",
    "id": "Saya senang sekali karena kamu bisa datang ke rumah kami kemarin.",
    "is": "Ég er svo glöð að þú gast komið til okkar í gærkvöldi.",
    "it": "Sono davvero felice che tu sia venuto a trovarci ieri sera.",
    "ja": "今日は妹が家に帰ってきたので、とても嬉しいです。",
    "ka": "დღეს ძალიან ბედნიერი ვარ, რადგან ჩემი და სახლში დაბრუნდა.",
    "kk": "Бүгін әпкем үйге келгені үшін мен өте қуаныштымын.",
    "km": "ថ្ងៃនេះខ្ញុំសប្បាយចិត្តណាស់",
    "ko": "오늘 동생이 집에 돌아와서 정말 기뻐요.",
    "lo": "ມື້ນີ້ຂ້ອຍດີໃຈຫຼາຍ",
    "lt": "Labai džiaugiuosi, kad vakar galėjai pas mus atvažiuoti.",
    "lv": "Es ļoti priecājos, ka tu vakar varēji atbraukt pie mums.",
    "ml": "ഇന്ന് എന്റെ സഹോദരി വീട്ടിൽ വന്നതിൽ വളരെ സന്തോഷം.",
    "my": "ဒီနေ့ ကျွန်တော် အရမ်းပျော်တယ်။",
    "nl": "Ik ben ontzettend blij dat jullie gisteren konden komen eten.",
    "pl": "Bardzo się cieszę, że wczoraj mogłeś do nas przyjechać.",
    "pt": "Estou muito feliz porque a minha irmã voltou finalmente para casa.",
    "ro": "Sunt foarte fericită că sora mea s-a întors în sfârșit acasă.",
    "ru": "Я очень рада, что вы вчера смогли к нам приехать.",
    "si": "අද මට හරිම සතුටුයි.",
    "so": "Aad baan u faraxsanahay maanta sababtoo ah walaashay ayaa guriga timid.",
    "sq": "Jam shumë i lumtur që motra ime u kthye sot në shtëpi.",
    "sv": "Jag är så glad att ni kunde komma hem till oss i går kväll.",
    "sw": "Nimefurahi sana kwa sababu dada yangu amerudi nyumbani leo.",
    "ta": "இன்று என் தங்கை வீட்டிற்கு வந்ததால் மிகவும் மகிழ்ச்சி.",
    "te": "ఈ రోజు మా చెల్లి ఇంటికి వచ్చింది, చాలా సంతోషంగా ఉంది.",
    "th": "วันนี้ฉันมีความสุขมากเพราะน้องสาวกลับบ้าน",
    "tl": "Masayang-masaya ako dahil nakauwi na rin ang kapatid ko kahapon.",
    "tr": "Dün akşam bize gelebildiğiniz için çok mutluyum.",
    "uk": "Я дуже рада, що ви вчора змогли до нас приїхати.",
    "ur": "آج میں بہت خوش ہوں کیونکہ میری بہن گھر آئی ہے۔",
    "uz": "Bugun singlim uyga qaytgani uchun juda xursandman.",
    "vi": "Hôm nay tôi rất vui vì em gái tôi đã về nhà.",
    "yo": "Inú mi dùn gan-an ni nítorí pé ẹ̀gbọ́n mi ti dé sílé lónìí.",
    "zh": "今天妹妹终于回家了，我真的非常高兴。",
}


@pytest.mark.parametrize(
    ("code", "spellings"),
    [
        ("de", "de|deu|ger|German|Deutsch|DE| german |de-AT|de_CH"),
        ("en", "en|eng|English|en-US|en_GB|EN-us"),
        ("pt-BR", "pt-BR|pt_BR|pt-br|PT_br|Brazilian Portuguese"),
        ("pt-MZ", "pt-MZ|pt_mz"),
        ("pt", "pt|por|pt-PT|Portuguese|Português|portugues"),
        ("no", "no|nor|nb|nn|nob|nb-NO|Bokmål|Norwegian (Bokmål)|norsk"),
        ("zh", "zh|chi|zho|cmn|yue|zh-Hans|zh-Hant|zh_TW|zh-Hant-HK|Chinese|Mandarin|中文"),
        ("tl", "tl|fil|tgl|Tagalog|Filipino"),
        ("he", "he|iw|heb|Hebrew|עברית"),
        ("id", "id|in|ind|Indonesian|Bahasa Indonesia"),
        ("ckb", "ckb|Sorani|sorani kurdish|ckb-IQ"),
        ("ku", "ku|kmr|Kurmanji|Kurdish"),
        ("ary", "ary|Moroccan Arabic|Darija"),
        ("ar", "ar|arb|ara|ar-EG|Arabic|العربية|aeb"),
        ("fa", "fa|per|fas|pes|prs|Farsi|Persian|فارسی"),
        ("ms", "ms|zsm|may|Malay"),
        ("sr", "sr|srp|sr-Latn|sr_Cyrl_RS|Serbian|српски"),
        ("min", "min|Minangkabau"),
        ("hi", "hi|hin|हिन्दी|HINDI"),
        ("und", "und"),
    ],
)
def test_a_language_may_be_called_by_many_names(code, spellings):
    assert {resolve_language(spelling) for spelling in spellings.split("|")} == {code}


def test_every_listed_language_resolves_to_its_own_code():
    for entry in LISTED:
        assert resolve_language(entry["code"]) == entry["code"]
        assert resolve_language(entry["name"]) == entry["code"]


@pytest.mark.parametrize("code", ["tlh", "fo", "lb", "nv"])
def test_a_language_that_is_not_listed_keeps_its_code(code):
    assert resolve_language(code) == code


@pytest.mark.parametrize(
    ("name", "code"),
    [("en-x-tweets", "en-x-tweets"), ("und-x-My_Set-2", "und-x-My_Set-2"), ("German-x-E-c", "de-x-E-c")],
)
def test_a_domain_is_left_as_it_is(name, code):
    assert resolve_language(name) == code


@pytest.mark.parametrize("name", ["klingon", "", " ", "xx", "mul", "qaa", "x-tweets", "en-x-", "-x-tweets", "de-de-de"])
def test_an_unknown_language_is_an_error(name):
    with pytest.raises(UsageError, match="a language must be an ISO code") as raised:
        resolve_language(name)
    assert repr(name) in str(raised.value)


@pytest.mark.parametrize(("name", "meant"), [("Germn", "German"), ("Portugese", "Portuguese"), ("swahilli", "Swahili")])
def test_a_slip_of_the_pen_is_recognised(name, meant):
    with pytest.raises(UsageError, match=f"did you mean {meant}"):
        resolve_language(name)


@given(st.text(max_size=20))
def test_what_is_resolved_once_stays_as_it_is(name):
    try:
        code = resolve_language(name)
    except UsageError:
        return
    assert resolve_language(code) == code


def test_sentences_are_identified():
    found = identify(list(SENTENCES.values()))
    assert dict(zip(SENTENCES, [one.code for one in found], strict=True)) == {code: code for code in SENTENCES}
    assert np.mean([one.confidence >= TRUSTED_CONFIDENCE for one in found]) > 0.9


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("yaar tum kal kyun nahi aaye, main kitni der wait kar raha tha", "hi"),
        ("Danas sam baš srećan jer mi se sestra vratila kući", "sr"),
        ("Данас сам веома срећан јер ми се сестра вратила кући", "sr"),
        ("I no dey happy at all, dem don cheat us again o", "pcm"),
        ("привет, купила новый iPhone 15 Pro Max, очень довольна!", "ru"),
        ("この iPhone 15 Pro Max 最高すぎる", "ja"),
    ],
)
def test_posts_are_identified(text, code):
    assert identify([text])[0].code in {code, *({"hr", "bs"} if code == "sr" and text.isascii() else ())}


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n",
        "😀😀😀",
        "12:30 + 5 = 17%",
        "https://example.org/das/ist/ein/satz",
        "@jemand",
        "...",
        "ᏣᎳᎩ ᎦᏬᏂᎯᏍᏗ",
        "1️⃣ 2️⃣",
        "\ud800",
    ],
)
def test_what_has_no_language_is_unknown(text):
    assert identify([text]) == [UNKNOWN_LANGUAGE]


def test_addresses_numbers_and_emoji_change_nothing():
    plain = "Ich freue mich so sehr auf morgen Abend"
    decorated = "@anna Ich freue mich 😀😀 so sehr auf 2 morgen Abend!!! https://example.org/why-not-in-english #"
    assert identify([plain]) == identify([decorated]) == identify([plain.upper()])


def test_a_batch_is_what_each_text_is_alone():
    texts = [*SENTENCES.values(), "", "ok", "😀"] * 20  # more than one chunk
    assert identify(texts) == [identify([text])[0] for text in texts[:64]] * 20
    assert identify(texts[::-1]) == identify(texts)[::-1]


def test_no_texts_have_no_languages():
    assert identify([]) == []


def identified_languages() -> set[str]:
    return {name.partition(":")[2] for name in load_identifier().classes} - {"und"}


def test_one_string_is_no_list_of_texts():
    with pytest.raises(DataError, match="list of strings"):
        identify("Guten Tag")


@given(st.lists(st.text(max_size=60), max_size=5))
def test_any_text_has_a_code_and_a_confidence(texts):
    for one in identify(texts):
        assert one == UNKNOWN_LANGUAGE or LEAST_CONFIDENCE <= one.confidence <= 1
        assert one.code in identified_languages() | {"und"}


def test_all_listed_languages_are_identified_but_for_varieties():
    varieties = {"pt-BR", "pt-MZ", "arz"}
    assert {entry["code"] for entry in LISTED} - varieties <= identified_languages()
    assert {resolve_language(code) for code in identified_languages()} == identified_languages()


def test_the_weights_are_small():
    assert WEIGHTS_FILE.stat().st_size <= 2_000_000


def test_threads_load_it_once(monkeypatch):
    reads = []
    monkeypatch.setattr(module, "_loaded", [])
    monkeypatch.setattr(module, "read_identifier", lambda path: reads.append(path) or read_identifier(path))
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: identify(list(SENTENCES.values())), range(16)))
    assert len(reads) == 1
    assert all(one == found[0] for one in found)


def test_it_is_the_same_in_another_process():
    code = "from emoglot.text.identify import identify; print(identify(['Guten Morgen, ihr Lieben']))"
    environment = {**os.environ, "PYTHONHASHSEED": "1"}
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert found.stdout.strip() == str(identify(["Guten Morgen, ihr Lieben"]))


def test_it_needs_neither_torch_nor_sklearn():
    code = (
        "import sys; sys.modules.update(dict.fromkeys(['torch', 'sklearn', 'scipy', 'onnxruntime']));"
        "from emoglot.text.identify import identify; print(identify(['Guten Morgen, ihr Lieben'])[0].code)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "de\n"


def test_a_saved_identifier_is_the_same(tmp_path):
    save_identifier(load_identifier(), tmp_path / "copy.safetensors")
    assert read_identifier(tmp_path / "copy.safetensors").identify(["Buongiorno a tutti"]) == identify(
        ["Buongiorno a tutti"]
    )


def test_a_broken_file_is_a_model_error(tmp_path):
    (tmp_path / "broken").write_bytes(b"nothing")
    with pytest.raises(ModelError, match="weights of the language identifier"):
        read_identifier(tmp_path / "broken")
    with pytest.raises(ModelError):
        read_identifier(tmp_path / "missing")


def test_ngrams_are_those_of_a_plain_loop():
    texts = ["Oh, wie schön! Oooooh", "", "l'été 2024 à Nice"]
    letters = read_letters(texts, np.ones(len(SCRIPTS), dtype=bool))
    spelt = "".join(map(chr, letters.codes.tolist()))
    assert spelt == " oh wie schön ooh   l'été à nice "
    counts = [0] * len(texts)
    for hashes, owners in hash_ngrams(letters):
        assert len(hashes) == len(owners)
        for owner in owners.tolist():
            counts[owner] += 1
    words = [["oh", "wie", "schön", "ooh"], [], ["l'été", "à", "nice"]]
    assert counts == [sum(map(ngram_count, own)) for own in words]


def ngram_count(word: str) -> int:
    spaced = f" {word} "
    windows = {(first, last) for first in range(len(spaced)) for last in range(first + 1, len(spaced) + 1)}
    short = sum(last - first <= LONGEST_NGRAM and spaced[first:last] != " " for first, last in windows)
    return short + (len(word) > LONGEST_NGRAM - 2)


def test_confidence_is_rounded_and_comparable():
    assert Identified("de", 0.5) == Identified("de", 0.5) != Identified("de", 0.6)
