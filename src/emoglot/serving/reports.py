"""Creates the page of `emoglot report` for a scored table."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from fastapi import HTTPException

from emoglot.errors import DataError, EmoglotError, MissingExtraError, UsageError

# One at a time: a report uses all cores for some seconds, and predictions should not wait for several.
_turn = asyncio.Semaphore(1)


async def make_page(table: bytes, name: str, options: dict[str, Any]) -> str:
    """Return the HTML about a scored table in CSV; `options` are those of a report."""
    async with _turn:
        try:
            return await asyncio.to_thread(_make, table, name, options)
        except MissingExtraError as error:
            raise HTTPException(501, str(error)) from error
        except EmoglotError as error:
            raise HTTPException(422, str(error)) from error


def _make(table: bytes, name: str, options: dict[str, Any]) -> str:
    from emoglot.report.options import Options
    from emoglot.report.write import make_report

    with tempfile.TemporaryDirectory(prefix="emoglot-") as folder:
        path = Path(folder) / "scored.csv"
        path.write_bytes(table)
        try:
            html, _ = make_report(path, Options(**options), name=name)
        except (UsageError, DataError) as error:  # whose message contains the name of the temporary file
            raise DataError(str(error).replace(str(path), name)) from error
    return html
