"""The format of a data file, recognised by its first lines and, for plain tables, its name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from emoglot.data.corpora import brighter, goemotions, semeval, xed
from emoglot.data.formats import CSV, JSONL, PARQUET, SPREADSHEETS, TEXT
from emoglot.data.records import has_header
from emoglot.data.streams import Reading, open_path
from emoglot.errors import DataError

SAMPLE_BYTES = 65536
SAMPLE_LINES = 20
BRIGHTER_ID = re.compile(r"[a-z]{3,4}_(train|dev|test)_")


def recognise_format(path: Path, reading: Reading, *, tables_only: bool = False) -> str | None:
    """Return the name of a file's format, or None; `tables_only` if column names were given."""
    with open_path(path, reading) as stream:
        if stream.kind in (PARQUET, *SPREADSHEETS):
            return stream.kind
        if not stream.sample.strip():
            raise DataError(f"a data file needs at least one row, {path} is empty")
        # A sample may end within a character; only its beginning is used.
        lines = stream.sample[:SAMPLE_BYTES].decode("utf-8", "replace").split("\n")
        lines = [line.removesuffix("\r") for line in lines if line.strip()][:SAMPLE_LINES]
        if not tables_only and (corpus := _corpus(path, lines)):
            return corpus
        if lines[0].startswith("{"):
            return JSONL
        if stream.kind is not None and stream.kind != TEXT:
            return stream.kind
        return CSV if has_header(stream) else None


def _corpus(path: Path, lines: Sequence[str]) -> str | None:
    fields = lines[0].split("\t")
    if tuple(fields[:2]) == semeval.HEADER_START:
        return "semeval"
    if _is_brighter(lines):
        return "brighter"
    if len(fields) == goemotions.FIELDS and goemotions.IDS.fullmatch(fields[1]) and fields[2].isalnum():
        return "goemotions"
    return "xed" if _is_xed(path, lines) else None


def _is_brighter(lines: Sequence[str]) -> bool:
    header = lines[0].split(",")
    return (
        tuple(header[:2]) == brighter.HEADER_START
        and set(header[2:]) <= set(brighter.LABELS)
        and len(lines) > 1
        and BRIGHTER_ID.match(lines[1]) is not None
    )


def _is_xed(path: Path, lines: Sequence[str]) -> bool:
    if lines[0] == xed.HEADER:
        return True
    if xed.NEUTRAL_STEM.fullmatch(path.stem):
        return lines[0].partition("\t")[0].isdecimal()
    pairs = [line.split("\t") for line in lines if line.count("\t") == 1]
    if not pairs or pairs[0] != lines[0].split("\t") or not xed.DIGITS.fullmatch(pairs[0][1]):
        return False
    # A headerless table of 0 and 1 begins in the same way; numbers out of range distinguish it.
    return all(xed.DIGITS.fullmatch(label) for _, label in pairs if label.strip().isdecimal())
