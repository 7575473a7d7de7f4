"""Spreadsheets as small as can be, written without any library."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import escape

_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_SHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_ODF = "urn:oasis:names:tc:opendocument:xmlns"
_ODS = "application/vnd.oasis.opendocument.spreadsheet"


def write_xlsx(
    path: Path,
    rows: Sequence[Sequence[object]],
    sheets: Sequence[str] = ("Posts",),
    hidden: Sequence[str] = (),
    filled: str = "Posts",
) -> Path:
    """Write rows to one sheet of several; None is an empty cell."""

    def cell(value: object, place: str) -> str:
        if value is None:
            return ""
        if isinstance(value, int | float):
            return f'<c r="{place}"><v>{value}</v></c>'
        return f'<c r="{place}" t="inlineStr"><is><t>{escape(str(value))}</t></is></c>'

    body = "".join(
        f'<row r="{n}">{"".join(cell(value, f"{chr(65 + i)}{n}") for i, value in enumerate(row))}</row>'
        for n, row in enumerate(rows, start=1)
    )
    numbered = list(enumerate(sheets, start=1))
    states = dict.fromkeys(hidden, ' state="hidden"')
    names = "".join(f'<sheet name="{name}" sheetId="{n}"{states.get(name, "")} r:id="r{n}"/>' for n, name in numbered)
    links = "".join(
        f'<Relationship Id="r{n}" Type="{_OFFICE}/worksheet" Target="worksheets/sheet{n}.xml"/>' for n, _ in numbered
    )
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types"/>',
        "_rels/.rels": f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="r1" '
        f'Type="{_OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{_SHEET}" xmlns:r="{_OFFICE}"><sheets>{names}</sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_PACKAGE}/relationships">{links}</Relationships>',
    }
    for n, name in numbered:
        data = body if name == filled else ""
        parts[f"xl/worksheets/sheet{n}.xml"] = f'<worksheet xmlns="{_SHEET}"><sheetData>{data}</sheetData></worksheet>'
    return _write(path, parts)


def write_ods(path: Path, rows: Sequence[Sequence[object]]) -> Path:
    """Write rows; None is an empty cell, all others are texts."""

    def cell(value: object) -> str:
        if value is None:
            return "<table:table-cell/>"
        text = escape(str(value))
        return f'<table:table-cell office:value-type="string"><text:p>{text}</text:p></table:table-cell>'

    body = "".join(f"<table:table-row>{''.join(map(cell, row))}</table:table-row>" for row in rows)
    names = " ".join(f'xmlns:{name}="{_ODF}:{name}:1.0"' for name in ("office", "table", "text"))
    content = f'<table:table table:name="Posts">{body}</table:table>'
    content = f"<office:body><office:spreadsheet>{content}</office:spreadsheet></office:body>"
    entry = f'<manifest:file-entry manifest:full-path="/" manifest:media-type="{_ODS}"/>'
    manifest = f'<manifest:manifest xmlns:manifest="{_ODF}:manifest:1.0">{entry}</manifest:manifest>'
    document = f"<office:document-content {names}>{content}</office:document-content>"
    return _write(path, {"mimetype": _ODS, "META-INF/manifest.xml": manifest, "content.xml": document})


def _write(path: Path, parts: dict[str, str]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in parts.items():
            archive.writestr(name, text if name == "mimetype" else f'<?xml version="1.0"?>{text}')
    return path
