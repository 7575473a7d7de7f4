"""The format of a data file, told from its first lines and, for plain tables, its extension."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from emoglot.data import brighter, goemotions, semeval, xed
from emoglot.data.lines import decode, numbered_lines, read_bytes

PARQUET_MAGIC = b"PAR1"
SAMPLE_BYTES = 65536
SAMPLE_LINES = 20
BRIGHTER_ID = re.compile(r"[a-z]{3,4}_(train|dev|test)_")
EXTENSIONS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
}


def recognise(path: Path, *, tables_only: bool = False) -> str | None:
    """Name the format of a file, or None; `tables_only` when column names were given, which only tables have."""
    data = read_bytes(path)
    if data.startswith(PARQUET_MAGIC):
        return "parquet"
    # A sample may end within a character; what matters here stands at the start.
    sample = decode(data[:SAMPLE_BYTES], path)
    lines = [line for _, line in numbered_lines(sample)][:SAMPLE_LINES]
    if not tables_only:
        corpus = _corpus(path, lines)
        if corpus:
            return corpus
    if lines[0].startswith("{"):
        return "jsonl"
    return EXTENSIONS.get(path.suffix.lower())


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
    # A headerless table of 0 and 1 starts alike; a number out of range gives it away.
    return all(xed.DIGITS.fullmatch(label) for _, label in pairs if label.strip().isdecimal())
