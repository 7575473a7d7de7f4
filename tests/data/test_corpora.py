"""The corpora with fixed columns, each on a file of the real shape and on broken ones."""

from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emoglot.data.corpora.goemotions import GOEMOTIONS_LABELS, GOEMOTIONS_TO_SEMEVAL
from emoglot.data.registry import FORMATS, read
from emoglot.errors import DataError, EmoglotError, UsageError
from emoglot.labels import PLUTCHIK_LABELS, SEMEVAL_LABELS, UNKNOWN

EC_HEADER = "\t".join(("ID", "Tweet", *SEMEVAL_LABELS))
JOY_ONLY = ["1" if name == "joy" else "0" for name in SEMEVAL_LABELS]


def ec_line(identifier, tweet, cells=JOY_ONLY):
    return "\t".join((identifier, tweet, *cells))


def ec_file(*lines):
    return "\r\n".join((EC_HEADER, *lines, ""))


# SemEval-2018 E-c


def test_semeval_reads_crlf_quotes_and_languages(write):
    lines = (
        ec_line("2018-En-00001", 'she said "wait and left'),
        ec_line("2017-En-00002", r"two lines\nin one &amp; an entity"),
        ec_line("2018-Ar-00003", "يوم جميل", ["0"] * 11),
        ec_line("2018-Es-00004", '"qué sorpresa"'),
    )
    dataset = read(write("ec.txt", ec_file(*lines)))
    assert dataset.texts == (
        'she said "wait and left',
        r"two lines\nin one &amp; an entity",
        "يوم جميل",
        '"qué sorpresa"',
    )
    assert dataset.labels == SEMEVAL_LABELS
    assert dataset.languages == ("en", "en", "ar", "es")
    assert set(dataset.sources) == {"semeval2018-ec"}
    assert dataset.targets.sum(axis=1).tolist() == [1, 1, 0, 1]
    assert dataset.targets[0, SEMEVAL_LABELS.index("joy")] == 1


@pytest.mark.parametrize("strange", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\r"])
def test_semeval_ends_a_line_at_newlines_only(write, strange):
    dataset = read(write("ec.txt", ec_file(ec_line("2018-En-1", f"up{strange}down"), ec_line("2018-En-2", "next"))))
    assert dataset.texts == (f"up{strange}down", "next")


def test_semeval_takes_the_label_order_from_the_header(write):
    dataset = read(write("ec.txt", "ID\tTweet\ttrust\tanger\r\n2018-En-1\tI rely on you\t1\t0\r\n"))
    assert dataset.labels == ("trust", "anger")
    assert dataset.targets.tolist() == [[1, 0]]


def test_semeval_without_gold_is_unknown(write):
    dataset = read(write("ec.txt", ec_file(ec_line("2018-En-1", "who knows", ["NONE"] * 11))))
    assert (dataset.targets == UNKNOWN).all()
    assert len(dataset.annotated()) == 0


def test_semeval_language_falls_back(write):
    path = write("ec.txt", ec_file(ec_line("mine-7", "an id of my own")))
    assert read(path).languages == ("und",)
    assert read(path, language="nl").languages == ("nl",)


def test_semeval_with_byte_order_mark_and_no_last_newline(write):
    dataset = read(write("ec.txt", "\ufeff" + ec_file(ec_line("2018-En-1", "fine")).rstrip()))
    assert dataset.texts == ("fine",)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (ec_line("2018-En-9", "a tab\tinside"), "13 fields, got 14"),
        ("2018-En-9\tshort\t1", "13 fields, got 3"),
        (ec_line("2018-En-9", "two", ["2", *["0"] * 10]), "'anger' must contain 0 or 1, got '2'"),
        (ec_line("2018-En-9", "  "), "must not be empty"),
    ],
)
def test_semeval_malformed_line(write, line, reason):
    path = write("ec.txt", ec_file(ec_line("2018-En-1", "good"), line))
    with pytest.raises(DataError, match=rf"ec\.txt, line 3: .*{reason}.*--skip-bad"):
        read(path)
    dataset = read(path, skip_bad=True)
    assert dataset.texts == ("good",)
    assert [(bad.path, bad.line) for bad in dataset.bad_lines] == [("ec.txt", 3)]


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("ID\tTweet\tanger\tenvy", "'envy'"),
        ("ID\tTweet\tjoy\tjoy", "'joy' more than once"),
        ("ID\tText\tjoy", "ID and"),
    ],
)
def test_semeval_wrong_header(write, header, message):
    with pytest.raises(DataError, match=message):
        read(write("ec.txt", f"{header}\n1\thello\t0\t0\n"), format="semeval")


