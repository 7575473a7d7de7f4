"""The stream of records: malformed rows, and memory that is bounded."""

from __future__ import annotations

import csv
import io
import random

from emoglot.data.lines import MalformedLineError
from emoglot.data.records import LONGEST_FIELD, csv_rows


def test_an_open_quote_costs_its_line_and_bounded_memory():
    """A megabyte after the quote, the record is given up, and reading goes on with the line after it."""
    lines = [b"a,b\n", b'1,"open\n', *[b"2,fine %d\n" % number for number in range(200_000)]]
    taken = 0

    def counted():
        nonlocal taken
        for line in lines:
            taken += len(line)
            yield line

    records = csv_rows(counted(), ",")
    _, header = next(records)
    number, error = next(records)
    assert header == ["a", "b"]
    assert number == 2
    assert isinstance(error, MalformedLineError)
    assert taken < 3 * LONGEST_FIELD
    rest = list(records)
    assert [line for line, _ in rest] == list(range(3, 200_003))
    assert rest[-1][1] == ["2", "fine 199999"]


def test_csv_agrees_with_python():
    """The stream of well-formed records is what the csv module reads."""
    rng = random.Random(0)
    rows = [["".join(rng.choices('ab,"\n\t é', k=rng.randrange(6))) or "x" for _ in range(3)] for _ in range(500)]
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows([["a", "b", "c"], *rows])
    lines = [f"{line}\n".encode() for line in buffer.getvalue().split("\n")[:-1]]
    records = csv_rows(iter(lines), ",")
    assert next(records) == (1, ["a", "b", "c"])
    assert [fields for _, fields in records] == rows
