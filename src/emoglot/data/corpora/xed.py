"""The XED format: subtitle lines and the digits of Plutchik's eight emotions, tab separated, one language per file."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from emoglot.data.cells import check_count, text_cell, unquoted
from emoglot.data.dataset import Dataset
from emoglot.data.lines import Given, MalformedLineError, keep_good, numbered_lines
from emoglot.errors import shown
from emoglot.labels import PLUTCHIK_LABELS
from emoglot.text.language_names import NO_LANGUAGE

SOURCE = "xed"
HEADER = "phrase\temotion"  # of tr-projections2.tsv; the other files have none
DIGITS = re.compile(r"\s*[1-8](\s*,\s*[1-8])*\s*")
NEUTRAL_STEM = re.compile(r"neu_[a-z]{2,3}")
LANGUAGE_IN_STEM = re.compile(r"neu_([a-z]{2,3})$|([a-z]{2,3})-(?:annotated|projections)")
LANGUAGES = {"br": "pt-BR", "cn": "zh-Hans", "tw": "zh-Hant"}
NO_EMOTION = (0,) * len(PLUTCHIK_LABELS)

Row = tuple[str, tuple[int, ...]]


def read_xed(path: Path, given: Given) -> Dataset:
    """Read an XED file; its name states the language."""
    # Line by line, not as CSV: after an unclosed quote, CSV would join hundreds of lines to one text.
    lines = [(number, line) for number, line in numbered_lines(path, given.reading) if (number, line) != (1, HEADER)]
    parse = _neutral_row if NEUTRAL_STEM.fullmatch(path.stem) else _labelled_row
    rows, bad_lines = keep_good(path, lines, parse, skip_bad=given.skip_bad)
    texts, targets = zip(*rows, strict=True)
    codes = (_language_of(path) or given.language or NO_LANGUAGE,) * len(texts)
    sources = (SOURCE,) * len(texts)
    return Dataset(texts, np.array(targets, dtype=np.int8), PLUTCHIK_LABELS, codes, sources, bad_lines)


def _labelled_row(line: str) -> Row:
    fields = line.split("\t")
    check_count(fields, 2)
    text, digits = fields
    if not DIGITS.fullmatch(digits):
        raise MalformedLineError(f"the labels must be digits from 1 to 8 such as '1, 4', got {shown(digits)}")
    chosen = {int(digit) for digit in digits.split(",")}
    targets = tuple(int(number in chosen) for number in range(1, len(PLUTCHIK_LABELS) + 1))
    return text_cell(unquoted(text), "text"), targets


def _neutral_row(line: str) -> Row:
    """Return the text of a line with a number and a text; the Finnish file has three more columns about the source."""
    number, *rest = line.split("\t")
    if not number.isdecimal() or not rest:
        raise MalformedLineError(f"a neutral line must be a number and a text, got {shown(line)}")
    return text_cell(unquoted(rest[0]), "text"), NO_EMOTION


def _language_of(path: Path) -> str | None:
    found = LANGUAGE_IN_STEM.match(path.stem)
    if not found:
        return None
    code = found.group(1) or found.group(2)
    return LANGUAGES.get(code, code)