# BRIGHTER


def test_brighter_reads_quotes_and_newlines_in_fields(write):
    content = (
        "id,text,anger,disgust,fear,joy,sadness,surprise\n"
        'hin_train_track_a_00001,"first line\nsecond, with ""quotes""",0,0,0,1,0,0\n'
        "hin_train_track_a_00002,plain,0.0,1.0,0,0,0,0\n"
    )
    dataset = read(write("hin.csv", content))
    assert dataset.texts == ('first line\nsecond, with "quotes"', "plain")
    assert dataset.labels == ("anger", "disgust", "fear", "joy", "sadness", "surprise")
    assert dataset.targets.tolist() == [[0, 0, 0, 1, 0, 0], [0, 1, 0, 0, 0, 0]]
    assert dataset.languages == ("hi", "hi")
    assert set(dataset.sources) == {f"brighter-{language}" for language in dataset.languages}


def test_brighter_missing_column_is_not_a_label(write):
    dataset = read(write("x.csv", "id,text,anger,fear,joy,sadness,surprise\neng_dev_track_a_1,so it goes,0,0,0,1,0\n"))
    assert dataset.labels == ("anger", "fear", "joy", "sadness", "surprise")
    assert dataset.with_labels(("disgust",)).targets.tolist() == [[UNKNOWN]]


@pytest.mark.parametrize(
    ("prefix", "code"),
    [("eng", "en"), ("chn", "zh"), ("ptbr", "pt-BR"), ("ptmz", "pt-MZ"), ("arq", "arq"), ("vmw", "vmw"), ("esp", "es")],
)
def test_brighter_language_from_the_id_or_the_file_name(write, prefix, code):
    assert read(write("a.csv", f"id,text,joy\n{prefix}_train_track_a_1,hm,0\n")).languages == (code,)
    assert read(write(f"{prefix}.csv", "id,text,joy\n17,hm,0\n"), format="brighter").languages == (code,)


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ("eng_train_track_a_2,too few,1", "4 fields, got 3"),
        ("eng_train_track_a_2,too,many,0,1", "4 fields, got 5"),
        ("eng_train_track_a_2,not binary,0,3", "'fear' must contain 0 or 1, got '3'"),
        ("eng_train_track_a_2,nothing,,0", "'joy' must contain 0 or 1, got ''"),
        ("eng_train_track_a_2,,0,0", "must not be empty"),
        ('eng_train_track_a_2,"loose " quote",0,0', "must be doubled"),
        ("eng_train_track_a_2,a \0 byte,0,0", "NUL"),
        ("eng_train_track_a_2,a \r return,0,0", "carriage return"),
    ],
)
def test_brighter_malformed_record(write, record, reason):
    head = 'id,text,joy,fear\neng_train_track_a_1,"over\ntwo lines",1,0\n'
    path = write("eng.csv", f"{head}{record}\neng_train_track_a_3,last,0,1\n")
    with pytest.raises(DataError, match=f"line 4: .*{reason}"):
        read(path)
    dataset = read(path, skip_bad=True)
    assert dataset.texts == ("over\ntwo lines", "last")
    assert [bad.line for bad in dataset.bad_lines] == [4]


def test_brighter_quote_left_open_costs_one_line_only(write):
    rows = "".join(f"eng_train_track_a_{number},row {number},1,0\n" for number in range(3, 9))
    content = f'id,text,joy,fear\neng_train_track_a_1,fine,1,0\neng_train_track_a_2,"open,1,0\n{rows}'
    dataset = read(write("eng.csv", content), skip_bad=True)
    assert len(dataset) == 7
    assert [(bad.line, bad.reason) for bad in dataset.bad_lines] == [(3, "a quote that is opened here is never closed")]


@pytest.mark.parametrize("header", ["text,id,joy", "id,text,envy", "id,text", "id,text,joy,joy", 'id,"text,joy'])
def test_brighter_wrong_header(write, header):
    with pytest.raises(DataError, match=r"header|label"):
        read(write("eng.csv", f"{header}\neng_train_track_a_1,hm,0\n"), format="brighter")


# XED


