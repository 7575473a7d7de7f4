"""The counts of a report against oracles: shares, intervals, times, words, examples."""

from __future__ import annotations

import math
import time
from collections import Counter
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emoglot.errors import DataError, UsageError

pytest.importorskip("polars", reason="THE REPORT IS NOT TESTED: pip install 'emoglot[report]'")

import polars as pl

from emoglot.report import texts as texts_module
from emoglot.report.aggregate import MISSING, OTHERS, Summary, summarise
from emoglot.report.intervals import share_bounds
from emoglot.report.options import Options
from emoglot.report.source import open_scored
from emoglot.report.texts import read_texts
from emoglot.report.times import as_moment, find_span
from emoglot.report.words import log_odds, standing_out
from tests.scored import LABELS, many, page_of, records, write


@pytest.fixture
def scored(tmp_path: Path) -> Path:
    return write(tmp_path / "scored.parquet", records())


def summary_of(path: Path, **options: Any) -> Summary:
    return summarise(open_scored(path, Options(**options)))


# Counts and shares


def test_shares_are_those_counted_by_hand(scored):
    found = summary_of(scored)
    assert found.labels == LABELS
    assert (found.rows.total, found.rows.unscored, found.rows.unreadable, found.rows.readable) == (7, 1, 1, 5)
    assert [share.count for share in found.overall.shares] == [2, 1, 2]
    assert [share.value for share in found.overall.shares] == [0.4, 0.2, 0.4]
    assert found.overall.none.count == 1
    assert all(share.low <= share.value <= share.high for share in found.overall.shares)


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl", "a.csv.gz", "a.jsonl.gz", "a[1].csv", "a[1].jsonl"])
def test_every_format_gives_the_same_page(tmp_path, scored, name):
    options = {"time": "when", "group": "source"}
    assert page_of(write(tmp_path / name, records()), **options) == page_of(scored, **options)


@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.jsonl"])
def test_a_frame_that_pandas_has_written_is_a_scored_file(tmp_path, scored, name):
    pandas = pytest.importorskip("pandas")
    frame, path = pandas.DataFrame(records()), tmp_path / name
    if name == "a.csv":
        frame.to_csv(path)  # with its index, a column without a name
    elif name == "a.parquet":
        frame.to_parquet(path)
    else:
        frame.to_json(path, orient="records", lines=True)
    assert summary_of(path) == summary_of(scored)


def test_a_prefix_is_found_or_given(tmp_path, scored):
    prefixed = write(tmp_path / "prefixed.csv", records("emo_"))
    assert summary_of(prefixed) == summary_of(prefixed, prefix="emo_") == summary_of(scored)


def test_the_texts_are_found_as_they_were_when_they_were_scored(tmp_path, scored):
    rows = [{"Comment" if name == "text" else name: value for name, value in row.items()} for row in records()]
    renamed = write(tmp_path / "comments.parquet", rows)
    assert "What a lovely day" in page_of(renamed)
    rows = [{"Antwort" if name == "Comment" else name: value for name, value in row.items()} for row in rows]
    other = write(tmp_path / "answers.parquet", rows)
    with pytest.raises(UsageError, match=r"no column 'text'.* Choose another column for the texts, or leave"):
        page_of(other)
    assert "What a lovely day" in page_of(other, text="Antwort")


def test_columns_that_the_file_had_before_are_not_taken_for_ours(tmp_path, scored):
    rows = [{"joy": 1, "anger": 0, "fear": 0, "labels": "joy", **row} for row in records("emo_")]
    assert summary_of(write(tmp_path / "a.parquet", rows)) == summary_of(scored)


def test_labels_of_another_model_are_found_by_their_names_in_rows(tmp_path):
    rows = [{"text": "a", "labels": ["boredom"], "boredom": 0.9}, {"text": "b", "labels": [], "boredom": 0.1}]
    path = write(tmp_path / "other.parquet", rows)
    assert summary_of(path).labels == ("boredom",)
    assert "does not apply here" in page_of(path)


