"""Measures every language of a model and writes languages.json beside it.

    python -m benchmarks.languages --data DIR [--model FOLDER]

Labelled data: the dev sets of E-c, BRIGHTER, and those of the collection whose annotators could choose several labels,
with thresholds for any text chosen on the other datasets. Translations: FLORES dev or, for languages that it does not
have, held-out sentences of the parallel text, some of which also matched the thresholds of the language.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import emoglot
from benchmarks.quality import Scores, given_thresholds, read_groups
from emoglot.data.parallel import Parallel, join, read_parallel
from emoglot.encoders.registry import BUNDLED_MODEL
from emoglot.evaluation.evidence import Language, agreement, write_languages

# Below these a language is weak. An agreement (κ) of at most 0.2 is called slight on the usual scale of Landis and
# Koch; fewer than a hundred pairs, or than fifty labelled rows, are too few.
LEAST_MACRO_F1 = 0.40
LEAST_AGREEMENT = 0.20
LEAST_PAIRS = 100
LEAST_ROWS = 50
# Words, lists and interface strings carry no emotion that a translation could keep or lose.
WORDS = ("memolon", "cldr", "omw", "wiktdict", "gatitos", "ui_")
MOST_PAIRS = 400  # of a language

_NAMES = (
    "abs=Ambonese_Malay ace=Acehnese af=Afrikaans ak=Akan am=Amharic ar=Arabic arq=Algerian_Arabic ary=Moroccan_Arabic "
    "arz=Egyptian_Arabic as=Assamese ay=Aymara az=Azerbaijani ba=Bashkir ban=Balinese bbc=Toba_Batak "
    "be=Belarusian bew=Betawi bg=Bulgarian bho=Bhojpuri bhp=Bima bjn=Banjar bm=Bambara bn=Bengali br=Breton bs=Bosnian "
    "btk=Batak bug=Buginese ca=Catalan ceb=Cebuano ckb=Sorani_Kurdish cs=Czech cy=Welsh da=Danish de=German "
    "dz=Dzongkha ee=Ewe el=Greek en=English eo=Esperanto es=Spanish et=Estonian eu=Basque fa=Persian ff=Fula "
    "fi=Finnish fr=French fy=West_Frisian ga=Irish gd=Scottish_Gaelic gl=Galician gn=Guarani gu=Gujarati "
    "ha=Hausa he=Hebrew hi=Hindi hr=Croatian ht=Haitian_Creole hu=Hungarian hy=Armenian id=Indonesian ig=Igbo "
    "is=Icelandic it=Italian ja=Japanese jv=Javanese ka=Georgian kaa=Karakalpak kk=Kazakh km=Khmer kn=Kannada "
    "ko=Korean ku=Kurmanji_Kurdish ky=Kyrgyz la=Latin lg=Ganda ln=Lingala lo=Lao lt=Lithuanian luo=Luo "
    "lv=Latvian mad=Madurese mak=Makasar mg=Malagasy mi=Maori min=Minangkabau mk=Macedonian ml=Malayalam "
    "mn=Mongolian mni=Manipuri mr=Marathi ms=Malay mui=Musi my=Burmese nds=Low_German ne=Nepali nl=Dutch "
    "no=Norwegian ny=Chichewa om=Oromo or=Odia pa=Punjabi pcm=Nigerian_Pidgin pl=Polish ps=Pashto "
    "pt=Portuguese pt-BR=Brazilian_Portuguese pt-MZ=Mozambican_Portuguese qu=Quechua rej=Rejang ro=Romanian "
    "ru=Russian rw=Kinyarwanda sa=Sanskrit sah=Yakut sd=Sindhi si=Sinhala sk=Slovak sl=Slovenian sn=Shona "
    "so=Somali sq=Albanian sr=Serbian su=Sundanese sv=Swedish sw=Swahili ta=Tamil te=Telugu tg=Tajik th=Thai "
    "ti=Tigrinya tl=Tagalog tn=Tswana tr=Turkish tt=Tatar ug=Uyghur uk=Ukrainian ur=Urdu uz=Uzbek "
    "vi=Vietnamese vmw=Makhuwa wo=Wolof xh=Xhosa yi=Yiddish yo=Yoruba zh=Chinese zu=Zulu"
)
NAMES = dict(pair.split("=") for pair in _NAMES.split())


def labelled(found: Scores, data: Path) -> dict[str, tuple[float, int]]:
    """Return mean macro-F1 over the datasets of every language, and the rows of all."""
    *_, pooled = read_groups(found, data)
    by_language: dict[str, list[tuple[float, int]]] = {}
    for group in pooled:
        thresholds = given_thresholds([other for other in pooled if other is not group])
        rows = len(group.targets)
        macro_f1, *_ = group.figures(thresholds, np.arange(rows)) / 100
        if rows >= LEAST_ROWS:
            by_language.setdefault(group.language, []).append((float(macro_f1), rows))
    return {
        code: (float(np.mean([value for value, _ in figures])), sum(rows for _, rows in figures))
        for code, figures in by_language.items()
    }


def translated(data: Path) -> Parallel:
    """Return pairs that were not trained on."""
    flores = read_parallel([data / "parallel/flores-dev"])
    measured = set(flores.languages)
    _, held_out = read_parallel([data / "parallel/train", data / "parallel/more"], skip_bad=True).split()
    is_needed = [
        language not in measured and not source.startswith(WORDS)
        for language, source in zip(held_out.languages, held_out.sources, strict=True)
    ]
    return join([held_out.select(np.flatnonzero(is_needed)), flores]).draw(MOST_PAIRS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, default=BUNDLED_MODEL)
    parser.add_argument("--data", type=Path, required=True)
    arguments = parser.parse_args()
    model = emoglot.load(arguments.model)
    with_labels = labelled(Scores(model), arguments.data)
    with_pairs = agreement(model, translated(arguments.data))
    languages = []
    for code, name in sorted(NAMES.items()):
        macro_f1, rows = with_labels.get(code, (None, 0))
        agrees, pairs = with_pairs.get(code, (None, 0))
        if pairs < LEAST_PAIRS:
            agrees, pairs = None, 0
        if macro_f1 is None and agrees is None:
            print(f"{code}: no evidence, so not listed")
            continue
        weak = macro_f1 < LEAST_MACRO_F1 if macro_f1 is not None else (agrees or 0) < LEAST_AGREEMENT
        languages.append(Language(code, name.replace("_", " "), weak, macro_f1, rows, agrees, pairs))
    write_languages(languages, arguments.model)
    for language in languages:
        print(language)
    print(f"{len(languages)} languages, {sum(language.weak for language in languages)} weak")


if __name__ == "__main__":
    main()