def test_xed_reads_digits_and_undoes_csv_quotes(write):
    lines = (
        "No more of this.\t1, 4, 7",
        '"He wrote ""soon"" on it."\t2',
        '"Go," he said. "Now."\t8',
        'He said "no\t3',
        '"\t5',
    )
    dataset = read(write("de-projections.tsv", "\r\n".join(lines) + "\r\n"))
    assert dataset.labels == PLUTCHIK_LABELS
    assert dataset.texts == ("No more of this.", 'He wrote "soon" on it.', '"Go," he said. "Now."', 'He said "no', '"')
    assert dataset.targets[0].tolist() == [1, 0, 0, 1, 0, 0, 1, 0]
    assert dataset.targets.argmax(axis=1).tolist() == [0, 1, 7, 2, 4]
    assert set(dataset.languages) == {"de"}
    assert set(dataset.sources) == {"xed"}


def test_xed_neutral_files_carry_no_emotion(write):
    dataset = read(write("neu_en.txt", "9\tThe bus stops here.\n9\tIt is Tuesday.\t\t\t\n"))
    assert dataset.texts == ("The bus stops here.", "It is Tuesday.")
    assert (dataset.targets == 0).all()
    assert dataset.languages == ("en", "en")
    finnish = read(write("neu_fi.txt", "1620\tTuo on talo.\t2\t428\tfi/1965/1/2.xml.gz\n\t\t\t\t\n"), skip_bad=True)
    assert finnish.texts == ("Tuo on talo.",)
    assert [bad.line for bad in finnish.bad_lines] == [2]


def test_xed_header_of_the_turkish_file_is_no_row(write):
    dataset = read(write("tr-projections2.tsv", "phrase\temotion\r\nTamam o zaman.\t6, 2, 1\r\n\t5\r\n"), skip_bad=True)
    assert dataset.texts == ("Tamam o zaman.",)
    assert [bad.line for bad in dataset.bad_lines] == [3]


@pytest.mark.parametrize(
    ("stem", "code"),
    [
        ("br-projections", "pt-BR"),
        ("cn-projections", "zh-Hans"),
        ("tw-projections", "zh-Hant"),
        ("zh-projections", "zh"),
        ("fi-annotated", "fi"),
        ("subtitles", "und"),
    ],
)
def test_xed_language_from_the_file_name(write, stem, code):
    assert read(write(f"{stem}.tsv", "Yes.\t5\n")).languages == (code,)


@pytest.mark.parametrize(
    "line",
    [
        "unlabelled",
        "empty label\t",
        "nine\t9",
        "zero\t0",
        "word\tjoy",
        "gap\t1,,2",
        "\t3",
        "a\tb\t4",
        "x\t1;2",
        "y\t12",
    ],
)
def test_xed_malformed_line(write, line):
    path = write("fr-projections.tsv", f"Bien sûr.\t8\n{line}\n")
    with pytest.raises(DataError, match="line 2: "):
        read(path, format="xed")
    assert len(read(path, format="xed", skip_bad=True)) == 1


def test_xed_quote_left_open_swallows_nothing(write):
    content = (
        '"Dear sir.\r\nen/1.gz\tfr/2.gz\t288\t263\tfoo\tbar\r\nen/1.gz\tfr/2.gz\t289\t264\tbaz"""\t6\r\nOui.\t5\r\n'
    )
    dataset = read(write("fr-projections.tsv", content), format="xed", skip_bad=True)
    assert dataset.texts == ("Oui.",)
    assert len(dataset.bad_lines) == 3


def test_a_headerless_table_of_zero_and_one_is_not_taken_for_xed(write):
    with pytest.raises(DataError, match="column of texts"):
        read(write("mine.tsv", "good\t1\nbad\t0\n"))


# GoEmotions


def test_goemotions_reads_ids_and_undoes_quoting_only_where_it_is(write):
    dataset = read(write("train.tsv", 'My "best day\t17,13\tabc123\n"""A"" table."\t27\tabc124\n'))
    assert dataset.labels == GOEMOTIONS_LABELS
    assert len(GOEMOTIONS_LABELS) == 28
    assert dataset.texts == ('My "best day', '"A" table.')
    chosen = [[GOEMOTIONS_LABELS[index] for index in row.nonzero()[0]] for row in dataset.targets]
    assert chosen == [["excitement", "joy"], ["neutral"]]
    assert set(dataset.languages) == {"en"}
    assert set(dataset.sources) == {"goemotions"}


