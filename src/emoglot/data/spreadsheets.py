"""Reads the rows of Excel and LibreOffice spreadsheets, with cells as text."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import Any

from emoglot.data.lines import MalformedLineError
from emoglot.data.streams import Stream, explained
from emoglot.errors import DataError, needs_extra


def spreadsheet_rows(
    stream: Stream, on_bytes: Callable[[bytes], Any]
) -> Iterator[tuple[int, list[str] | MalformedLineError]]:
    """Yield the non-empty rows of the first visible sheet, each with its number.

    The whole file is read: it has at most a million rows, and its format cannot be streamed.
    """
    with needs_extra("excel", "reading spreadsheets"):
        from python_calamine import CalamineError, SheetTypeEnum, SheetVisibleEnum, load_workbook
    with explained(stream.name):
        data = stream.file.read()
    on_bytes(data)
    try:
        book = load_workbook(io.BytesIO(data))
        shown = [
            sheet.name
            for sheet in book.sheets_metadata
            if (sheet.typ, sheet.visible) == (SheetTypeEnum.WorkSheet, SheetVisibleEnum.Visible)
        ]
        name = (shown or book.sheet_names)[0]
        sheet = book.get_sheet_by_name(name)
    except (CalamineError, OSError) as error:
        raise DataError(f"{stream.name} is not a readable spreadsheet: {error}; save it again, or as CSV") from error
    if len(book.sheet_names) > 1:
        stream.note(f"read the sheet {name!r}, the first visible one of {len(book.sheet_names)}")
    for number, row in enumerate(sheet.iter_rows(), start=1):
        cells = [_text(cell) for cell in row]
        if any(cells):
            yield number, cells


def _text(cell: object) -> str:
    """Return a cell as shown by a spreadsheet program."""
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return "" if cell is None else str(cell)
