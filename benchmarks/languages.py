"""Measures every language of a model and writes languages.json beside it.

    python -m benchmarks.languages --data DIR [--model FOLDER]

Labelled: BRIGHTER's dev sets, and for Arabic, English and Spanish those of E-c, five-fold as in benchmarks.embedded.
Translated: FLORES dev, and the sentences of the parallel text that `emoglot distill` keeps out of training.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import emoglot
from benchmarks.embedded import five_fold, read_parts
from emoglot.encoders import EMBEDDED_MODEL
from emoglot.evaluate import evaluate_model
from emoglot.languages import Language, agreement, write_languages
from emoglot.model import EmotionClassifier
from emoglot.parallel import Parallel, join, read_parallel

# Below these a language is weak. An agreement (κ) of at most 0.2 is called slight on the usual scale of Landis and
# Koch; fewer than a hundred pairs tell nothing.
LEAST_MACRO_F1 = 0.40
LEAST_AGREEMENT = 0.20
LEAST_PAIRS = 100
# Words, lists and interface strings carry no emotion that a translation could keep or lose.
SENTENCES = {"tatoeba", "stories", "tico19", "xcopa", "nusax", "nollysenti", "doda", "travis_ti", "hornmt", "bible"}
SENTENCES |= {"refugee_phrasebook", "floresv1", "afriqa", "xsid", "udhr", "goemotions_ko"}

_NAMES = (
    "af=Afrikaans am=Amharic ar=Arabic arq=Algerian_Arabic ary=Moroccan_Arabic as=Assamese az=Azerbaijani "
    "be=Belarusian bg=Bulgarian bn=Bengali br=Breton bs=Bosnian ca=Catalan ckb=Sorani_Kurdish cs=Czech cy=Welsh "
    "da=Danish de=German el=Greek en=English eo=Esperanto es=Spanish et=Estonian eu=Basque fa=Persian fi=Finnish "
    "fr=French fy=West_Frisian ga=Irish gd=Scottish_Gaelic gl=Galician gu=Gujarati ha=Hausa he=Hebrew hi=Hindi "
    "hr=Croatian hu=Hungarian hy=Armenian id=Indonesian ig=Igbo is=Icelandic it=Italian ja=Japanese jv=Javanese "
    "ka=Georgian kk=Kazakh km=Khmer kn=Kannada ko=Korean ku=Kurmanji_Kurdish ky=Kyrgyz la=Latin lo=Lao "
    "lt=Lithuanian lv=Latvian mg=Malagasy mk=Macedonian ml=Malayalam mn=Mongolian mr=Marathi ms=Malay my=Burmese "
    "ne=Nepali nl=Dutch no=Norwegian om=Oromo or=Odia pa=Punjabi pcm=Nigerian_Pidgin pl=Polish ps=Pashto "
    "pt=Portuguese pt-BR=Brazilian_Portuguese pt-MZ=Mozambican_Portuguese ro=Romanian ru=Russian rw=Kinyarwanda "
    "sa=Sanskrit sd=Sindhi si=Sinhala sk=Slovak sl=Slovenian so=Somali sq=Albanian sr=Serbian su=Sundanese "
    "sv=Swedish sw=Swahili ta=Tamil te=Telugu th=Thai ti=Tigrinya tl=Tagalog tr=Turkish tt=Tatar ug=Uyghur "
    "uk=Ukrainian ur=Urdu uz=Uzbek vi=Vietnamese vmw=Makhuwa xh=Xhosa yi=Yiddish yo=Yoruba zh=Chinese zu=Zulu"
)
NAMES = dict(pair.split("=") for pair in _NAMES.split())


def labelled(model: EmotionClassifier, data: Path) -> dict[str, tuple[float, int]]:
    """Give macro-F1 and rows of every language with labels."""
    tweets, brighter = read_parts(data)
    found = evaluate_model(model, brighter).languages | five_fold(model, tweets).languages
    return {code: (metrics.macro_f1, metrics.rows) for code, metrics in found.items()}


def translated(data: Path) -> Parallel:
    """Give the pairs that were never trained on."""
    _, held_out = read_parallel([data / "parallel/train"]).split()
    sentences = held_out.select(np.flatnonzero([source in SENTENCES for source in held_out.sources]))
    return join([sentences, read_parallel([data / "parallel/flores-dev"])])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, default=EMBEDDED_MODEL)
    parser.add_argument("--data", type=Path, required=True)
    arguments = parser.parse_args()
    model = emoglot.load(arguments.model)
    with_labels = labelled(model, arguments.data)
    with_pairs = agreement(model, translated(arguments.data))
    languages = []
    for code, name in sorted(NAMES.items()):
        macro_f1, rows = with_labels.get(code, (None, 0))
        agrees, pairs = with_pairs.get(code, (None, 0))
        if macro_f1 is not None:
            weak = macro_f1 < LEAST_MACRO_F1
        else:
            weak = agrees is None or pairs < LEAST_PAIRS or agrees < LEAST_AGREEMENT
        languages.append(Language(code, name.replace("_", " "), weak, macro_f1, rows, agrees, pairs))
    write_languages(languages, arguments.model)
    for language in languages:
        print(language)
    print(f"{len(languages)} languages, {sum(language.weak for language in languages)} weak")


if __name__ == "__main__":
    main()