def test_goemotions_mapped_to_semeval(write):
    lines = [f"about {name}\t{index}\tid{index}" for index, name in enumerate(GOEMOTIONS_LABELS)]
    dataset = read(write("train.tsv", "\n".join(lines)), format="goemotions-semeval")
    assert dataset.labels == SEMEVAL_LABELS
    assert (dataset.targets[:, SEMEVAL_LABELS.index("pessimism")] == UNKNOWN).all()
    for name, row in zip(GOEMOTIONS_LABELS, dataset.targets, strict=True):
        expected = {GOEMOTIONS_TO_SEMEVAL.get(name, name)} & set(SEMEVAL_LABELS)
        assert {SEMEVAL_LABELS[index] for index in (row == 1).nonzero()[0]} == expected


@pytest.mark.parametrize("line", ["two\t3", "high\t28\tid", "none\t\tid", "word\tjoy\tid", "\t3\tid", "a\tb\t3\tid"])
def test_goemotions_malformed_line(write, line):
    path = write("train.tsv", f"fine\t3\tid1\n{line}\n")
    with pytest.raises(DataError, match="line 2: "):
        read(path)
    assert len(read(path, skip_bad=True)) == 1


# What holds for every file


@pytest.mark.parametrize("format_name", [None, "semeval", "brighter", "xed", "goemotions", "csv", "tsv", "jsonl"])
@pytest.mark.parametrize("content", ["", "\n\r\n", "\ufeff"])
def test_an_empty_file_is_refused(write, format_name, content):
    with pytest.raises(DataError, match="is empty"):
        read(write("data.csv", content), format=format_name)


@pytest.mark.parametrize(
    ("name", "content"),
    [("ec.txt", EC_HEADER), ("eng.csv", "id,text,joy\n"), ("a.tsv", "text\tjoy"), ("tr-x.tsv", "phrase\temotion\n")],
)
def test_a_header_alone_is_refused(write, name, content):
    with pytest.raises(DataError, match=r"at least one usable row.*no data below its header"):
        read(write(name, content))


def test_a_file_of_malformed_lines_only_is_refused(write):
    with pytest.raises(DataError, match=r"first of 2 malformed lines is .*line 1"):
        read(write("en-annotated.tsv", "one\ntwo\n"), format="xed", skip_bad=True)


def test_a_missing_file_and_a_directory_are_refused(tmp_path):
    with pytest.raises(DataError, match="there is no file"):
        read(tmp_path / "absent.csv")
    with pytest.raises(DataError, match="is a directory"):
        read(tmp_path)


def test_a_foreign_byte_costs_its_line(write):
    path = write(
        "ec.txt", ec_file(ec_line("2018-En-1", "très")).encode() + ec_line("2018-En-2", "caf\xe9").encode("latin-1")
    )
    with pytest.raises(DataError, match=r"line 3: the text must be UTF-8, got the byte 0xE9"):
        read(path)
    assert read(path, skip_bad=True).texts == ("très",)


def test_the_message_counts_the_other_malformed_lines(write):
    with pytest.raises(DataError, match=r"line 2: .*\(2 more malformed in this file\)"):
        read(write("en-annotated.tsv", "fine\t1\nbad\nfine\t2\nbad\nbad\n"))


shreds = st.sampled_from(["text", "id", "joy", "ID", "Tweet", "labels", *'10",\t\n\r{}[]:\0é '])
contents = st.binary(max_size=200) | st.lists(shreds, max_size=60).map(lambda parts: "".join(parts).encode())


@given(contents, st.sampled_from([None, *FORMATS]), st.booleans())
def test_no_content_raises_anything_but_our_errors(content, format_name, skip_bad):
    with TemporaryDirectory() as folder:
        path = Path(folder, "data.csv")
        path.write_bytes(content)
        with suppress(EmoglotError):
            read(path, format=format_name, skip_bad=skip_bad)


def test_an_unknown_format_is_refused(write):
    path = write("data.csv", "text,joy\nhello,1\n")
    with pytest.raises(UsageError, match=r"format must be one of semeval, .*got 'excel'"):
        read(path, format="excel")
    assert "goemotions-semeval" in FORMATS


def test_column_names_do_not_go_with_fixed_columns(write):
    with pytest.raises(UsageError, match="columns of 'semeval' are fixed"):
        read(write("ec.txt", EC_HEADER), format="semeval", text_column="Tweet")


def test_a_format_that_can_not_be_told_is_asked_for(write):
    with pytest.raises(DataError, match="use --format, one of semeval"):
        read(write("notes.md", "# Notes\nnothing here\n"))