def test_groups_are_the_largest_and_the_others(tmp_path):
    rows = many(300, source=lambda row: f"group {math.isqrt(row):02}")
    found = summary_of(write(tmp_path / "a.parquet", rows), group="source")
    truth = Counter(row["source"] for row in rows)
    largest = sorted(truth, key=lambda name: (-truth[name], name))[:12]
    assert [group.name for group in found.groups] == [*largest, OTHERS]
    for group in found.groups:
        own = [row for row in rows if (row["source"] if row["source"] in largest else OTHERS) == group.name]
        assert (group.texts, group.shares[0].count) == (len(own), sum(row["labels"] == ["joy"] for row in own))
    assert found.group_values == len(truth)


def test_a_missing_group_is_a_group(tmp_path):
    path = write(tmp_path / "a.jsonl", many(9, source=lambda row: None if row % 2 else "here"))
    assert {group.name: group.texts for group in summary_of(path, group="source").groups} == {"here": 5, MISSING: 4}


def test_rows_of_json_may_differ_in_what_the_report_does_not_need(tmp_path):
    rows = many(9, id=lambda row: row if row < 5 else f"row {row}", source=lambda row: row if row < 5 else "b")
    found = summary_of(write(tmp_path / "a.jsonl", rows), group="source")
    assert {group.name: group.texts for group in found.groups} == {"b": 4} | {str(row): 1 for row in range(5)}


def test_languages_sentiments_and_flags_are_counted(tmp_path):
    rows = many(
        12,
        language=lambda row: ["en", "sw", "en"][row % 3],
        sentiment=lambda row: "positive" if row % 3 == 0 else "negative",
        sentiment_score=lambda row: 0.5,
        unreadable=lambda row: row == 11,
        truncated=lambda row: row in (1, 2, 11),
    )
    for name in ("a.parquet", "a.csv"):
        found = summary_of(write(tmp_path / name, rows))
        assert [(count.name, count.texts) for count in found.languages] == [("en", 7), ("sw", 4)]
        assert [(kind, share.count) for kind, share in found.sentiments] == [("negative", 7), ("positive", 4)]
        assert (found.rows.unreadable, found.rows.truncated) == (1, 2)


def test_a_sentiment_of_the_users_own_is_not_taken_for_ours(tmp_path):
    rows = many(12, sentiment=lambda row: "5 stars")
    assert not summary_of(write(tmp_path / "a.csv", rows)).sentiments


def test_a_group_of_too_many_values_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("emoglot.report.aggregate.MOST_GROUPS", 10)
    path = write(tmp_path / "a.parquet", many(100, id=str))
    with pytest.raises(DataError, match=r"at most 10 different values, got about \d+: choose another column"):
        summary_of(path, group="id")


