"""The vocabulary of an encoder: which texts it is learnt from, and the tokenizer that comes of it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from emoglot.config import DistillConfig
from emoglot.encoders.pieces import train_tokenizer
from emoglot.files import write_whole
from emoglot.parallel import Parallel, emoji_names

if TYPE_CHECKING:
    from tokenizers import Tokenizer


def vocabulary_sample(
    parallel: Parallel,
    texts: Sequence[str],
    english: Sequence[str],
    written: Mapping[str, str],
    config: DistillConfig,
) -> list[str]:
    """Take about as many letters of every language, half of them from texts that users wrote, if there are such.

    `written` gives the language of each of those.
    """
    rng = np.random.default_rng(config.seed)
    own = _by_language([(text, language.partition("-")[0]) for text, language in written.items()], rng)
    translated = _by_language([*zip(texts, parallel.languages, strict=True), *((text, "en") for text in english)], rng)
    sample = []
    for language in sorted(own.keys() | translated.keys()):
        letters = config.letters * (3 if language == "en" else 1)  # the teacher's language, and the web's
        first = _so_many_letters(own.get(language, []), letters // 2)
        sample += first + _so_many_letters(translated.get(language, []), letters - sum(map(len, first)))
    return sample


def learn_vocabulary(sample: Sequence[str], config: DistillConfig, work: Path, say: Callable[[str], None]) -> Tokenizer:
    """Learn a tokenizer, or read the one that was learnt from the same sample before."""
    from tokenizers import Tokenizer

    digest = hashlib.sha256(chr(0).join(sample).encode()).hexdigest()[:16]
    path = work / f"tokenizer-{digest}-{config.vocabulary}.json"
    if not path.exists():
        say(f"learning a vocabulary from {len(sample):,} texts")
        write_whole(path, train_tokenizer(sample, config.vocabulary, emoji_names().texts).to_str())
    return Tokenizer.from_file(str(path))


def _by_language(pairs: Iterable[tuple[str, str]], rng: np.random.Generator) -> dict[str, list[str]]:
    """Sort texts by language, in random order."""
    listed = list(pairs)
    result: dict[str, list[str]] = {}
    for row in rng.permutation(len(listed)).tolist():
        text, language = listed[row]
        result.setdefault(language, []).append(text)
    return result


def _so_many_letters(texts: Sequence[str], letters: int) -> list[str]:
    sizes = np.cumsum([len(text) for text in texts])
    return list(texts[: int(np.searchsorted(sizes, letters))])
