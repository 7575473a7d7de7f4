"""Files that are chosen or dropped."""

from __future__ import annotations

import csv
import io
import json
import random

import pytest

from emoglot.data.columns import TEXT_COLUMNS
from tests.serving.page.browsing import (
    AFRAID,
    HAPPY,
    MARKUP,
    ROWS,
    Select,
    assert_harmless,
    write_csv,
)


def test_markup_in_a_file_stays_text(page, tmp_path):
    file = tmp_path / "<b>bold.csv"
    write_csv(file, [["<img src=x onerror=alert(3)>", "text"], [MARKUP, MARKUP]])
    page.give(file, 1)
    assert page["many-title"].text == file.name
    assert page.all("#rows tbody th")[0].text == MARKUP
    assert [option.text for option in Select(page["column"]).options] == ["<img src=x onerror=alert(3)>", "text"]
    assert_harmless(page)


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_file_comes_back_with_its_columns_and_scores(page, model, tmp_path, delimiter):
    write_csv(tmp_path / "rows.csv", ROWS, delimiter)
    page.give(tmp_path / "rows.csv", len(ROWS) - 1)
    assert Select(page["column"]).first_selected_option.text == "text"
    header, *body = page.download()
    # The user's own column "joy" keeps its name; all of ours get the same prefix.
    ours = ["labels", *model.labels, "sentiment", "sentiment_score", "language", "truncated", "unreadable"]
    assert header == ["id", "'=header", "text", "joy", *(f"emoglot_{name}" for name in ours)]
    assert len(body) == len(ROWS) - 1
    for row, original, expected in zip(body, ROWS[1:], model.predict([row[2] for row in ROWS[1:]]), strict=True):
        assert row[:4] == [f"'{cell}" if cell.startswith(("=", "-", "@", "+", "\t")) else cell for cell in original]
        assert row[4] == ",".join(expected.labels)
        scores, others = row[5 : 5 + len(model.labels)], row[5 + len(model.labels) :]
        if not expected.scores:  # the last one, which is empty
            assert [*scores, *others] == [""] * (len(model.labels) + 3) + ["false", "false"]
            continue
        assert [float(cell) for cell in scores] == pytest.approx(list(expected.scores.values()), abs=1e-4)
        assert others[0] == expected.sentiment.name
        assert float(others[1]) == pytest.approx(expected.sentiment.score, abs=1e-4)
        assert others[2:] == [expected.language or "", "false", "false"]


def test_a_download_with_columns_of_these_names_can_be_reported_on(page, model, tmp_path):
    pytest.importorskip("polars")
    from emoglot.report.aggregate import summarise
    from emoglot.report.options import Options
    from emoglot.report.source import open_scored

    texts = [HAPPY, AFRAID, "I am furious with you"]
    write_csv(tmp_path / "rows.csv", [["labels", "language", "text"], *(["spam", "xx", text] for text in texts)])
    page.give(tmp_path / "rows.csv", 3)
    predictions = model.predict(texts)
    for _ in range(2):  # the second time, the file has the columns of the first
        write_csv(tmp_path / "scored.csv", page.download())
        for options in (Options(), Options(prefix="emoglot_")):
            found = summarise(open_scored(tmp_path / "scored.csv", options))
            counts = dict(zip(found.labels, (share.count for share in found.overall.shares), strict=True))
            assert counts == {name: sum(name in one.labels for one in predictions) for name in model.labels}
            assert {one.name for one in found.languages} == {one.language for one in predictions}
        page.give(tmp_path / "scored.csv", 3)
        page.wait(lambda: page["many-title"].text == "scored.csv")


def test_the_page_knows_the_same_names_as_the_command(page):
    assert page.module("text_columns.js", "it.TEXT_COLUMNS") == list(TEXT_COLUMNS)


@pytest.mark.parametrize("other", ["2026-03-31T14:05:00.000+00:00", "Tue Mar 31 14:05:00 +0000 2026", "1" * 60])
def test_dates_and_numbers_are_not_taken_for_texts(page, tmp_path, other):
    write_csv(tmp_path / "rows.csv", [["one", "two"], [other, "so happy"], [other, "so sad"]])
    page.give(tmp_path / "rows.csv", 2)
    assert Select(page["column"]).first_selected_option.text == "two"