@pytest.mark.parametrize(
    ("header", "rule"),
    [
        ("text,labels,joy" + "," * 1_000_000, "at most 10,000 columns"),
        (",".join(["x" * 100_000] * 11) + "," * 1_000_000, "at most 10,000 columns"),
        ('"' + "x\n" * 100_000 + '"' + "," * 1_000_000, "field larger than field limit"),
        (",".join(["text", "labels", "joy", *map(str, range(100))]), "at most 64 labels"),
        (",".join(["text", *(f"{number}labels" for number in range(2000))]), "is not a scored file"),
    ],
)
def test_a_table_of_too_many_columns_is_refused_at_once(header, rule, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(f'{header}\nhappy,"joy,{",".join(map(str, range(100)))}"{",0.5" * 101}\n', encoding="utf-8")
    began = time.process_time()
    with pytest.raises(DataError, match=rule):
        open_scored(path, Options())
    assert time.process_time() - began < 5  # without the limits, 11 s and more; with them, about one


# Intervals


def test_intervals_come_close_to_the_normal_approximation():
    counts, totals = np.array([[[300, 50, 900]]]), np.array([[1000]])
    low, high = share_bounds(counts, totals)
    for share, least, most in zip(counts[0, 0] / 1000, low[0], high[0], strict=True):
        reach = 1.96 * math.sqrt(share * (1 - share) / 1000)
        assert (least, most) == pytest.approx((share - reach, share + reach), abs=0.003)


def test_no_text_is_no_proof_that_there_are_none():
    low, high = share_bounds(np.array([[[0, 200]]]), np.array([[200]]))
    assert (low[0, 0], high[0, 0]) == (0, 3 / 200)
    assert (low[0, 1], high[0, 1]) == (1 - 3 / 200, 1)


def test_clusters_of_one_text_give_the_interval_of_texts_and_clusters_of_equals_a_wider_one(tmp_path):
    """Ten texts of one author that are all alike are worth one: the interval is √10 as wide."""
    rng = np.random.default_rng(1)
    carried = rng.random(500) < 0.3
    alone = share_bounds(carried[:, None, None].astype(np.int64), np.ones((500, 1), np.int64))
    counts = share_bounds(np.array([[[carried.sum()]]]), np.array([[500]]))
    assert np.ravel(alone) == pytest.approx(np.ravel(counts), abs=0.005)
    rows = many(5000, author=lambda row: f"author {row // 10}")
    for row in rows:
        is_joyful = int(row["author"].split()[1]) % 3 == 0
        row |= {"labels": ["joy"] if is_joyful else [], "joy": 0.9 if is_joyful else 0.1}
    path = write(tmp_path / "a.parquet", rows)
    plain, clustered = summary_of(path).overall.shares[0], summary_of(path, cluster="author").overall.shares[0]
    assert plain.count == clustered.count
    assert (clustered.high - clustered.low) / (plain.high - plain.low) == pytest.approx(math.sqrt(10), rel=0.2)


def test_the_texts_of_one_cluster_say_nothing_of_others(tmp_path):
    """A group of one author has the widest interval, not the narrowest."""
    rows = many(400, source=lambda row: "ab"[row % 2], author=lambda row: f"{row % 2 and row % 40}")
    found = summary_of(write(tmp_path / "a.parquet", rows), group="source", cluster="author")
    one, many_authors = ({group.name: group for group in found.groups}[name] for name in "ab")
    assert all((share.low, share.high) == (0, 1) for share in one.shares)
    assert all(share.high - share.low < 0.5 for share in many_authors.shares)


def test_no_text_in_few_clusters_is_little_proof():
    low, high = share_bounds(np.array([[[0, 50]]] * 6), np.full((6, 1), 50))
    assert (low[0].tolist(), high[0].tolist()) == ([0, 0.5], [0.5, 1])


# Time


@pytest.mark.parametrize(
    ("days", "rows", "unit"),
    [
        (1, 5000, "hour"),
        (30, 9000, "day"),
        (300, 20000, "week"),
        (300, 3000, "month"),
        (3000, 30000, "month"),
        (164, 500, "week"),
        (164, 24, "month"),
        (5, 7, "day"),
    ],
)
def test_the_unit_follows_from_the_span_and_the_texts(days, rows, unit):
    first = date(2020, 1, 6)
    frame = pl.DataFrame({"day": [first, first + timedelta(days=days - 1)], "rows": [1, 1]})
    assert find_span(frame).unit(rows).name == unit


def test_texts_are_put_into_their_days(tmp_path, scored):
    found = summary_of(scored, time="when").timeline
    assert (found.unit, found.first, found.last, found.outside) == ("day", "5 Jan 2026", "9 Jan 2026", 0)
    assert [cell and cell.texts for cell in found.points] == [1, 2, None, None, 2]
    assert [cell and cell.shares[2].count for cell in found.points] == [1, 1, None, None, 0]


def test_a_few_dates_far_off_do_not_stretch_the_axis(tmp_path):
    start = date(2025, 1, 1)
    rows = many(4000, when=lambda row: "1970-01-01" if row == 7 else str(start + timedelta(days=row % 60)))
    found = summary_of(write(tmp_path / "a.csv", rows), time="when").timeline
    assert (found.first, found.last, found.outside) == ("1 Jan 2025", "1 Mar 2025", 1)


MOMENT = datetime(2026, 3, 31, 14, 5)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2026-03-31", MOMENT.replace(hour=0, minute=0)),
        ("2026-03-31 14:05:00", MOMENT),
        ("2026-03-31T14:05:00Z", MOMENT),
        ("2026-03-31T16:05:00.000+02:00", MOMENT),
        ("Tue Mar 31 14:05:00 +0000 2026", MOMENT),
        ("Tue, 31 Mar 2026 14:05:00 +0000", MOMENT),
        ("31.03.2026", MOMENT.replace(hour=0, minute=0)),
        ("31.03.2026 14:05", MOMENT),
        ("31.3.2026, 14:05:00", MOMENT),
        ("31/03/2026 14:05", MOMENT),
        ("31-03-2026", MOMENT.replace(hour=0, minute=0)),
        ("3/31/2026", MOMENT.replace(hour=0, minute=0)),
        ("3/31/2026, 2:05:00\u202fPM", MOMENT),
        ("03/31/2026 2:05 pm", MOMENT),
        ("20260331", MOMENT.replace(hour=0, minute=0)),
        ("2026-03", datetime(2026, 3, 1)),
        ("2026", datetime(2026, 1, 1)),
        (2026, datetime(2026, 1, 1)),
        (str(int(MOMENT.replace(tzinfo=timezone.utc).timestamp())), MOMENT),
        (int(MOMENT.replace(tzinfo=timezone.utc).timestamp()) * 1000, MOMENT),
        (MOMENT, MOMENT),
        (MOMENT.replace(tzinfo=timezone(timedelta(hours=-3))), MOMENT + timedelta(hours=3)),
        (MOMENT.date(), MOMENT.replace(hour=0, minute=0)),
    ],
)
def test_times_are_read_in_many_forms(value, expected):
    frame = pl.DataFrame({"when": [value, None]})
    read = as_moment(Path("a.csv"), "when", frame.lazy())
    assert frame.select(read).to_series().to_list() == [expected, None]


