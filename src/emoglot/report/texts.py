"""Words and examples of the texts, collected in one pass with bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from emoglot.report.source import IS_READABLE, LANGUAGE, TEXT_COLUMN, ScoredFile, given_column, score_column
from emoglot.report.words import LEAST_TEXTS, WordCounts

BATCH_ROWS = 20_000
MOST_WORDS = 300_000  # kept at a time; the rarest are dropped
SHOWN_EXAMPLES = 5
_CANDIDATES = 20
_ROW, _WORD, _TEXTS = "row", "word", "texts"

# Scripts without spaces between words: pairs of characters are used as words where a character is a syllable or more,
# triples where it is a sound. A character is a letter with its marks.
_PAIRED = r"\p{Han}\p{Hiragana}\p{Katakana}ー"
_TRIPLED = r"\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_CHARACTER = r"\p{L}\p{M}*"
_LETTERS = r"\p{L}\p{M}"
_TOKEN = (
    rf"[{_PAIRED}]+|[[{_TRIPLED}]&&[{_LETTERS}]]+|\p{{Extended_Pictographic}}"
    rf"|[{_LETTERS}&&[^{_PAIRED}{_TRIPLED}]][{_LETTERS}\x{{200c}}\x{{200d}}'’&&[^{_PAIRED}{_TRIPLED}]]+"
)
_NOT_WORDS = r"(?:https?://|www\.)\S+|@[\w.]+|<\w+>|\x{fe0f}"


@dataclass(frozen=True)
class Example:
    """A text with a label, and its score."""

    text: str
    score: float
    language: str | None


@dataclass(frozen=True)
class Texts:
    """Word counts, and examples of each label."""

    words: WordCounts
    examples: tuple[tuple[Example, ...], ...]


def read_texts(
    scored: ScoredFile, languages: Sequence[str], on_texts: Callable[[int], None] = lambda done: None
) -> Texts:
    """Read all texts once; words are counted per language, or for all texts if `languages` is empty."""
    vocabulary = _Vocabulary(scored)
    galleries = [_Gallery(index) for index in range(len(scored.labels))]
    language = pl.col(LANGUAGE) if LANGUAGE in scored.columns else pl.lit(None, pl.String).alias(LANGUAGE)
    scores = [score_column(index) for index in range(len(scored.labels))]
    frame = scored.frame.filter(pl.col(IS_READABLE) & pl.col(TEXT_COLUMN).is_not_null())
    frame = frame.select(TEXT_COLUMN, language, *scored.given(), *scores)
    done = 0
    for batch in frame.collect_batches(chunk_size=BATCH_ROWS, maintain_order=True, engine="streaming"):
        for gallery in galleries:
            gallery.add(batch)
        # Without languages, all texts are counted as one.
        known = pl.col(LANGUAGE).is_in(list(languages))
        vocabulary.add(
            batch.filter(known) if languages else batch.with_columns(pl.lit(None, pl.String).alias(LANGUAGE))
        )
        done += len(batch)
        on_texts(done)
    return Texts(vocabulary.counts(), tuple(gallery.examples() for gallery in galleries))


def tokens(batch: pl.DataFrame, carried: Sequence[str]) -> pl.DataFrame:
    """Return the distinct words of each text, with the columns of the text."""
    cleaned = pl.col(TEXT_COLUMN).str.to_lowercase().str.replace_all(_NOT_WORDS, " ")
    words = cleaned.str.extract_all(_TOKEN).list.unique(maintain_order=True).alias(_WORD)
    found = batch.with_row_index(_ROW).select(_ROW, LANGUAGE, *carried, words).explode(_WORD).drop_nulls(_WORD)
    is_paired, is_tripled = (pl.col(_WORD).str.contains(f"^[{script}]") for script in (_PAIRED, _TRIPLED))
    parts = [found.filter(~is_paired & ~is_tripled).with_columns(pl.col(_WORD).str.strip_chars("'’"))]
    for is_run, length in ((is_paired, 2), (is_tripled, 3)):
        runs = found.filter(is_run)
        if not runs.is_empty():
            parts.append(runs.with_columns(_grams(length)).explode(_WORD).drop_nulls(_WORD).unique([_ROW, _WORD]))
    return pl.concat(parts)


def _grams(length: int) -> pl.Expr:
    """Split runs of characters into overlapping pieces; short runs stay whole."""
    piece = f"(?:{_CHARACTER}){{{length}}}"
    starts = [pl.col(_WORD).str.replace(f"^(?:{_CHARACTER}){{{skipped}}}", "") for skipped in range(length)]
    pieces = pl.concat_list([start.str.extract_all(piece) for start in starts])
    return pl.when(pieces.list.len() > 0).then(pieces).otherwise(pl.concat_list(pl.col(_WORD))).alias(_WORD)


class _Vocabulary:
    """Counts of words with bounded memory: the rarest are dropped, and their largest count is kept (lossy counting)."""

    def __init__(self, scored: ScoredFile) -> None:
        self._carried = scored.given()
        self._parts: list[pl.DataFrame] = []
        self._waiting = 0
        self._missed = 0
        self._totals: pl.DataFrame | None = None

    def add(self, batch: pl.DataFrame) -> None:
        """Count the words of a batch."""
        found = tokens(batch, self._carried)
        counted = found.group_by(LANGUAGE, _WORD).agg(pl.len().cast(pl.Int64).alias(_TEXTS), *self._sums())
        totals = self._summed([counted.drop(_WORD)], [LANGUAGE])
        self._totals = totals if self._totals is None else self._summed([self._totals, totals], [LANGUAGE])
        self._parts.append(counted)
        self._waiting += len(counted)
        if self._waiting > MOST_WORDS:
            self._merge()

    def _sums(self) -> list[pl.Expr]:
        return [pl.col(name).sum().cast(pl.Int64) for name in self._carried]

    def _summed(self, parts: Sequence[pl.DataFrame], keys: list[str]) -> pl.DataFrame:
        return pl.concat(parts).group_by(keys).agg(pl.col(_TEXTS).sum(), *self._sums())

    def _merge(self) -> None:
        merged = self._summed(self._parts, [LANGUAGE, _WORD])
        # At most half, so that the next batch need not be merged at once.
        if len(merged) > MOST_WORDS // 2:
            ranked = merged[_TEXTS].sort(descending=True)
            least = int(ranked[MOST_WORDS // 2])
            merged = merged.filter(pl.col(_TEXTS) > least)
            self._missed += least
        self._parts, self._waiting = [merged], len(merged)

    def counts(self) -> WordCounts:
        """Return the words that may stand out, in a deterministic order."""
        if self._totals is None:
            empty = np.zeros((0, len(self._carried)), np.int64)
            return WordCounts((), (), empty[:, 0], empty, empty[:, 0], empty, 0)
        self._merge()
        can_be_shown = pl.max_horizontal(self._carried) >= LEAST_TEXTS
        merged = self._parts[0].filter(can_be_shown).sort(LANGUAGE, _WORD)
        whole = merged.select(LANGUAGE).join(
            self._totals, on=LANGUAGE, how="left", nulls_equal=True, maintain_order="left"
        )
        return WordCounts(
            tuple(merged[_WORD]),
            tuple(merged[LANGUAGE]),
            merged[_TEXTS].to_numpy(),
            merged.select(self._carried).to_numpy(),
            whole[_TEXTS].to_numpy(),
            whole.select(self._carried).to_numpy(),
            self._missed,
        )


class _Gallery:
    """The distinct texts with the highest scores of a label."""

    def __init__(self, label: int) -> None:
        self._is_given, self._score = given_column(label), score_column(label)
        self._kept: pl.DataFrame | None = None

    def add(self, batch: pl.DataFrame) -> None:
        """Add the highest scores of a batch."""
        key = pl.col(TEXT_COLUMN).str.to_lowercase().str.replace_all(_NOT_WORDS, "").str.replace_all(r"\PL+", "")
        found = batch.filter(pl.col(self._is_given))
        if self._kept is not None and len(self._kept) == _CANDIDATES:
            found = found.filter(pl.col(self._score) > self._kept[self._score][-1])
        found = found.select(TEXT_COLUMN, LANGUAGE, self._score).with_columns(key.alias("key"))
        both = found if self._kept is None else pl.concat([self._kept, found])
        both = both.sort(self._score, descending=True, maintain_order=True)
        self._kept = both.unique("key", keep="first", maintain_order=True).head(_CANDIDATES)

    def examples(self) -> tuple[Example, ...]:
        """Return the texts in descending order of their scores."""
        rows = [] if self._kept is None else self._kept.head(SHOWN_EXAMPLES).rows()
        return tuple(Example(text, value, language) for text, language, value, _ in rows)
