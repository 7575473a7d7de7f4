"""The help of every command: complete, in sentences, without the types of Python, within 80 columns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import typer
from typer.core import TyperArgument
from typer.testing import CliRunner

from emoglot import __version__
from emoglot.cli import app
from tests.cli.harness import USAGE, Result, Run, shell

WIDTH = 80
# What rich or typer would print of an annotation: <bool>, <list[Path]>, <int range>.
TYPE_NAMES = re.compile(r"<[a-z]+(\[\w+\]| range)?>")


def find_commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield path, command
    for name, below in getattr(command, "commands", {}).items():
        yield from find_commands(below, (*path, name))


COMMANDS = dict(find_commands(typer.main.get_command(app)))
everywhere = pytest.mark.parametrize("path", COMMANDS, ids=lambda path: " ".join(path) or "emoglot")


def help_of(path: tuple[str, ...], flag: str = "--help") -> str:
    result = CliRunner(env={"COLUMNS": str(WIDTH), "TERMINAL_WIDTH": str(WIDTH)}).invoke(app, [*path, flag])
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout


def test_all_commands_are_found() -> None:
    names = {" ".join(path) for path in COMMANDS}
    assert {"predict", "score", "train", "thresholds", "doctor", "serve", "encoders", "encoders shrink"} <= names
    assert "calibrate" not in names


@everywhere
def test_help_fits_80_columns_and_shows_no_type_of_python(path: tuple[str, ...]) -> None:
    shown = help_of(path)
    assert shown == help_of(path, "-h")
    assert shown.startswith("Usage: ")
    assert max(map(len, shown.splitlines())) <= WIDTH
    assert not TYPE_NAMES.search(shown)
    assert not re.search(r"[{}]", shown.splitlines()[0])


@everywhere
def test_every_command_and_option_is_explained_in_sentences(path: tuple[str, ...]) -> None:
    command = COMMANDS[path]
    sentences = {"the command": command.help or ""}
    sentences |= {param.name: param.help or "" for param in command.params}
    for name, sentence in sentences.items():
        assert re.match(r"[A-Z0-9`]|none|local|csv", sentence), name
        if name != "the command" or path:  # the root ends with an example
            assert sentence.rstrip().endswith("."), name


@everywhere
def test_every_option_with_a_value_names_it_in_capitals(path: tuple[str, ...]) -> None:
    for param in COMMANDS[path].params:
        if not getattr(param, "is_flag", False):
            assert re.fullmatch(r"[A-Z]+(=[A-Z]+|[.]{3} [A-Z]+)?", param.metavar), param.name


@pytest.mark.parametrize("path", [path for path, command in COMMANDS.items() if hasattr(command, "commands")], ids=str)
def test_a_list_of_commands_cuts_no_sentence_short(path: tuple[str, ...]) -> None:
    listed = help_of(path).partition("Commands:")[2]
    cut = [line.split()[0] for line in listed.splitlines() if line.endswith("...")]
    assert not cut


def test_options_stand_in_sections() -> None:
    shown = help_of(("train",))
    titles = re.findall(r"^(\w.*):$", shown, re.MULTILINE)
    assert titles == ["Options", "Data", "Settings", "How data files are read"]
    assert shown.index("Data:") < shown.index("--train FILE") < shown.index("Settings:") < shown.index("--seed N")


def test_an_option_has_one_meaning_in_all_commands() -> None:
    meanings: dict[str, set[str]] = {}
    for command in COMMANDS.values():
        for param in command.params:
            if not isinstance(param, TyperArgument) and param.opts[0] in ("--data", "--root", "--config", "--set"):
                meanings.setdefault(param.opts[0], set()).add(param.metavar)
    assert meanings == {"--data": {"FILE"}, "--root": {"DIR"}, "--config": {"FILE"}, "--set": {"NAME=VALUE"}}


def test_the_version(run: Run) -> None:
    assert run("--version") == Result(0, f"{__version__}\n", "")


@pytest.mark.parametrize(
    "arguments", [("sing",), ("train",), ("predict", "--model"), ("encoders", "sing"), ("--loud",)]
)
def test_what_typer_refuses(arguments: tuple[str, ...], run: Run) -> None:
    result = run(*arguments)
    assert (result.code, result.out) == (USAGE, "")
    assert "Error" in result.err
    assert "Traceback" not in result.err


@pytest.mark.parametrize(("typed", "completed"), [("pre", "predict"), ("predict --expl", "--explain")])
def test_the_shell_completes(typed: str, completed: str) -> None:
    words = f"emoglot {typed}"
    asked = {"_EMOGLOT_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    assert shell(**asked).stdout.decode().split() == [completed]
    assert "--install-completion" in help_of(())