def test_what_is_no_time_is_refused(tmp_path, scored):
    with pytest.raises(DataError, match=r"'source'.*must contain dates or times.*got 'post'"):
        summary_of(scored, time="source")
    path = write(tmp_path / "a.csv", many(10, when=lambda row: "2026-03-04" if row < 7 else "spring"))
    with pytest.raises(DataError, match=r"3 of 10 are not, such as 'spring'"):
        summary_of(path, time="when")


@pytest.mark.parametrize(("last", "expected"), [("13/01/2026", "6 Jan 2026"), ("1/13/2026", "1 Jun 2026")])
def test_the_order_of_day_and_month_is_that_of_all_rows(tmp_path, last, expected):
    """Only the last row shows it, far behind the sample."""
    rows = many(10_050, when=lambda row: last if row == 10_049 else "6/1/2026")
    assert summary_of(write(tmp_path / "a.csv", rows), time="when").timeline.first == expected


def test_dates_of_which_the_order_can_not_be_known_need_a_format(tmp_path):
    path = write(tmp_path / "a.csv", many(12, when=lambda row: f"{row + 1}/4/2026 14:05"))
    with pytest.raises(DataError, match=r"'1/4/2026 14:05', which could be both: give date_format .*--date-format"):
        summary_of(path, time="when")
    found = summary_of(path, time="when", date_format="%d/%m/%Y %H:%M").timeline
    assert (found.first, found.last) == ("1 Apr 2026", "12 Apr 2026")
    found = summary_of(path, time="when", date_format="%m/%d/%Y %H:%M").timeline
    assert (found.first[-8:], found.last[-8:]) == ("Jan 2026", "Dec 2026")
    for wrong in ("%Y-%m-%d", "%Q", "%", "", "day"):
        with pytest.raises(UsageError, match=f"must have the format '{wrong}' of date_format .*: correct the format"):
            summary_of(path, time="when", date_format=wrong)


def test_dates_in_both_orders_are_refused(tmp_path):
    path = write(tmp_path / "a.csv", many(10, when=lambda row: "13/4/2026" if row % 2 else "4/14/2026"))
    with pytest.raises(DataError, match=r"got 5 such as '13/4/2026' and 5 such as '4/14/2026'"):
        summary_of(path, time="when")


# Words and examples


def test_log_odds_are_those_of_the_formula():
    """Monroe, Colaresi and Quinn 2008, equations 15, 16, 20 and 22, word by word."""
    inside, outside = {"a": 10, "b": 3, "c": 40}, {"a": 2, "b": 30, "c": 100}
    prior = {word: inside[word] + outside[word] for word in inside}
    n_inside, n_outside, n_prior = (sum(counts.values()) for counts in (inside, outside, prior))
    expected = []
    for word, y in inside.items():
        x, a = outside[word], prior[word]
        omega = math.log((y + a) / (n_inside + n_prior - y - a))
        delta = omega - math.log((x + a) / (n_outside + n_prior - x - a))
        expected.append(delta / math.sqrt(1 / (y + a) + 1 / (x + a)))
    found = log_odds(
        np.array([*inside.values()]), np.array([*outside.values()]), np.array(n_inside), np.array(n_outside)
    )
    assert found == pytest.approx(expected)


