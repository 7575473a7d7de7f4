"""`emoglot predict`: from arguments, lines and pipes, as a table and as JSON."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import time
import zipfile
from dataclasses import asdict
from pathlib import Path

import pytest

from emoglot.cli.output import CLOSED_PIPE
from emoglot.model import Model
from tests.cli.harness import DATA, ENCODER, MODEL, USAGE, Result, Run, check_error, command, shell
from tests.conftest import QUICK as QUICK_CONFIG
from tests.conftest import make_dataset, train

ODD_LINES = (
    "\ufeffI am so happy\r\n\r\nEstoy furioso, esto es horrible\n".encode() + b"so \xff sad\n" + "أنا خائف".encode()
)
ODD_TEXTS = ["I am so happy", "", "Estoy furioso, esto es horrible", "so \ufffd sad", "أنا خائف"]


def test_predict_as_a_table(run: Run, model_folder: Path, trained: Model) -> None:
    text = "I am so [bold]happy[/bold] :smile:"
    result = run("predict", "--model", model_folder, text, "أنا خائف")
    assert (result.code, result.err) == (0, "")
    for given, prediction in zip((text, "أنا خائف"), trained.predict([text, "أنا خائف"]), strict=True):
        (line,) = [line for line in result.out.splitlines() if given in line]
        _, _, emotions, following, _ = (cell.strip() for cell in line.split("│"))
        ranked = sorted(prediction.scores.items(), key=lambda item: -item[1])
        chosen = [f"{name} {score:.2f}" for name, score in ranked if name in prediction.labels]
        others = [f"{name} {score:.2f}" for name, score in ranked if name not in prediction.labels]
        assert emotions == (", ".join(chosen) or "–")
        assert following == ", ".join(others[:2])


@pytest.mark.filterwarnings("ignore:no row that chooses thresholds")
def test_explain_puts_the_pieces_of_a_word_together(run: Run, xlmr_folder: Path, tmp_path: Path) -> None:
    config = QUICK_CONFIG.override({"training.max_epochs": 1})
    model = train(str(xlmr_folder), make_dataset(2), config=config, cache=tmp_path / "cache")
    folder = model.save(tmp_path / "model")
    text = "Terrified unbelievably"
    assert len(model.explain(text)) > 2
    out = run("predict", "--model", folder, "--explain", text).out
    (line,) = [line for line in out.splitlines() if text in line]
    words = line.split("│")[4].split(", ")
    assert {word.split()[0] for word in words} == set(text.split())
    assert sum(float(word.split()[1]) for word in words) == pytest.approx(1, abs=0.011)


def test_a_text_does_not_command_the_terminal(run: Run, model_folder: Path) -> None:
    result = run("predict", "--model", model_folder, "--explain", "so \x1b[2Jhappy\x9b1m\x07")
    assert "so \ufffd[2Jhappy\ufffd1m\ufffd" in result.out
    assert not set(result.out) & {"\x1b", "\x9b", "\x07"}


def test_only_the_beginning_of_a_long_text_is_printed(run: Run, model_folder: Path) -> None:
    began = time.process_time()
    result = run("predict", "--model", model_folder, "so happy " + "1-" * 500_000)
    assert time.process_time() - began < 5
    assert "…" in result.out
    assert len(result.out.splitlines()) < 30


def test_predict_as_json(run: Run, model_folder: Path, trained: Model) -> None:
    result = run("predict", "--model", model_folder, "--json", *ODD_TEXTS)
    expected = [
        {"text": text, **asdict(prediction)}
        for text, prediction in zip(ODD_TEXTS, trained.predict(ODD_TEXTS), strict=True)
    ]
    assert result.records() == json.loads(json.dumps(expected))
    assert "أنا خائف" in result.out  # readable, not escaped
    assert (result.code, result.err) == (0, "")


def test_predict_reads_lines(run: Run, model_folder: Path, tmp_path: Path) -> None:
    """A mark at the beginning, ends of Windows, an empty line and a stray byte cost no line its answer."""
    (tmp_path / "lines.txt").write_bytes(ODD_LINES)
    from_file = run("predict", "--model", model_folder, "--json", "--file", tmp_path / "lines.txt")
    from_input = run("predict", "--model", model_folder, "--json", stdin=ODD_LINES)
    assert from_file == from_input == run("predict", "--model", model_folder, "--json", *ODD_TEXTS)
    assert [record["text"] for record in from_file.records()] == ODD_TEXTS


def test_predict_nothing(run: Run, model_folder: Path) -> None:
    note = "standard input is empty: there are no texts to score\n"
    assert run("predict", "--model", model_folder, "--json", stdin=b"") == Result(0, "", note)
    (empty,) = run("predict", "--model", model_folder, "--json", stdin=b"\n").records()
    assert (empty["text"], empty["labels"], empty["scores"]) == ("", [], {})


def test_predict_with_reasons(run: Run, model_folder: Path, trained: Model) -> None:
    text = "Estoy furioso, esto es horrible"
    with_text, empty = run("predict", "--model", model_folder, "--json", "--explain", text, "").records()
    assert with_text["tokens"] == [asdict(token) for token in trained.explain(text)]
    assert sum(token["weight"] for token in with_text["tokens"]) == pytest.approx(1)
    assert all(text[token["start"] : token["end"]] == token["token"] for token in with_text["tokens"])
    assert empty["tokens"] == []
    heaviest = max(trained.explain(text), key=lambda token: token.weight)
    result = run("predict", "--model", model_folder, "--explain", text, "")
    assert f"{heaviest.token} {heaviest.weight:.2f}" in result.out
    assert result.code == 0


def test_predict_with_the_encoder_elsewhere(run: Run, model_folder: Path) -> None:
    assert run("predict", "--model", model_folder, "--encoder", "tiny", "x").code == 0
    check_error(run("predict", "--model", model_folder, "--encoder", "nobody/has-this", "x"), ENCODER, "no encoder")


def test_predict_refuses(run: Run, model_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "x").write_text("x", encoding="utf-8")
    check_error(run("predict", "--model", model_folder, "a", "--file", tmp_path / "x"), USAGE, "got both")
    check_error(
        run("predict", "--model", model_folder, "--file", tmp_path / "y"), DATA, "there is no file", "check the path"
    )
    check_error(run("predict", "--model", model_folder, "--file", tmp_path), DATA, "is a directory")
    (tmp_path / "bytes").write_bytes(bytes(range(256)) * 4)
    check_error(
        run("predict", "--model", model_folder, "--file", tmp_path / "bytes"), DATA, "must be text", "--encoding"
    )
    check_error(run("predict", "--model", tmp_path / "none", "a"), MODEL, "there is no model folder", "emoglot train")
    check_error(run("predict", "--model", tmp_path, "a"), MODEL, "is not an emoglot model")


def test_a_place_that_cannot_be_written(run: Run, model_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for place in (tmp_path / "file/out", tmp_path / "file/folder/out"):
        found = run("export", "--model", model_folder, "--out", place)
        check_error(found, USAGE, "cannot be read or written", "choose another place")


def test_predict_points_to_score_for_a_table(run: Run, model_folder: Path, tmp_path: Path) -> None:
    table = tmp_path / "survey.xlsx"
    with zipfile.ZipFile(table, "w") as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>")
    (tmp_path / "survey").write_bytes(b"PAR1")  # Parquet, by its first bytes
    for path in (table, tmp_path / "survey"):
        found = run("predict", "--model", model_folder, "--file", path)
        check_error(found, USAGE, "one text per line", path.name, "emoglot score")


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="there are no pseudo-terminals on this system")
def test_predict_does_not_wait_for_a_terminal(model_folder: Path) -> None:
    ours, theirs = os.openpty()
    try:
        arguments = command("predict", "--model", model_folder)
        finished = subprocess.run(arguments, stdin=theirs, capture_output=True, check=False, timeout=60)
    finally:
        os.close(ours)
        os.close(theirs)
    check_error(Result(finished.returncode, "", finished.stderr.decode()), USAGE, "at least one text", "--file")


def test_a_damaged_model(run: Run, model_folder: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(model_folder, tmp_path / "model"))
    (folder / "head.onnx").write_bytes((folder / "head.onnx").read_bytes()[:-1])
    check_error(run("predict", "--model", folder, "a"), MODEL, "truncated")


def test_arguments_that_are_no_text(model_folder: Path) -> None:
    """A byte that is not UTF-8 reaches us as a lone surrogate, which neither a terminal nor UTF-8 can take."""
    given = os.fsdecode(b"so ha\xffppy")
    as_json = shell("predict", "--model", model_folder, "--json", "--explain", given)
    assert as_json.returncode == 0, as_json.stderr
    record = json.loads(as_json.stdout)
    assert record["text"] == given
    assert record["tokens"][-1]["token"] == "ha\udcffppy"
    as_table = shell("predict", "--model", model_folder, "--explain", given)
    assert (as_table.returncode, as_table.stderr) == (0, b"")
    assert rb"so ha\udcffppy" in as_table.stdout


def test_arguments_in_the_c_locale_are_utf_8(model_folder: Path) -> None:
    text = "Ich bin glücklich 😀"
    c_locale = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    found = shell("predict", "--model", model_folder, "--json", text, **c_locale)
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout)["text"] == text


def test_an_output_that_takes_ascii_only(model_folder: Path) -> None:
    ascii_only = {"PYTHONIOENCODING": "ascii"}
    as_json = shell("predict", "--model", model_folder, "--json", "¡Qué día! 😱", **ascii_only)
    assert json.loads(as_json.stdout)["text"] == "¡Qué día! 😱"
    as_table = shell("predict", "--model", model_folder, "¡Qué día! 😱", **ascii_only)
    assert (as_table.returncode, as_table.stderr) == (0, b"")
    assert as_table.stdout.isascii()


@pytest.mark.parametrize("options", [(), ("--json",)], ids=str)
def test_a_reader_that_goes_away(options: tuple[str, ...], model_folder: Path) -> None:
    """As in `emoglot predict … | head -1`, with more output than a pipe holds."""
    lines = "so happy today, and so sad\n" * 2000
    child = subprocess.Popen(
        command("predict", "--model", model_folder, *options),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert child.stdin is not None
    assert child.stdout is not None
    assert child.stderr is not None
    child.stdin.write(lines.encode())
    child.stdin.close()
    assert child.stdout.readline()
    child.stdout.close()
    errors = child.stderr.read()
    child.stderr.close()
    assert child.wait(timeout=60) in (0, CLOSED_PIPE)  # a table is one write, which some systems take whole
    assert errors == b""


@pytest.mark.parametrize(
    "texts",
    [("-I am sad",), ("so happy", "-5 points, sadly", "so sad"), ("--- all over ---",), ("--Well, well",), ("-", "- ")],
    ids=str,
)
def test_a_text_may_begin_with_a_dash(texts: tuple[str, ...], run: Run, model_folder: Path) -> None:
    for arguments in ((*texts, "--json", "--model", model_folder), ("--model", model_folder, "--json", *texts)):
        result = run("predict", *arguments)
        assert result.code == 0, result.err
        assert [record["text"] for record in result.records()] == list(texts)


def test_what_looks_like_an_option_is_one(run: Run, model_folder: Path) -> None:
    for misspelt in (("--langauge", "en"), ("--langauge=en",)):
        result = run("predict", "--model", model_folder, *misspelt, "so happy")
        assert (result.code, result.out) == (USAGE, "")
        assert "No such option: --langauge" in result.err
        assert "--language" in result.err.split("(")[1]  # a near match
    assert "No such option" in run("predict", "--model", model_folder, "-json", "so happy").err
    (record,) = run("predict", f"--model={model_folder}", "--json", "--", "--langauge").records()
    assert record["text"] == "--langauge"


def test_the_value_of_an_option_may_begin_with_a_dash(
    run: Run, model_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "-odd name").write_text("so happy\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    (record,) = run("predict", "--model", model_folder, "--json", "--file", "-odd name").records()
    assert record["text"] == "so happy"


@pytest.mark.parametrize("encoding", ["utf-16", "cp1252", "utf-8-sig"])
def test_the_encoding_is_recognised_or_given(encoding: str, run: Run, model_folder: Path, tmp_path: Path) -> None:
    texts = ["Ich bin so glücklich über dich", "Ça va très bien, señor"]
    lines = "\r\n".join(texts).encode(encoding)
    (tmp_path / "lines.txt").write_bytes(lines)
    (tmp_path / "lines.txt.gz").write_bytes(gzip.compress(lines))
    options = ("predict", "--model", model_folder, "--json")
    for given, name in (((("--file", tmp_path / "lines.txt"), b""), "lines.txt"), (((), lines), "standard input")):
        arguments, stdin = given
        found = run(*options, *arguments, stdin=stdin)
        assert [record["text"] for record in found.records()] == texts
        assert (f"{name}: read as cp1252, guessed" in found.err) == (encoding == "cp1252")
        found = run(*options, *arguments, "--encoding", encoding, stdin=stdin)
        assert ([record["text"] for record in found.records()], found.err) == (texts, "")
    assert run(*options, "--file", tmp_path / "lines.txt.gz").records() == run(*options, stdin=lines).records()
    check_error(run(*options, "--encoding", "klingon", stdin=lines), USAGE, "an encoding must be a name", "'klingon'")
