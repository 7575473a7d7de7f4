"""Spreadsheets that are chosen on the page, read as `emoglot score` reads them."""

from __future__ import annotations

import io
import zipfile

import pytest

from emoglot.data.spreadsheets import spreadsheet_rows
from emoglot.data.streams import Stream
from tests.serving.page.browsing import AFRAID, HAPPY, Select
from tests.spreadsheets import write_ods, write_xlsx

ROWS = [["id", None, "Comment"], [1, None, HAPPY], [2, "<b>", f"{AFRAID}\nso & so"]]
STYLES = (
    '<styleSheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><numFmts><numFmt numFmtId="164" '
    'formatCode="dd/mm/yyyy\\ hh:mm"/><numFmt numFmtId="165" formatCode="0.0&quot;days&quot;"/></numFmts><cellXfs>'
    '<xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="164"/><xf numFmtId="165"/></cellXfs></styleSheet>'
)
SHARED = (
    '<sst xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><si><t>東京</t><rPh sb="0" eb="2">'
    '<t>トウキョウ</t></rPh></si><si><r><t xml:space="preserve">so </t></r><r><t>happy</t></r></si></sst>'
)
CELLS = (
    '<row r="1"><c r="A1" t="s"><v>0</v></c><c r="B1" t="str"><v>day</v></c>'
    '<c r="AA1" t="inlineStr"><is><t>text</t></is></c></row>'
    '<row r="3"><c r="A3" s="1"><v>46023</v></c><c r="B3" s="2"><v>46023.5</v></c><c r="C3" s="3"><v>2.5</v></c>'
    '<c r="D3" t="b"><v>1</v></c><c r="AA3" t="s"><v>1</v></c></row>'
)


def rewrite(path, **parts):
    """Write a workbook again, packed, with some parts replaced or added."""
    with zipfile.ZipFile(path) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in (content | {f"xl/{name}.xml": text.encode() for name, text in parts.items()}).items():
            archive.writestr(name, data)
        archive.comment = b"a comment"


def read_by_page(page, path):
    script = "it.readSpreadsheet(new Uint8Array(arguments[0]).buffer)"
    rows = page.module("spreadsheet.js", script, [*path.read_bytes()])
    width = max(map(len, rows))
    return [[*row, *[""] * (width - len(row))] for row in rows]


def read_by_python(path):
    pytest.importorskip("python_calamine", reason="reading spreadsheets needs: pip install 'emoglot[excel]'")
    stream = Stream(str(path), io.BytesIO(path.read_bytes()), None, b"")
    return [cells for _, cells in spreadsheet_rows(stream, lambda data: None)]


@pytest.mark.parametrize("write", [write_xlsx, write_ods])
def test_a_spreadsheet_comes_back_with_scores(page, model, tmp_path, write):
    path = write(tmp_path / f"posts.{write.__name__[-4:].strip('_')}", ROWS)
    page.give(path, 2)
    assert Select(page["column"]).first_selected_option.text == "Comment"
    header, *body = page.download()
    assert header[:4] == ["id", "", "Comment", "labels"]
    assert [row[:3] for row in body] == [["1", "", HAPPY], ["2", "<b>", f"{AFRAID}\nso & so"]]
    assert body[0][3] == ",".join(model.predict(HAPPY).labels)


def test_every_kind_of_cell_is_read_as_the_command_reads_it(page, tmp_path):
    path = write_xlsx(tmp_path / "posts.xlsx", [])
    namespace = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    sheet = f'<worksheet xmlns="{namespace}"><sheetData>{CELLS}</sheetData></worksheet>'
    rewrite(path, **{"worksheets/sheet1": sheet, "sharedStrings": SHARED, "styles": STYLES})
    header, row = found = read_by_page(page, path)
    assert header == ["東京", "day", *[""] * 24, "text"]
    assert row == ["2026-01-01", "2026-01-01 12:00:00", "2.5", "true", *[""] * 22, "so happy"]
    assert found == read_by_python(path)


@pytest.mark.parametrize(("name", "write"), [("posts.xlsx", write_xlsx), ("posts.ods", write_ods)])
def test_the_page_agrees_with_the_command(page, tmp_path, name, write):
    path = write(tmp_path / name, ROWS)
    assert read_by_page(page, path) == read_by_python(path)


@pytest.mark.parametrize("kind", ["old", "cut", "zip"])
def test_what_is_no_table_is_refused_in_a_sentence(page, tmp_path, kind):
    path = tmp_path / "posts.xlsx"
    if kind == "old":
        path.write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600))
    elif kind == "cut":
        path.write_bytes(write_xlsx(path, ROWS).read_bytes()[:-300])
    else:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("posts.csv", "text\nso happy\n")
    page["file"].send_keys(str(path))
    page.wait(lambda: "but not posts.xlsx" in page["problem"].text)
    assert page["wheel"].is_displayed()