def test_another_column_can_be_read(page, model, tmp_path):
    write_csv(tmp_path / "rows.csv", [["first", "second"], [HAPPY + " " + HAPPY, "I am furious with you"]])
    page.give(tmp_path / "rows.csv", 1)
    assert Select(page["column"]).first_selected_option.text == "first"  # the longest
    Select(page["column"]).select_by_visible_text("second")
    page.wait(lambda: [row.text for row in page.all("#rows tbody th")] == ["I am furious with you"])
    assert page.download()[1][2] == ",".join(model.predict(["I am furious with you"])[0].labels)


def test_a_file_without_names_loses_no_row(page, tmp_path):
    write_csv(tmp_path / "rows.csv", [["1", HAPPY], ["2", AFRAID]])
    page.give(tmp_path / "rows.csv", 1)
    page["header"].click()
    page.wait(lambda: page["many-note"].text.startswith("2 texts"))
    assert [row.text for row in page.all("#rows tbody th")] == [HAPPY, AFRAID]


def test_a_file_can_be_dropped_and_closed(page):
    script = """
    const data = new DataTransfer();
    data.items.add(new File([arguments[1]], "lines.txt"));
    arguments[0].dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
    """
    page.run(script, page["text"], f"{HAPPY}\n\n{AFRAID}, {HAPPY}\n")
    page.wait(lambda: [row.text for row in page.all("#rows tbody th")] == [HAPPY, f"{AFRAID}, {HAPPY}"])
    page["close"].click()
    page.wait(page["wheel"].is_displayed)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "cp1252"])
def test_a_table_that_was_saved_as_text_is_a_table(page, tmp_path, encoding):
    content = 'id\ttext\r\n1\tQué alegría\r\n2\t"two\nlines"\r\n'
    (tmp_path / "rows.txt").write_bytes(content.encode(encoding))
    page.give(tmp_path / "rows.txt", 2)
    assert [row.text for row in page.all("#rows tbody th")] == ["Qué alegría", "two lines"]
    assert "Read as a table" in page["many-note"].text
    (tmp_path / "lines.txt").write_text("so happy\there\nso sad\tthere\nfine\tnow")
    page.give(tmp_path / "lines.txt", 3)
    assert "Read as a table" not in page["many-note"].text


@pytest.mark.parametrize("is_array", [False, True])
def test_json_objects_are_rows(page, model, tmp_path, is_array):
    rows = [{"id": 1, "text": HAPPY, "user": {"name": "Ann"}}, {"text": None, "tags": ["a"]}, {"text": f"{AFRAID}, 2"}]
    content = json.dumps(rows) if is_array else "".join(json.dumps(row) + "\r\n" for row in rows)
    (tmp_path / "rows.jsonl").write_text(content, encoding="utf-8-sig")
    page.give(tmp_path / "rows.jsonl", 3)
    assert Select(page["column"]).first_selected_option.text == "text"
    assert not page["header"].is_displayed()
    header, *body = page.download()
    assert header[:5] == ["id", "text", "user", "tags", "labels"]
    assert [row[:4] for row in body] == [
        ["1", HAPPY, '{"name":"Ann"}', ""],
        ["", "", "", '["a"]'],
        ["", f"{AFRAID}, 2", "", ""],
    ]
    assert body[0][4] == ",".join(model.predict(HAPPY).labels)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ('{"text": "a"}\n{"text": ', "line 2 is not a JSON object"),
        ('{"text": "a"}\n\n5\n', "line 3 is not a JSON object"),
        ('[{"text": "a"}, "b"]', "element 2 is not a JSON object"),
        ("[1,", "it is not valid JSON"),
    ],
)
def test_json_that_is_no_table_is_refused_in_a_sentence(page, tmp_path, content, reason):
    (tmp_path / "rows.jsonl").write_text(content)
    page["file"].send_keys(str(tmp_path / "rows.jsonl"))
    page.wait(lambda: f"but not rows.jsonl: {reason}" in page["problem"].text)


@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf", b"text\r\n", b"\n\n"])
def test_a_file_without_texts_is_no_trouble(page, tmp_path, content):
    (tmp_path / "empty.csv").write_bytes(content)
    page.give(tmp_path / "empty.csv", 0)
    assert page.all("#rows tbody tr") == []
    assert len(page.download()) == 1


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "cp1252"])
def test_files_of_other_programs_are_read(page, tmp_path, encoding):
    (tmp_path / "rows.csv").write_bytes("id;text\r\n1;Qué alegría\r\n".encode(encoding))
    page.give(tmp_path / "rows.csv", 1)
    assert page.all("#rows tbody th")[0].text == "Qué alegría"