def words_of(path: Path, languages: tuple[str, ...] = (), **options: Any) -> list[str]:
    return [word.word for word in standing_out(read_texts(open_scored(path, Options(**options)), languages).words, 0)]


@pytest.mark.parametrize(
    ("joyful", "other", "expected"),
    [
        ("Das ist ein GLÜCKLICHER Tag", "Das ist ein Stuhl", {"glücklicher", "tag"}),
        ("नमस्ते मैं ख़ुश हूँ", "मैं घर हूँ", {"नमस्ते", "ख़ुश"}),
        ("من خوشحالم می‌خندم", "من اینجا هستم", {"خوشحالم", "می‌خندم"}),
        ("今日嬉しい", "今日雨", {"日嬉", "嬉し", "しい"}),
        ("ดีใจมาก ฝน", "วันนี้อากาศ", {"ดีใจ", "ใจม", "จมา", "มาก", "ฝน"}),  # ดี is one character, and never cut
        ("yes 😀 @bob https://joy.example/x", "no @eve https://x.example/y", {"yes", "😀"}),
        ("don't <url> cry", "cry", {"don't"}),
    ],
)
def test_words_are_found_in_every_script(tmp_path, joyful, other, expected):
    rows = many(300)
    for row in rows:
        row["text"] = joyful if row["labels"] else other
    assert set(words_of(write(tmp_path / "a.parquet", rows))) == expected


def test_words_are_compared_within_their_language(tmp_path):
    """All Spanish texts carry joy, and their words would stand out; within Spanish they do not."""
    rows = [{"text": "la casa grande", "labels": ["joy"], "joy": 0.9, "language": "es"} for _ in range(200)]
    rows += [{"text": "a happy house", "labels": ["joy"], "joy": 0.9, "language": "en"} for _ in range(50)]
    rows += [{"text": "a big house", "labels": [], "joy": 0.1, "language": "en"} for _ in range(200)]
    path = write(tmp_path / "a.parquet", rows)
    assert "casa" in words_of(path)
    assert words_of(path, ("en", "es")) == ["happy"]


def test_forgetting_rare_words_keeps_the_frequent_ones(tmp_path, monkeypatch):
    rows = many(2000)
    for number, row in enumerate(rows):
        row["text"] = f"{'glad' if row['labels'] else 'dull'} {'x' * (number % 7 + 2)}{number:b}".translate(
            {ord("0"): "o", ord("1"): "l"}
        )
    path = write(tmp_path / "a.parquet", rows)
    scored = open_scored(path, Options())
    exact = read_texts(scored, ()).words
    monkeypatch.setattr(texts_module, "MOST_WORDS", 200)
    monkeypatch.setattr(texts_module, "BATCH_ROWS", 100)
    bounded = read_texts(scored, ()).words
    assert bounded.missed > exact.missed == 0
    assert "glad" in {word.word for word in standing_out(bounded, 0)}
    found, expected = (dict(zip(counts.words, counts.texts.tolist(), strict=True)) for counts in (bounded, exact))
    assert found["glad"] == expected["glad"]
    assert bounded.language_texts[0] == exact.language_texts[0]


def test_examples_have_the_highest_scores_and_none_is_there_twice(tmp_path):
    rows = many(600)
    for number, row in enumerate(rows):
        row["text"], row["joy"] = f"text of {'abcdefghij'[number % 10]} https://x.example/{number}", number / 1000
    found = read_texts(open_scored(write(tmp_path / "a.parquet", rows), Options()), ()).examples[0]
    carried = [row for row in rows if row["labels"]]
    best: dict[str, float] = {}
    for row in carried:
        key = row["text"].split(" https")[0]
        best[key] = max(best.get(key, 0), row["joy"])
    expected = sorted(best.items(), key=lambda pair: -pair[1])[:5]
    assert [(one.text.split(" https")[0], one.score) for one in found] == expected
