"""Parallel text: what a file may look like, and a held-out part that nothing but the English decides."""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from emoglot.data.parallel import (
    HELD_OUT_SHARE,
    UNNAMED,
    WRITTEN,
    Parallel,
    as_they_are,
    join,
    read_parallel,
)
from emoglot.errors import DataError

GERMAN = "I am happy\tIch bin froh\nIt rains\tEs regnet\n"
FRENCH = "It rains\tIl pleut\tours\nGood night\tBonne nuit\ttheirs\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "de.tsv").write_text(GERMAN, encoding="utf-8")
    (tmp_path / "pt-BR.tsv.gz").write_bytes(gzip.compress(FRENCH.encode()))
    (tmp_path / "notes.txt").write_text("no translations", encoding="utf-8")
    return tmp_path


def rows_of(parallel: Parallel) -> list[tuple[str, str, str, str]]:
    english = [parallel.english[index] for index in parallel.english_of]
    return list(zip(english, parallel.texts, parallel.languages, parallel.sources, strict=True))


def many(count: int, language: str = "xx", offset: int = 0) -> Parallel:
    english = tuple(f"sentence number {number}" for number in range(offset, offset + count))
    texts = tuple(f"{language} {text}" for text in english)
    return Parallel(english, texts, np.arange(count), (language,) * count, ("ours",) * count)


def test_a_folder_is_read_file_by_file_plain_or_compressed(folder):
    expected = [
        ("I am happy", "Ich bin froh", "de", UNNAMED),
        ("It rains", "Es regnet", "de", UNNAMED),
        ("It rains", "Il pleut", "pt-BR", "ours"),
        ("Good night", "Bonne nuit", "pt-BR", "theirs"),
    ]
    assert rows_of(read_parallel([folder])) == expected
    assert rows_of(read_parallel([folder / "de.tsv", folder / "pt-BR.tsv.gz"])) == expected


def test_english_that_languages_share_is_stored_once(folder):
    parallel = read_parallel([folder])
    assert parallel.english == ("I am happy", "It rains", "Good night")
    assert len(parallel) == 4


def test_a_mark_at_the_beginning_and_odd_line_ends_change_nothing(folder):
    (folder / "de.tsv").write_bytes(b"\xef\xbb\xbf" + GERMAN.replace("\n", "\r\n").encode())
    assert rows_of(read_parallel([folder / "de.tsv"]))[0][:2] == ("I am happy", "Ich bin froh")
    (folder / "de.tsv").write_bytes("one\rline\teine\u2028Zeile\n".encode())
    assert rows_of(read_parallel([folder / "de.tsv"]))[0][:2] == ("one\rline", "eine\u2028Zeile")


@pytest.mark.parametrize("line", ["no tab", "", "a\t", "\tb", "a\tb\tc\td", "a\tb\t "])
def test_a_malformed_line_is_refused_by_its_place_or_skipped_and_listed(folder, line):
    path = folder / "de.tsv"
    path.write_text(f"{GERMAN}{line}\nBye\tTschüss\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"de\.tsv, line 3: .*--skip-bad") as caught:
        read_parallel([path])
    assert str(path) in str(caught.value)
    parallel = read_parallel([path], skip_bad=True)
    assert parallel.texts == ("Ich bin froh", "Es regnet", "Tschüss")
    assert [(bad.path, bad.line) for bad in parallel.bad_lines] == [(str(path), 3)]


def test_what_can_not_be_read_is_told(folder):
    with pytest.raises(DataError, match="there is no file of translations"):
        read_parallel([folder / "none.tsv"])
    (folder / "empty").mkdir()
    with pytest.raises(DataError, match=r"no file of translations: name them LANGUAGE\.tsv"):
        read_parallel([folder / "empty"])
    (folder / "de.tsv").write_bytes("très\tgut\n".encode() + b"a\t\xff\n")
    with pytest.raises(DataError, match="line 2: the text must be UTF-8, got the byte 0xFF"):
        read_parallel([folder / "de.tsv"])
    (folder / "de.tsv").write_bytes(b"")
    with pytest.raises(DataError, match="no pair of sentences"):
        read_parallel([folder / "de.tsv"])


@pytest.mark.parametrize("damage", ["truncated", "altered", "foreign"])
def test_a_damaged_archive_is_told(folder, damage):
    path = folder / "pt-BR.tsv.gz"
    data = gzip.compress((FRENCH * 500).encode())
    altered = data[:20] + bytes(byte ^ 0xFF for byte in data[20:40]) + data[40:]
    path.write_bytes({"truncated": data[:-20], "altered": altered, "foreign": b"no archive"}[damage])
    with pytest.raises(DataError, match="cannot be read"):
        read_parallel([path])


def test_a_split_shares_no_english_and_loses_no_pair():
    parallel = join([many(3000, "xx"), many(3000, "yy", offset=1500)])
    training, held_out = parallel.split()
    assert not set(training.english) & set(held_out.english)
    assert sorted(rows_of(training) + rows_of(held_out)) == sorted(rows_of(parallel))
    assert len(held_out.english) / len(parallel.english) == pytest.approx(HELD_OUT_SHARE, rel=0.3)


def test_a_split_does_not_depend_on_order_or_company():
    one, two = many(500, "xx"), many(500, "yy", offset=250)
    expected = set(rows_of(join([one, two]).split()[1]))
    assert set(rows_of(join([two, one]).split()[1])) == expected
    assert {row for part in (one, two) for row in rows_of(part.split()[1])} == expected
    assert set(rows_of(join([one, two, many(500, "zz", offset=9000)]).split()[1])) > expected


def test_a_draw_takes_some_of_each_language_and_all_of_a_small_one():
    parallel = join([many(300, "xx"), many(20, "yy", offset=100)])
    drawn = parallel.draw(50)
    assert Counter(drawn.languages) == {"xx": 50, "yy": 20}
    assert set(rows_of(drawn)) < set(rows_of(parallel))
    assert set(rows_of(drawn)) != set(rows_of(parallel)[:50]) | set(rows_of(parallel)[300:])
    assert rows_of(parallel.draw(50)) == rows_of(drawn)
    assert len(parallel.select(np.empty(0, np.int64)).draw(50)) == 0


def test_joining_is_reading_together(folder):
    alone = [read_parallel([folder / name]) for name in ("de.tsv", "pt-BR.tsv.gz")]
    together = read_parallel([folder])
    assert rows_of(join(alone)) == rows_of(together)
    assert join(alone).english == together.english


def test_a_selection_keeps_only_the_english_it_needs(folder):
    chosen = read_parallel([folder]).select(np.array([3, 1]))
    assert rows_of(chosen) == [
        ("Good night", "Bonne nuit", "pt-BR", "theirs"),
        ("It rains", "Es regnet", "de", UNNAMED),
    ]
    assert sorted(chosen.english) == ["Good night", "It rains"]


def test_a_text_may_stand_for_itself():
    own = as_they_are(["hola", "hello", "hola"], ["es", "en", "es"])
    assert rows_of(own) == [("hola", "hola", "es", WRITTEN), ("hello", "hello", "en", WRITTEN)]
    together = join([many(3), own])
    assert together.english[:3] == many(3).english
    assert rows_of(together)[3:] == rows_of(own)
    assert len(join([many(3), as_they_are([], [])])) == 3