def test_a_long_file_shows_its_beginning_and_downloads_whole(page, tmp_path):
    write_csv(tmp_path / "long.csv", [["text"], *([f"so happy {index}"] for index in range(230))])
    page.give(tmp_path / "long.csv", 230)
    assert len(page.all("#rows tbody tr")) == 200
    assert "first 200" in page["many-note"].text
    assert [row[0] for row in page.download()[1:]] == [f"so happy {index}" for index in range(230)]


def test_a_report_of_a_file_can_be_downloaded(page, tmp_path):
    pytest.importorskip("polars")
    rows = [[f"so happy {day}", f"2026-03-{day:02d}", "shop" if day % 2 else "=cmd"] for day in range(1, 11)]
    write_csv(tmp_path / "posts.csv", [["text", "when", "source"], *rows])
    page.give(tmp_path / "posts.csv", 10)
    Select(page["time"]).select_by_visible_text("when")
    Select(page["group"]).select_by_visible_text("source")
    page["report"].click()
    (file,) = page.wait(lambda: list(page.downloads.glob("posts-report*.html")))
    report = file.read_text(encoding="utf-8")
    assert "Emotions in posts.csv" in report
    assert "10 texts" in report
    assert "shop" in report
    assert "<title>=cmd</title>" in report  # without the quote that keeps it from being a formula
    assert page["report"].is_enabled()


def test_what_is_wrong_with_a_report_is_told_in_words_of_the_page(page, tmp_path):
    pytest.importorskip("polars")
    rows = [[f"so happy {day}", f"{day}/3/2026", "x"] for day in range(1, 11)]
    write_csv(tmp_path / "dates.csv", [["labels", "Datum", "when"], *rows])
    page.give(tmp_path / "dates.csv", 10)
    Select(page["time"]).select_by_visible_text("when")
    page["report"].click()
    page.wait(lambda: "column 'when' of dates.csv must contain dates" in page["problem"].text)
    Select(page["time"]).select_by_visible_text("Datum")
    page["report"].click()
    page.wait(lambda: "column 'Datum' of dates.csv must show whether" in page["problem"].text)
    assert page.errors()  # the browser logs each refusal
    page["date-format"].send_keys("%d/%m/%Y")
    page["report"].click()
    (file,) = page.wait(lambda: list(page.downloads.glob("dates-report*.html")))
    assert "1 Mar 2026" in file.read_text(encoding="utf-8")


def test_reading_can_be_stopped(page, tmp_path):
    """The service answers once, then never: what was read stays, and the rest is empty in the download."""
    hang = """
    const ask = window.fetch;
    let asked = 0;
    window.fetch = (path, options) => ++asked === 1 ? ask(path, options) : new Promise((_, reject) =>
      options.signal.addEventListener("abort", () => reject(options.signal.reason)));
    """
    page.run(hang)
    write_csv(tmp_path / "rows.csv", [["text"], *([f"so happy {index}"] for index in range(10))])
    page["file"].send_keys(str(tmp_path / "rows.csv"))
    page.wait(lambda: page["many-note"].text == "4 of 10 texts read.")
    page["stop"].click()
    page.wait(lambda: not page["running"].is_displayed())
    rows = page.download()[1:]
    assert [row[1] != "" for row in rows] == [True] * 4 + [False] * 6


def test_csv_agrees_with_python(page):
    """Whatever Python's csv writes is read the same, and what the page writes Python reads the same."""
    chance = random.Random(7)
    rows = [["a", "b"]]
    rows += [["".join(chance.choices('",;\t\r\n =é😀x', k=chance.randrange(6))) for _ in range(2)] for _ in range(300)]
    for delimiter in ",;\t":
        output = io.StringIO(newline="")
        csv.writer(output, delimiter=delimiter).writerows(rows)
        assert page.module("csv.js", "it.parse(arguments[0])", output.getvalue()) == rows
    written = page.module("csv.js", "it.write(arguments[0])", rows)
    guarded = [[f"'{cell}" if cell.startswith(("=", "\t", "\r")) else cell for cell in row] for row in rows]
    assert list(csv.reader(io.StringIO(written.removeprefix("\ufeff"), newline=""))) == guarded


def test_a_stray_quote_does_not_swallow_the_file(page):
    content = 'id\ttext\n1\t"Never again\n2\t"So" he said\n'
    assert page.module("csv.js", "it.parse(arguments[0])", content) == [
        ["id", "text"],
        ["1", '"Never again'],
        ["2", '"So" he said'],
    ]
