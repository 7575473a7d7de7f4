"""The command line: what it prints, where it prints it, and the exit code it ends with."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from emoglot import __version__, load
from emoglot.calibrate import calibrate
from emoglot.cli import app, main
from emoglot.data import read
from emoglot.data.dataset import Dataset
from emoglot.encoders import extended_fingerprints, list_encoders, load_encoder
from emoglot.encoders.export import export_encoder
from emoglot.encoders.hub import HubEncoder
from emoglot.evaluate import evaluate_model
from emoglot.labels import names_where
from emoglot.languages import Language, write_languages
from emoglot.model import EmotionClassifier
from tests.conftest import QUICK as QUICK_CONFIG
from tests.conftest import make_dataset

USAGE, DATA, ENCODER, MODEL, TRAINING = 2, 3, 4, 5, 6
QUICK = ["--set", "head.hidden=8", "--set", "head.layers=1", "--set", "training.max_epochs=2"]
COMMANDS = [
    (),
    ("train",),
    ("predict",),
    ("evaluate",),
    ("calibrate",),
    ("distill",),
    ("project",),
    ("languages",),
    ("encoders",),
    ("encoders", "install"),
    ("encoders", "export"),
]
ODD_LINES = (
    "\ufeffI am so happy\r\n\r\nEstoy furioso, esto es horrible\n".encode() + b"so \xff sad\n" + "أنا خائف".encode()
)
ODD_TEXTS = ["I am so happy", "", "Estoy furioso, esto es horrible", "so \ufffd sad", "أنا خائف"]


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str

    def records(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]


Run = Callable[..., Result]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command in this process, through the very function that the installed script calls."""
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)  # which a command changes

    def run_main(*arguments: object, stdin: bytes = b"") -> Result:
        monkeypatch.setattr(sys, "argv", ["emoglot", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capsys.readouterr()
        try:
            main()
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
        return Result(code, *capsys.readouterr())

    return run_main


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "emoglot", *map(str, arguments)]


def shell(*arguments: object, stdin: bytes = b"", **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Run a command in a process of its own."""
    env = {**os.environ, "COLUMNS": "200", **environment}
    return subprocess.run(command(*arguments), input=stdin, capture_output=True, check=False, env=env)


def write_table(path: Path, data: Dataset) -> Path:
    rows = zip(data.texts, data.languages, data.targets == 1, strict=True)
    lines = [f"{text}\t{language}\t{','.join(names_where(chosen, data.labels))}" for text, language, chosen in rows]
    path.write_text("\n".join(["text\tlanguage\tlabels", *lines]) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def table(dataset: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_table(tmp_path_factory.mktemp("data") / "ours.tsv", dataset)


def check_error(result: Result, code: int, *parts: str) -> None:
    """An error is one sentence on standard error, and nothing on standard output."""
    assert (result.code, result.out) == (code, ""), result.err
    assert result.err.startswith("error: ")
    assert result.err.count("\n") == 1
    for part in parts:
        assert part in result.err


# About itself


def test_the_version(run: Run) -> None:
    assert run("--version") == Result(0, f"{__version__}\n", "")


@pytest.mark.parametrize("name", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help(name: tuple[str, ...], flag: str) -> None:
    result = CliRunner().invoke(app, [*name, flag])
    assert result.exit_code == 0
    assert "Usage:" in result.output
    assert result.stderr == ""


def test_help_names_every_command(run: Run) -> None:
    shown = run().out + run("encoders", "--help").out
    assert all(part in shown for name in COMMANDS for part in name)


@pytest.mark.parametrize(
    "arguments", [("sing",), ("train",), ("predict", "--model"), ("encoders", "sing"), ("--loud",)]
)
def test_what_typer_refuses(arguments: tuple[str, ...], run: Run) -> None:
    result = run(*arguments)
    assert (result.code, result.out) == (USAGE, "")
    assert "Error" in result.err
    assert "Traceback" not in result.err


# predict


def test_predict_as_a_table(run: Run, model_folder: Path, trained: EmotionClassifier) -> None:
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
    model = EmotionClassifier(str(xlmr_folder), config=config, cache=tmp_path / "cache").fit_datasets(make_dataset(2))
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


def test_predict_as_json(run: Run, model_folder: Path, trained: EmotionClassifier) -> None:
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
    assert run("predict", "--model", model_folder, "--json", stdin=b"") == Result(0, "", "")
    (empty,) = run("predict", "--model", model_folder, "--json", stdin=b"\n").records()
    assert (empty["text"], empty["labels"], empty["scores"]) == ("", [], {})


def test_predict_with_reasons(run: Run, model_folder: Path, trained: EmotionClassifier) -> None:
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
    check_error(run("predict", "--model", model_folder, "a", "--file", tmp_path / "x"), USAGE, "not both")
    check_error(run("predict", "--model", model_folder, "--file", tmp_path / "y"), DATA, "can't read", "No such file")
    check_error(run("predict", "--model", model_folder, "--file", tmp_path), DATA, "can't read", "directory")
    check_error(run("predict", "--model", tmp_path / "none", "a"), MODEL, "there is no model folder", "emoglot train")
    check_error(run("predict", "--model", tmp_path, "a"), MODEL, "is no emoglot model")


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="there are no pseudo-terminals on this system")
def test_predict_does_not_wait_for_a_terminal(model_folder: Path) -> None:
    ours, theirs = os.openpty()
    try:
        arguments = command("predict", "--model", model_folder)
        finished = subprocess.run(arguments, stdin=theirs, capture_output=True, check=False, timeout=60)
    finally:
        os.close(ours)
        os.close(theirs)
    check_error(Result(finished.returncode, "", finished.stderr.decode()), USAGE, "no text", "--file")


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
    assert child.wait(timeout=60) in (0, 1)
    assert errors == b""


# train


@pytest.mark.filterwarnings("ignore:no row that chooses thresholds")
def test_train_then_predict(run: Run, table: Path, tmp_path: Path) -> None:
    out = tmp_path / "model"
    result = run("train", "--encoder", "tiny", "--train", table, "--out", out, *QUICK, "--seed", 3)
    assert (result.code, result.out) == (0, f"{out}\n")
    assert "epoch 1: loss" in result.err
    assert "epoch 2: loss" in result.err
    model = load(out)
    figures = model.metrics_["overall"]
    assert f"validation: macro-F1 {100 * figures['macro_f1']:.1f}" in result.err
    assert (model.config.head.hidden, model.config.training.seed, model.config.wide.enabled) == (8, 3, False)
    assert model.labels_ == ("anger", "fear", "joy", "love", "sadness")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    (record,) = run("predict", "--model", out, "--json", "so happy").records()
    assert record["scores"] == model.predict(["so happy"])[0].scores


@pytest.mark.filterwarnings("ignore:64 texts are in both")
def test_train_with_all_its_options(run: Run, table: Path, tmp_path: Path) -> None:
    (tmp_path / "quick.toml").write_text("[head]\nhidden = 4\nlayers = 1\n[training]\nmax_epochs = 9", encoding="utf-8")
    settings = ["--config", tmp_path / "quick.toml", "--set", "training.max_epochs=1", "--set", "wide.buckets=64"]
    columns = ["--format", "tsv", "--text-column", "text", "--labels-column", "labels", "--language-column", "language"]
    out = tmp_path / "deep" / "model"
    data = ["--train", table, "--train", table, "--validation", table]
    result = run("train", "--encoder", "tiny", "--wide", *data, "--out", out, *settings, *columns)
    assert result.code == 0, result.err
    config = load(out).config
    assert (config.head.hidden, config.training.max_epochs, config.wide.enabled, config.wide.buckets) == (
        4,
        1,
        True,
        64,
    )
    recorded = json.loads((out / "model.json").read_text(encoding="utf-8"))["training"]["data"]
    assert recorded["training"]["rows"] == 128
    assert recorded["stopping"]["rows"] + recorded["thresholding"]["rows"] == 64


def test_the_cache_is_where_it_is_asked_for(run: Run, table: Path, tmp_path: Path) -> None:
    arguments = ["train", "--encoder", "tiny", "--train", table, *QUICK, "--cache", tmp_path / "vectors"]
    assert run(*arguments, "--out", tmp_path / "model").code == 0
    assert len(list(tmp_path.glob("vectors/tiny-1-n*/*/vectors.npy"))) == 1


def test_an_existing_folder_is_refused_before_any_work(run: Run, model_folder: Path, tmp_path: Path) -> None:
    """Even the data file, which is not there, is not asked for."""
    folder = Path(shutil.copytree(model_folder, tmp_path / "model"))
    arguments = ["train", "--encoder", "nobody/has-this", "--train", tmp_path / "none.tsv", "--out"]
    check_error(run(*arguments, folder), USAGE, "exists already", "--overwrite")
    (folder / "notes.txt").write_text("mine", encoding="utf-8")
    check_error(run(*arguments, folder, "--overwrite"), MODEL, "nothing was overwritten")
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    check_error(run(*arguments, tmp_path / "file", "--overwrite"), MODEL, "nothing was overwritten")
    assert (folder / "notes.txt").read_text(encoding="utf-8") == "mine"


def test_overwriting(run: Run, model_folder: Path, table: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(model_folder, tmp_path / "model"))
    before = (folder / "weights.safetensors").read_bytes()
    result = run("train", "--encoder", "tiny", "--train", table, "--out", folder, "--overwrite", *QUICK)
    assert result.code == 0, result.err
    assert (folder / "weights.safetensors").read_bytes() != before
    assert not load(folder).config.wide.enabled


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("head.hidden", "a setting is written name=value"),
        ("=3", "a setting is written name=value"),
        ("head.hidden=big", "head.hidden must be of type int, got 'big'"),
        ("head.hidden=0", "head.hidden must be in"),
        ("head.colour=3", "there is no setting"),
        ("colour=3", "there is no setting"),
        ("loss.kind=hinge", "must be one of"),
    ],
)
def test_a_bad_setting(setting: str, message: str, run: Run, table: Path, tmp_path: Path) -> None:
    out = tmp_path / "model"
    check_error(run("train", "--encoder", "tiny", "--train", table, "--out", out, "--set", setting), USAGE, message)
    assert not out.exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "can't read the config"), (b"[head", "is not TOML"), (b"\xff", "is not TOML"), (b"x = 1", "no setting")],
)
def test_a_bad_config(content: bytes | None, message: str, run: Run, table: Path, tmp_path: Path) -> None:
    config = tmp_path / "settings.toml"
    if content is not None:
        config.write_bytes(content)
    arguments = ["--train", table, "--out", tmp_path / "model", "--config", config]
    check_error(run("train", "--encoder", "tiny", *arguments), USAGE, message)


def test_bad_data(run: Run, tmp_path: Path) -> None:
    arguments = ["train", "--encoder", "tiny", "--out", tmp_path / "model", "--train"]
    check_error(run(*arguments, tmp_path / "none.tsv"), DATA, "there is no file")
    (tmp_path / "empty.tsv").touch()
    check_error(run(*arguments, tmp_path / "empty.tsv"), DATA, "is empty")
    (tmp_path / "bare.tsv").write_text("text\tjoy\nso happy\t1\nso sad\t2\n", encoding="utf-8")
    check_error(run(*arguments, tmp_path / "bare.tsv"), DATA, "line 3", "--skip-bad")
    check_error(run(*arguments, tmp_path / "bare.tsv", "--text-column", "tweet"), DATA, "'tweet' is not")
    check_error(run(*arguments, tmp_path / "bare.tsv", "--format", "xml"), USAGE, "format must be one of")


def test_bad_lines_are_dropped_on_request(run: Run, table: Path, tmp_path: Path) -> None:
    spoilt = tmp_path / "spoilt.tsv"
    spoilt.write_bytes(table.read_bytes() + b"only one field\n" * 8)
    out = tmp_path / "model"
    result = run("train", "--encoder", "tiny", "--train", spoilt, "--out", out, *QUICK, "--skip-bad")
    assert result.code == 0
    warned = [line for line in result.err.splitlines() if line.startswith("warning: ")]
    assert warned[0] == "warning: dropped 8 malformed lines of 72:"
    assert len(warned) == 1 + 5
    assert warned[1].startswith("warning:   spoilt.tsv, line 66: ")


def test_an_encoder_that_is_not_there(run: Run, table: Path, tmp_path: Path) -> None:
    arguments = ["train", "--train", table, "--out", tmp_path / "model", "--encoder"]
    check_error(run(*arguments, "nobody/has-this"), ENCODER, "there is no encoder 'nobody/has-this'")
    check_error(run(*arguments, "e5-small"), ENCODER, "emoglot encoders install e5-small")
    assert not (tmp_path / "model").exists()


def test_nothing_to_learn(run: Run, tmp_path: Path) -> None:
    (tmp_path / "none.tsv").write_text(
        "text\tjoy\n" + "".join(f"so happy {row}\t0\n" for row in range(20)), encoding="utf-8"
    )
    arguments = ["--train", tmp_path / "none.tsv", "--out", tmp_path / "model"]
    check_error(run("train", "--encoder", "tiny", *arguments), TRAINING, "nothing to learn")
    assert not (tmp_path / "model").exists()


def test_a_folder_that_can_not_be_made(run: Run, table: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    arguments = ["--train", table, "--out", tmp_path / "file" / "model", *QUICK]
    result = run("train", "--encoder", "tiny", *arguments)
    check_error(
        result, USAGE, f"{tmp_path / 'file'} is not a folder that we may write to"
    )  # before anything is encoded


def test_a_warning_is_one_line(table: Path, tmp_path: Path) -> None:
    labels = "anger,fear,joy,love,sadness,trust"
    arguments = ["--train", table, "--label-columns", labels, "--labels-column", "labels", *QUICK]
    finished = shell("train", "--encoder", "tiny", *arguments, "--out", tmp_path / "model")
    assert finished.returncode == 0, finished.stderr
    warned = [line for line in finished.stderr.decode().splitlines() if "trust" in line]
    assert warned == ["warning: no training row is labelled trust: expect no such prediction"]
    assert load(tmp_path / "model").labels_[-1] == "trust"


def test_an_interruption(table: Path, tmp_path: Path) -> None:
    """Ctrl-C in the middle of training ends with 130, no traceback and no half model."""
    arguments = ["--train", table, "--out", tmp_path / "model", "--set", "training.max_epochs=100000"]
    patient = ["--set", "training.patience=100000", "--set", "head.hidden=8"]
    child = subprocess.Popen(
        command("train", "--encoder", "tiny", *arguments, *patient), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert child.stderr is not None
    seen = b""
    deadline = time.monotonic() + 60
    while b"epoch 2" not in seen and time.monotonic() < deadline:
        seen += child.stderr.readline()
    child.send_signal(signal.SIGINT)
    out, rest = child.communicate(timeout=60)
    assert b"epoch 2" in seen
    assert (child.returncode, out) == (130, b"")
    assert b"Traceback" not in rest
    assert not (tmp_path / "model").exists()


# evaluate


def test_evaluate(run: Run, model_folder: Path, table: Path) -> None:
    expected = evaluate_model(load(model_folder), read(table))
    as_json = run("evaluate", "--model", model_folder, "--data", table, "--json")
    assert json.loads(as_json.out) == json.loads(json.dumps(asdict(expected)))
    assert (as_json.code, as_json.err) == (0, "")
    as_table = run("evaluate", "--model", model_folder, "--data", table)
    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in as_table.out.splitlines() if "│" in line]
    for name, metrics in {**expected.languages, "all": expected.overall}.items():
        figures = (metrics.macro_f1, metrics.micro_f1, metrics.jaccard)
        assert [name, str(metrics.rows), *(f"{100 * figure:.1f}" for figure in figures)] in cells
    for name, entry in expected.overall.per_class.items():
        figures = (entry.precision, entry.recall, entry.f1)
        assert [name, str(entry.support), *(f"{100 * figure:.1f}" for figure in figures)] in cells


def test_evaluate_on_several_files(run: Run, model_folder: Path, table: Path) -> None:
    once = json.loads(run("evaluate", "--model", model_folder, "--data", table, "--json").out)
    twice = json.loads(run("evaluate", "--model", model_folder, "--data", table, "--data", table, "--json").out)
    assert twice["overall"]["rows"] == 2 * once["overall"]["rows"] == 128
    assert twice["overall"]["macro_f1"] == once["overall"]["macro_f1"]


def test_evaluate_refuses(run: Run, model_folder: Path, table: Path, tmp_path: Path) -> None:
    check_error(run("evaluate", "--model", model_folder, "--data", tmp_path / "none.tsv"), DATA, "there is no file")
    check_error(run("evaluate", "--model", tmp_path / "none", "--data", table), MODEL, "there is no model folder")
    (tmp_path / "other.tsv").write_text("text\tboredom\nso dull\t1\n", encoding="utf-8")
    check_error(run("evaluate", "--model", model_folder, "--data", tmp_path / "other.tsv"), DATA, "got boredom")


# recipes


def write_recipe(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


@pytest.mark.filterwarnings("ignore:no row that chooses thresholds")
def test_train_by_a_recipe(run: Run, table: Path, tmp_path: Path) -> None:
    entries = [
        '[[data.train]]\npath = "*.tsv"\nwithout_share = 0.25',
        '[[data.validation]]\npath = "*.tsv"\nonly_share = 0.25',
    ]
    recipe = write_recipe(tmp_path / "recipe.toml", *entries, "[head]", "hidden = 4")
    out = tmp_path / "model"
    arguments = ["train", "--encoder", "tiny", "--config", recipe, "--out", out, "--set", "training.max_epochs=1"]
    result = run(*arguments, "--data", table.parent)
    assert (result.code, result.out) == (0, f"{out}\n"), result.err
    assert load(out).config.head.hidden == 4
    recorded = json.loads((out / "model.json").read_text(encoding="utf-8"))["training"]["data"]
    assert recorded["training"]["rows"] == 48
    assert recorded["stopping"]["rows"] + recorded["thresholding"]["rows"] == 16


def test_a_recipe_that_can_not_be_followed(run: Run, table: Path, tmp_path: Path) -> None:
    arguments = ["train", "--encoder", "tiny", "--out", tmp_path / "model"]
    check_error(run(*arguments), USAGE, "no training data", "--train", "[[data.train]]")
    settings = write_recipe(tmp_path / "settings.toml", "[head]", "hidden = 4")
    check_error(run(*arguments, "--config", settings), USAGE, "no training data")
    recipe = write_recipe(tmp_path / "recipe.toml", "[[data.train]]", 'path = "*.tsv"')
    check_error(run(*arguments, "--config", recipe, "--data", tmp_path), DATA, "there is no file *.tsv", "--data")
    broken = write_recipe(tmp_path / "broken.toml", "[[data.train]]", "colour = 3")
    check_error(run(*arguments, "--config", broken, "--data", table.parent), USAGE, "has a path")


# calibrate


def test_calibrate(run: Run, model_folder: Path, table: Path, tmp_path: Path) -> None:
    out, pooled = tmp_path / "model", tmp_path / "pooled"
    result = run("calibrate", "--model", model_folder, "--data", table, "--out", out)
    assert (result.code, result.out) == (0, f"{out}\n"), result.err
    assert "thresholds for ar, en, es, chosen on 64 rows" in result.err
    expected = calibrate(load(model_folder), read(table))
    found = load(out).state.language_thresholds
    assert {name: values.tolist() for name, values in found.items()} == {
        name: values.tolist() for name, values in expected.state.language_thresholds.items()
    }
    (record,) = run("predict", "--model", out, "--json", "--language", "es", "so happy").records()
    assert record == json.loads(json.dumps({"text": "so happy", **asdict(expected.predict(["so happy"], "es")[0])}))
    recipe = write_recipe(tmp_path / "recipe.toml", "[[data.calibration]]", 'path = "*.tsv"')
    by_recipe = ["--recipe", recipe, "--root", table.parent, "--pooled"]
    assert run("calibrate", "--model", model_folder, *by_recipe, "--out", pooled).code == 0
    assert load(pooled).state.language_thresholds == {}


def test_calibrate_refuses(run: Run, model_folder: Path, table: Path, tmp_path: Path) -> None:
    arguments = ["calibrate", "--model", model_folder, "--out"]
    check_error(run(*arguments, tmp_path / "model"), USAGE, "no data", "--data")
    check_error(run(*arguments, model_folder, "--data", table), USAGE, "exists already")
    check_error(run(*arguments, tmp_path / "model", "--data", tmp_path / "none.tsv"), DATA, "there is no file")
    other = ["calibrate", "--model", tmp_path / "none", "--data", table, "--out", tmp_path / "model"]
    check_error(run(*other), MODEL, "there is no model folder")
    (tmp_path / "other.tsv").write_text("text\tboredom\nso dull\t1\n", encoding="utf-8")
    check_error(
        run(*arguments, tmp_path / "model", "--data", tmp_path / "other.tsv"), DATA, "names none of the model's labels"
    )
    assert not (tmp_path / "model").exists()


# distill


@pytest.fixture
def translations(tmp_path: Path, dataset: Dataset) -> Path:
    """Our English sentences, and the same in letters of another script."""
    folder = tmp_path / "translations"
    folder.mkdir()
    english = [text for text, code in zip(dataset.texts, dataset.languages, strict=True) if code == "en"]
    georgian = {letter: chr(0x10D0 + number) for number, letter in enumerate("abcdefghijklmnopqrstuvwxyz")}
    lines = [f"{text}\t{''.join(georgian.get(letter, letter) for letter in text.lower())}" for text in english]
    (folder / "xg.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def test_distill_adds_a_language(run: Run, translations: Path, xlmr_folder: Path, tmp_path: Path) -> None:
    more = tmp_path / "more"
    base = export_encoder(HubEncoder("base", source=xlmr_folder), tmp_path / "base", "base", "int8")
    lines = (translations / "xg.tsv").read_text(encoding="utf-8").splitlines()
    path = tmp_path / "xc.tsv"
    path.write_text("\n".join([*lines, "no tab"]) + "\n", encoding="utf-8")
    extend = ["distill", "--extend", base, "--parallel", path, "--out", more, "--set", "epochs=1"]
    check_error(run(*extend), DATA, "xc.tsv, line 25", "--skip-bad")
    result = run(*extend, "--skip-bad")
    assert (result.code, result.out) == (0, f"{more}\n"), result.err
    assert "dropped 1 malformed lines of 25" in result.err
    assert load_encoder(base).fingerprint in extended_fingerprints(load_encoder(more))


def test_distill_refuses(run: Run, translations: Path, tmp_path: Path) -> None:
    arguments = ["distill", "--parallel", translations, "--out", tmp_path / "out"]
    check_error(run(*arguments, "--extend", "tiny"), USAGE, "'tiny' is none")
    check_error(run(*arguments, "--extend", "nobody/has-this"), ENCODER, "no encoder")
    check_error(run(*arguments, "--extend", "tiny", "--set", "colour=3"), USAGE, "there is no setting")
    for left_out in ("--extend", "--parallel"):  # the parser says so itself
        given = {"--extend": "tiny", "--parallel": translations, "--out": tmp_path / "out"}
        del given[left_out]
        result = run("distill", *(part for pair in given.items() for part in pair))
        assert result.code == USAGE
        assert left_out in result.err
    check_error(
        run("distill", "--extend", "tiny", "--parallel", translations, "--out", translations), USAGE, "exists already"
    )
    missing = ["distill", "--extend", "tiny", "--parallel", tmp_path / "none.tsv", "--out", tmp_path / "out"]
    check_error(run(*missing), DATA, "there is no file of translations")
    assert not (tmp_path / "out").exists()


# project


def test_project_then_read(run: Run, model_folder: Path, translations: Path, tmp_path: Path) -> None:
    out = tmp_path / "projected.csv"
    arguments = ["project", "--model", model_folder, "--parallel", translations, "--out", out]
    result = run(*arguments, "--per-language", 10)
    assert (result.code, result.out) == (0, f"{out}\n"), result.err
    data = read(out)
    assert f"{len(data)} texts in 1 languages" in result.err
    assert set(data.languages) == {"xg"}
    assert 0 < len(data) <= 10
    assert data.labels == load(model_folder).labels_
    check_error(run(*arguments), USAGE, "exists already")
    out.unlink()
    check_error(run(*arguments, "--encoder", "nobody/has-this"), ENCODER, "no encoder")
    check_error(run("project", "--model", tmp_path / "none", *arguments[3:]), MODEL, "there is no model folder")
    missing = ["project", "--model", model_folder, "--parallel", tmp_path / "none.tsv", "--out", out]
    check_error(run(*missing), DATA, "there is no file of translations")
    assert run(*arguments, "--per-language", 1).code == USAGE
    assert not out.exists()


# languages


def test_languages(run: Run, model_folder: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(model_folder, tmp_path / "model"))
    check_error(run("languages", "--model", folder), MODEL, "has no languages.json")
    listed = [
        Language("sw", "Swahili", False, 0.457, 1200, 0.61, 300),
        Language("gn", "Guarani", True, None, 0, 0.3, 9),
    ]
    write_languages(listed, folder)
    assert json.loads(run("languages", "--model", folder, "--json").out) == [asdict(language) for language in listed]
    shown = run("languages", "--model", folder)
    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in shown.out.splitlines() if "│" in line]
    assert ["sw", "Swahili", "46", "1200", "0.61", "300", ""] in cells
    assert ["gn", "Guarani", "", "", "0.30", "9", "weak"] in cells
    assert "2 languages, 1 of them weak" in shown.err
    (folder / "languages.json").write_text('[{"code": "sw"}]', encoding="utf-8")
    check_error(run("languages", "--model", folder), MODEL, "is damaged")


# encoders


def test_encoders(run: Run) -> None:
    expected = [asdict(info) for info in list_encoders()]
    assert json.loads(run("encoders", "--json").out) == expected
    shown = run("encoders")
    assert shown.code == 0
    assert all(info["name"] in shown.out for info in expected)


def test_names_and_commands_of_encoders_survive_a_narrow_window(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)  # so that hints name an extra
    shown = run("encoders").out
    assert "…" not in shown
    cells = [line.split("│")[1].strip() for line in shown.splitlines() if line.startswith("│")]
    for info in list_encoders():
        place = cells.index(info.name)
        assert cells[place + 1] == info.hint
    assert "needs pip install 'emoglot[hub]'" in cells


def test_encoders_install_refuses(run: Run, tmp_path: Path) -> None:
    check_error(run("encoders", "install", "xlm-roberta-large"), USAGE, "only e5-small is installed this way")
    check_error(run("encoders", "install", "tiny"), USAGE, "got 'tiny'")
    install = ["encoders", "install", "e5-small"]
    check_error(run(*install, "--quantize", "int4"), USAGE, "one of none, int8, got 'int4'")
    source = tmp_path / "some.whl"
    check_error(run(*install, "--from", source), ENCODER, "can't read", "some.whl")
    source.write_bytes(b"something else")
    check_error(run(*install, "--from", source), ENCODER, "must have 71,622,400 bytes and the sha256")


def test_encoders_export_refuses(run: Run, tmp_path: Path) -> None:
    """What can't be meant is refused before the encoder, which is not there, is asked for."""
    export = ["encoders", "export", "nobody/has-this"]
    check_error(run(*export, "--quantize", "int4"), USAGE, "one of none, int8, got 'int4'")
    check_error(run(*export, "--out", tmp_path), USAGE, "exists already")
    check_error(run(*export), ENCODER, "there is no encoder")
    check_error(run("encoders", "export", "tiny"), ENCODER, "runs without torch already")


def test_encoders_export(run: Run, xlmr_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From export, through the cache, to a name that other commands know."""
    monkeypatch.setenv("EMOGLOT_CACHE", str(tmp_path / "cache"))
    result = run("encoders", "export", xlmr_folder, "--quantize", "int8")
    name = f"{xlmr_folder.name}-int8"
    assert (result.code, result.out) == (0, f"{tmp_path / 'cache' / 'encoders' / name}\n")
    assert f"use it as --encoder {name}" in result.err
    listed = {info["name"]: info for info in json.loads(run("encoders", "--json").out)}
    assert listed[name]["installed"]
    check_error(run("encoders", "export", name), ENCODER, "runs without torch already")
    check_error(run("encoders", "export", xlmr_folder, "--quantize", "int8"), USAGE, "exists already")


@pytest.mark.filterwarnings("ignore:no row that chooses thresholds", "ignore:.* texts are in both")
def test_a_label_that_a_file_never_names_is_absent_there_not_unknown(run: Run, table: Path, tmp_path: Path) -> None:
    """What the model knows, a file with a column of names could have said."""
    out = tmp_path / "model"
    assert run("train", "--encoder", "tiny", "--train", table, "--out", out, *QUICK).code == 0
    header, *rows = table.read_text(encoding="utf-8").splitlines()
    without = [row for row in rows if "love" not in row.split("\t")[-1]]
    data = tmp_path / "without-love.tsv"
    data.write_text("\n".join([header, *without]) + "\n", encoding="utf-8")
    measured = run("evaluate", "--model", out, "--data", data, "--json")
    assert json.loads(measured.out)["overall"]["per_class"]["love"]["support"] == 0
    assert "no row has love, which counts as an answer" in measured.err
    loud = tmp_path / "loud.tsv"
    loud.write_text("\n".join([header, *(row.upper() for row in rows)]) + "\n", encoding="utf-8")
    for command in (("evaluate",), ("calibrate", "--out", tmp_path / "loud")):
        check_error(run(*command, "--model", out, "--data", loud), DATA, "names none of the model's labels")
    loud.write_text("\n".join([header, *rows, rows[0].replace("\tjoy", "\tLOVE,joy")]) + "\n", encoding="utf-8")
    assert "the model has no label LOVE: left out" in run("evaluate", "--model", out, "--data", loud).err
    result = run(
        "train", "--encoder", "tiny", "--train", table, "--validation", data, "--out", tmp_path / "two", *QUICK
    )
    assert result.code == 0
    recorded = json.loads((tmp_path / "two" / "model.json").read_text(encoding="utf-8"))["training"]["data"]
    assert recorded["stopping"]["known"]["love"] == recorded["stopping"]["rows"]


@pytest.fixture
def held_out(dataset: Dataset, tmp_path: Path) -> Path:
    return write_table(
        tmp_path / "held_out.tsv", replace(dataset, texts=tuple(f"well {text}" for text in dataset.texts))
    )


@pytest.mark.filterwarnings("ignore:no row that chooses thresholds")
def test_train_with_a_teacher_and_translations(
    run: Run, model_folder: Path, table: Path, held_out: Path, translations: Path, tmp_path: Path
) -> None:
    out = tmp_path / "student"
    data = ["--train", table, "--validation", held_out, "--parallel", translations]
    arguments = ["train", "--encoder", "tiny", "--teacher", model_folder, *data, "--out", out, *QUICK]
    result = run(*arguments)
    assert (result.code, result.out) == (0, f"{out}\n"), result.err
    recorded = json.loads((out / "model.json").read_text(encoding="utf-8"))["training"]["data"]["training"]
    assert recorded["rows"] > 64  # translations, beside what is labelled
    assert list(tmp_path.glob("student.lessons/*/*.npy"))


def test_a_student_without_validation_or_translations_without_a_teacher_are_refused_at_once(
    run: Run, model_folder: Path, table: Path, translations: Path, tmp_path: Path
) -> None:
    arguments = ["train", "--encoder", "tiny", "--train", table, "--out", tmp_path / "student"]
    check_error(run(*arguments, "--teacher", model_folder), USAGE, "give --validation")
    check_error(run(*arguments, "--parallel", translations), USAGE, "name one with --teacher")
    assert not list(tmp_path.glob("student*"))


@pytest.mark.filterwarnings("ignore:no row that chooses thresholds")
def test_train_on_permissive_data(run: Run, table: Path, dataset: Dataset, tmp_path: Path) -> None:
    write_table(tmp_path / "free.tsv", replace(dataset, texts=tuple(f"free {text}" for text in dataset.texts)))
    shutil.copy(table, tmp_path / "bound.tsv")
    entries = [
        '[[data.train]]\npath = "free.tsv"\npermissive = true\n[[data.train]]\npath = "bound.tsv"',
        "[training]\nmax_epochs = 1\n[training.single_choice]\nbound = 0.5\n[head]\nhidden = 4",
    ]
    recipe = write_recipe(tmp_path / "recipe.toml", *entries)
    arguments = ["train", "--encoder", "tiny", "--data", tmp_path, "--out", tmp_path / "model", "--permissive"]
    result = run(*arguments, "--config", recipe)
    assert result.code == 0, result.err
    data = json.loads((tmp_path / "model" / "model.json").read_text(encoding="utf-8"))["training"]["data"]
    assert sum(part["rows"] for part in data.values()) == 64
    check_error(run(*arguments, "--overwrite", "--train", table), USAGE, "--permissive needs a --config")


def test_calibrate_for_a_domain(run: Run, model_folder: Path, table: Path, tmp_path: Path) -> None:
    arguments = ["calibrate", "--model", model_folder, "--data", table, "--domain", "posts"]
    result = run(*arguments, "--pooled", "--least-precision", 1, "--out", tmp_path / "model")
    assert "thresholds for any language of posts, chosen on 64 rows" in result.err
    state = load(tmp_path / "model").state
    assert set(state.language_thresholds) == {"und-x-posts"}
    model = ["--model", tmp_path / "model", "--json"]
    for more, domain in (([], None), (["--domain", "posts"], "posts")):
        found = json.loads(run("evaluate", *model, "--data", table, *more).out)
        assert found == json.loads(json.dumps(asdict(evaluate_model(load(tmp_path / "model"), read(table), domain))))
    (record,) = run("predict", *model, "--language", "en-x-posts", "so happy").records()
    cuts = zip(state.labels, state.language_thresholds["und-x-posts"], strict=True)
    assert record["labels"] == [name for name, cut in cuts if record["scores"][name] >= cut]
