"""The GoEmotions format: an English comment, the ids of its emotions and the id of the comment, tab separated."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from emoglot.data.cells import check_count, text_cell, unquoted
from emoglot.data.dataset import Dataset, map_labels
from emoglot.data.lines import Given, MalformedLineError, keep_good, numbered_lines
from emoglot.errors import shown

SOURCE = "goemotions"
FIELDS = 3
IDS = re.compile(r"[0-9]{1,2}(,[0-9]{1,2})*")
GOEMOTIONS_LABELS = (
    "admiration",
    "amusement",
    "anger",
    "annoyance",
    "approval",
    "caring",
    "confusion",
    "curiosity",
    "desire",
    "disappointment",
    "disapproval",
    "disgust",
    "embarrassment",
    "excitement",
    "fear",
    "gratitude",
    "grief",
    "joy",
    "love",
    "nervousness",
    "optimism",
    "pride",
    "realization",
    "relief",
    "remorse",
    "sadness",
    "surprise",
    "neutral",
)
# This mapping is a choice. Labels of the same name need no entry; no label of GoEmotions corresponds to pessimism.
GOEMOTIONS_TO_SEMEVAL: Mapping[str, str] = {
    "annoyance": "anger",
    "curiosity": "anticipation",
    "desire": "anticipation",
    "disapproval": "disgust",
    "nervousness": "fear",
    "amusement": "joy",
    "excitement": "joy",
    "caring": "love",
    "disappointment": "sadness",
    "grief": "sadness",
    "remorse": "sadness",
    "realization": "surprise",
    "admiration": "trust",
    "approval": "trust",
    "gratitude": "trust",
}


def read_goemotions(path: Path, given: Given) -> Dataset:
    """Read a GoEmotions file with its own 28 labels; its language is English by default."""
    rows, bad_lines = keep_good(path, numbered_lines(path, given.reading), _row, skip_bad=given.skip_bad)
    targets = np.zeros((len(rows), len(GOEMOTIONS_LABELS)), dtype=np.int8)
    for index, (_, ids) in enumerate(rows):
        targets[index, ids] = 1
    texts = tuple(text for text, _ in rows)
    codes = (given.language or "en",) * len(texts)
    return Dataset(texts, targets, GOEMOTIONS_LABELS, codes, (SOURCE,) * len(texts), bad_lines)


def read_mapped(path: Path, given: Given) -> Dataset:
    """Read a GoEmotions file and map its labels to the eleven of E-c."""
    return map_labels(read_goemotions(path, given), GOEMOTIONS_TO_SEMEVAL)


def _row(line: str) -> tuple[str, list[int]]:
    fields = line.split("\t")
    check_count(fields, FIELDS)
    text, ids, _ = fields
    numbers = [int(number) for number in ids.split(",")] if IDS.fullmatch(ids) else []
    if not numbers or max(numbers) >= len(GOEMOTIONS_LABELS):
        raise MalformedLineError(f"the labels must be ids from 0 to 27 such as '3,10', got {shown(ids)}")
    return text_cell(unquoted(text), "text"), numbers
