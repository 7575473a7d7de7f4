"""The commands and Python blocks of README and the documentation: found, run, compared.

`python -m tests.docs_blocks` runs all pages again and writes what the commands print into them (`make docs-outputs`).
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
RUNNABLE = ("console", "pycon", "python")
# A fence is indented where it is part of a list or a note.
BLOCK = re.compile(
    r"(?:^[ ]*<!-- not run: (?P<reason>[^\n]+?) -->\n)?"
    r"^(?P<indent>[ ]*)```(?P<kind>\w+)[^\n]*\n(?P<body>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
# Scores differ in their last digits between processors, so decimals are not compared; nor is the padding around them.
MASKS = ((re.compile(r"\d+\.\d+(e-\d+)?"), "#"), (re.compile(r"[ \t]+"), " "), (re.compile(r"[─━]+"), "-"))

# What `emoglot score` says on a slow machine where there is no bar.
PROGRESS = re.compile(r"^\d+ of \d+: .*\n", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page; `reason` says why it is not run."""

    page: Path
    line: int
    kind: str
    body: str
    reason: str | None

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


@dataclass(frozen=True)
class Command:
    """A command of a console block, with what the page says that it prints."""

    text: str
    expected: str


def pages() -> list[Path]:
    """List the pages whose blocks are run."""
    docs = ROOT / "docs"
    return [
        ROOT / "README.md",
        docs / "start.md",
        docs / "faq.md",
        *sorted((docs / "tutorials").glob("*.md")),
        *sorted((docs / "howto").glob("*.md")),
    ]


def find_blocks(page: Path) -> Iterator[Block]:
    """Yield the blocks of a page that could be run."""
    text = page.read_text(encoding="utf-8")
    for match in BLOCK.finditer(text):
        if match["kind"] in RUNNABLE:
            indent = match["indent"]
            body = re.sub(rf"^{indent}", "", match["body"], flags=re.MULTILINE) if indent else match["body"]
            yield Block(page, text.count("\n", 0, match.start("body")), match["kind"], body, match["reason"])


def split_commands(body: str) -> list[Command]:
    """Split a console block into commands, each followed by its output; a command goes on after a backslash."""
    commands: list[Command] = []
    lines = iter(body.splitlines())
    for line in lines:
        if line.startswith("$ "):
            text = line[2:]
            while text.endswith("\\"):
                text += "\n" + next(lines)
            commands.append(Command(text, ""))
        else:
            last = commands.pop()
            commands.append(Command(last.text, f"{last.expected}{line}\n"))
    return commands


def masked(text: str) -> str:
    """Return a text without what may differ between machines."""
    for pattern, replacement in MASKS:
        text = pattern.sub(replacement, text)
    return "\n".join(line.strip() for line in text.strip().splitlines())


def agrees(expected: str, printed: str) -> bool:
    """Compare an output with that of the page, in which … stands for anything."""
    pattern = ".*".join(re.escape(part) for part in masked(expected).split("…"))
    return re.fullmatch(pattern, masked(printed), re.DOTALL) is not None


class Session:
    """A folder with the examples, in which the blocks of a page are run one after another."""

    def __init__(self, folder: Path, *, exact: bool = False) -> None:
        self.folder = folder
        self.exact = exact  # whether an output of the page is kept only if it is the same, decimals included
        self.namespace: dict[str, Any] = {"__name__": "__main__"}
        shutil.copytree(ROOT / "examples", folder / "examples")
        program = folder / ".bin" / "emoglot"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m emoglot "$@"\n', encoding="utf-8")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        path = os.pathsep.join([str(program.parent), str(Path(sys.executable).parent), os.environ["PATH"]])
        source = os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH")]))
        self.environment = os.environ | {
            "PATH": path, "PYTHONPATH": source, "COLUMNS": "100", "OMP_NUM_THREADS": "1", "NO_COLOR": "1",
            "EMOGLOT_CACHE": str(folder / ".cache"),
        }  # fmt: skip

    def run_command(self, text: str) -> str:
        """Run a command in bash and return what it printed: its results, then its messages."""
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", text],
            cwd=self.folder, env=self.environment, capture_output=True, check=False,
        )  # fmt: skip
        printed = done.stdout.decode("utf-8") + PROGRESS.sub("", done.stderr.decode("utf-8"))
        if done.returncode not in (0, 141):  # 141: `head` read enough
            raise AssertionError(f"$ {text}\nended with {done.returncode}:\n{printed}")
        return printed

    def run(self, block: Block) -> str:
        """Run a block and return it with what it really printed."""
        if block.kind == "console":
            return "".join(f"$ {command.text}\n{self._printed(command)}" for command in split_commands(block.body))
        with _chdir(self.folder):
            if block.kind == "pycon":
                return self._run_examples(block)
            exec(compile(block.body, block.place, "exec"), self.namespace)
        return block.body

    def _printed(self, command: Command) -> str:
        """Return the page's output where it agrees, and otherwise what was printed."""
        printed = self.run_command(command.text)
        if self._is_kept(command.expected, printed):
            return command.expected
        return "".join(f"{line.rstrip()}\n" for line in printed.splitlines())

    def _is_kept(self, expected: str, printed: str) -> bool:
        # An output with … was shortened by hand.
        return agrees(expected, printed) and (not self.exact or "…" in expected)

    def _run_examples(self, block: Block) -> str:
        written = []
        for example in doctest.DocTestParser().get_examples(block.body):
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                exec(compile(example.source, block.place, "single"), self.namespace)
            same = self._is_kept(example.want, printed.getvalue())
            first, *more = example.source.splitlines()
            source = "".join([f">>> {first}\n", *(f"... {line}\n" for line in more)])
            written.append(source + (example.want if same else printed.getvalue()))
        return "".join(written)


@contextlib.contextmanager
def _chdir(folder: Path) -> Iterator[None]:
    """Stand in for contextlib.chdir, which Python 3.10 lacks."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def write_outputs(page: Path) -> None:
    """Run a page and replace the outputs in it that are not the same any more."""
    with tempfile.TemporaryDirectory() as scratch:
        session = Session(Path(scratch), exact=True)
        text = page.read_text(encoding="utf-8")
        for block in find_blocks(page):
            if block.reason is None:
                text = text.replace(block.body, session.run(block), 1)
    page.write_text(text, encoding="utf-8")


def main(names: list[str]) -> None:
    """Write the outputs of the named pages, or of all."""
    for page in [Path(name).resolve() for name in names] or pages():
        write_outputs(page)
        print(page.relative_to(ROOT))


if __name__ == "__main__":
    main(sys.argv[1:])
