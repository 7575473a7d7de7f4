"""A file of a collection: text, language, labels and split, tab separated; INDEX.tsv lists the annotated labels."""

from __future__ import annotations

from pathlib import Path

from emoglot.data.cells import check_count, text_cell
from emoglot.data.dataset import Dataset
from emoglot.data.lines import Given, MalformedLineError, check_header, keep_good, numbered_lines
from emoglot.errors import DataError, shown
from emoglot.labels import check_names, to_targets
from emoglot.text.language_names import NO_LANGUAGE

HEADER = ("text", "language", "labels", "split")
INDEX = "INDEX.tsv"
INDEX_COLUMNS = ("name", "annotated")
SEPARATOR = "|"
SPLITS = ("train", "dev", "test")


def read_collection(path: Path, given: Given, *, split: str) -> Dataset:
    """Read one split of a file, plain or gzip.

    A label that INDEX.tsv does not list for the file was not annotated: it is unknown, not absent.
    """
    name = path.name.partition(".")[0]
    labels = _annotated(path.with_name(INDEX), name)
    lines = numbered_lines(path, given.reading)
    check_header(lines, path, HEADER, "a file of a collection")

    def parse(line: str) -> tuple[str, str, tuple[str, ...], str]:
        fields = line.split("\t")
        check_count(fields, len(HEADER))
        text, code, names, part = fields
        if part not in SPLITS:
            raise MalformedLineError(f"a split must be one of {', '.join(SPLITS)}, got {shown(part)}")
        chosen = tuple(filter(None, names.split(SEPARATOR)))
        if unasked := [label for label in chosen if label not in labels]:
            raise MalformedLineError(
                f"a label must be one of {', '.join(labels)}, as listed in {INDEX}, got {unasked[0]!r}"
            )
        return text_cell(text, "text"), code or given.language or NO_LANGUAGE, chosen, part

    rows, bad_lines = keep_good(path, lines, parse, skip_bad=given.skip_bad)
    # Every language has its own annotators, and therefore its own bias.
    is_multilingual = len({code for _, code, _, _ in rows}) > 1
    rows = [row for row in rows if row[3] == split]
    codes = tuple(code for _, code, _, _ in rows)
    sources = tuple(f"{name}-{code}" if is_multilingual else name for code in codes)
    targets = to_targets([chosen for _, _, chosen, _ in rows], labels)
    return Dataset(tuple(text for text, *_ in rows), targets, labels, codes, sources, bad_lines)


def _annotated(index: Path, name: str) -> tuple[str, ...]:
    """Find the labels that annotators of a file could choose from."""
    lines = [line.split("\t") for _, line in numbered_lines(index) if isinstance(line, str)]
    header = lines[0]
    if missing := [column for column in INDEX_COLUMNS if column not in header]:
        raise DataError(f"{index} needs the columns {' and '.join(INDEX_COLUMNS)}, {missing[0]} is missing")
    for fields in lines[1:]:
        cells = dict(zip(header, fields, strict=False))
        if cells.get("name") == name:
            return check_names(cells.get("annotated", "").split())
    raise DataError(f"{index} must list {name}: add a line with its labels")
