"""What `emoglot train` refuses: settings, configs, data, encoders and folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.harness import DATA, ENCODER, QUICK, TRAINING, USAGE, Run, check_error, write_recipe


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("head.hidden", "a setting must have the form name=value"),
        ("=3", "a setting must have the form name=value"),
        ("head.hidden=big", "head.hidden must be a whole number, got 'big'"),
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
    [(None, "cannot read the config"), (b"[head", "is not TOML"), (b"\xff", "is not TOML"), (b"x = 1", "no setting")],
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
    check_error(run("train", "--encoder", "tiny", *arguments), TRAINING, "at least one training row must have a label")
    assert not (tmp_path / "model").exists()


def test_a_folder_that_can_not_be_made(run: Run, table: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    arguments = ["--train", table, "--out", tmp_path / "file" / "model", *QUICK]
    result = run("train", "--encoder", "tiny", *arguments)
    check_error(result, USAGE, f"{tmp_path / 'file'} is not a writable folder")  # before anything is encoded


def test_a_recipe_that_can_not_be_followed(run: Run, table: Path, tmp_path: Path) -> None:
    arguments = ["train", "--encoder", "tiny", "--out", tmp_path / "model"]
    check_error(run(*arguments), USAGE, "no training data", "--train", "[[data.train]]")
    settings = write_recipe(tmp_path / "settings.toml", "[head]", "hidden = 4")
    check_error(run(*arguments, "--config", settings), USAGE, "no training data")
    recipe = write_recipe(tmp_path / "recipe.toml", "[[data.train]]", 'path = "*.tsv"')
    check_error(run(*arguments, "--config", recipe, "--root", tmp_path), DATA, "there is no file *.tsv", "--root")
    broken = write_recipe(tmp_path / "broken.toml", "[[data.train]]", "colour = 3")
    refused = run(*arguments, "--config", broken, "--root", table.parent)
    check_error(refused, USAGE, "an entry of [[data.train]] is invalid", "colour")


def test_a_student_without_validation_or_translations_without_a_teacher_are_refused_at_once(
    run: Run, model_folder: Path, table: Path, translations: Path, tmp_path: Path
) -> None:
    arguments = ["train", "--encoder", "tiny", "--train", table, "--out", tmp_path / "student"]
    check_error(run(*arguments, "--teacher", model_folder), USAGE, "use --validation")
    check_error(run(*arguments, "--parallel", translations), USAGE, "use --teacher")
    assert not list(tmp_path.glob("student*"))
