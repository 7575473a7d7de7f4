"""Disks that fail: every call that writes is made to fail once, and nothing may be lost or half written.

    LD_PRELOAD=faults.so python -m tests.hostile.faults MODEL SCRATCH [--all]

For each way of writing, the first such call fails, then the second, and so on until all have; see `faults.c`. Without
--all, errors take turns, and fewer formats are written.
"""

from __future__ import annotations

import ctypes
import errno
import itertools
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from emoglot import load
from emoglot.batch import window
from emoglot.errors import EmoglotError
from emoglot.files import write_whole
from tests.batch.helpers import ROWS, run, write

SHORT = 0  # a write that writes less than it was given
KINDS = {errno.ENOSPC: "ENOSPC", errno.EIO: "EIO", SHORT: "short"}
SOURCE = Path(__file__).with_suffix(".c")
ROOT = SOURCE.parents[2]


def compile_shim(folder: Path) -> Path | None:
    """Compile what makes calls fail; None where that is not possible."""
    compiler = shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        return None
    shim = folder / "faults.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", shim, SOURCE, "-ldl"], check=True)
    return shim


def attack(shim: Path, model: Path, scratch: Path, *options: str) -> dict[str, int]:
    """Return how many faults of each kind happened, in a process of their own."""
    command = [sys.executable, "-m", "tests.hostile.faults", str(model), str(scratch), *options]
    loaded = {**os.environ, "LD_PRELOAD": str(shim)}
    done = subprocess.run(command, cwd=ROOT, env=loaded, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return dict(json.loads(done.stdout))


@dataclass(frozen=True)
class Case:
    """Something that writes into a folder, and how to do so again after a failure."""

    name: str
    write: Callable[[Path], object]
    again: Callable[[Path], object]
    before: Callable[[Path], object] = lambda folder: None
    replaces: str = ""  # a file or folder that must be the old one or the new one


def make_cases(model: Path, sources: Path) -> list[Case]:
    loaded = load(model)

    def score(source: str, target: str) -> Case:
        return Case(
            f"{source} to {target}",
            lambda folder: run(sources / source, folder / target, model),
            lambda folder: run(sources / source, folder / target, model, resume=(folder / f"{target}.parts").exists()),
            replaces=target,
        )

    def old_model(folder: Path) -> None:
        shutil.copytree(model, folder / "model")
        (folder / "model" / "README.md").write_text("# The old one\n", encoding="utf-8")

    def save(folder: Path) -> None:
        loaded.save(folder / "model")

    def old_text(folder: Path) -> None:
        (folder / "text").write_text("old", encoding="utf-8")

    def text(folder: Path) -> None:
        write_whole(folder / "text", "new" * 10_000)

    return [
        score("in.csv", "out.csv"),
        Case("a model", save, save, old_model, "model"),
        Case("a text", text, text, old_text, "text"),
        score("in.jsonl", "out.jsonl.gz"),
        score("in.parquet", "out.parquet"),
    ]


def write_sources(folder: Path) -> None:
    for name in ("in.csv", "in.jsonl", "in.parquet"):
        write(folder / name, ROWS)
    with (folder / "in.csv").open("ab") as file:
        file.write(b"bad\n")
    with (folder / "in.jsonl").open("ab") as file:
        file.write(b"[]\n")


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def part(found: dict[str, bytes], name: str) -> dict[str, bytes]:
    return {path: data for path, data in found.items() if path == name or path.startswith(f"{name}/")}


def check_fault(case: Case, expected: dict[str, bytes], folder: Path, error: int, nth: int) -> bool:
    """Make one call fail; return False if there are not so many."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    case.before(folder)
    old = contents(folder)
    shim = ctypes.CDLL(None)
    shim.fault_arm(os.fsencode(folder), error, nth)
    failure = None
    try:
        case.write(folder)
    except (OSError, EmoglotError) as caught:
        failure = caught
    finally:
        has_happened = bool(shim.fault_disarm())
    where = f"{case.name}, {KINDS[error]} at call {nth}: {failure!r}"
    found = contents(folder)
    if failure is None:
        assert found == expected, where
    else:
        assert has_happened, where
        assert error, where  # what writes less than it was given, writes the rest
        assert part(found, case.replaces) in (part(old, case.replaces), part(expected, case.replaces)), where
        case.again(folder)
        assert contents(folder) == expected, where
    assert [path.name for path in folder.iterdir() if path.name.startswith(".")] == [], where
    return has_happened


def faults_of(case: Case, errors: Sequence[int], scratch: Path) -> Iterator[str]:
    """Yield the kind of each fault that has happened, while errors take turns."""
    shutil.rmtree(scratch / "case", ignore_errors=True)
    (scratch / "case").mkdir()
    case.write(scratch / "case")
    expected = contents(scratch / "case")
    for nth, error in enumerate(itertools.cycle(errors), start=1):
        if not check_fault(case, expected, scratch / "case", error, nth):
            return
        yield KINDS[error]


def main() -> None:
    model, scratch, is_all = Path(sys.argv[1]), Path(sys.argv[2]), "--all" in sys.argv
    window.WINDOW_ROWS = 20
    (scratch / "sources").mkdir(parents=True)
    write_sources(scratch / "sources")
    cases = make_cases(model, scratch / "sources")
    turns = [[error] for error in KINDS] if is_all else [[errno.ENOSPC, errno.EIO], [SHORT]]
    pairs = itertools.product(cases if is_all else cases[:3], turns)
    tried = Counter(kind for case, errors in pairs for kind in faults_of(case, errors, scratch))
    sys.stdout.write(json.dumps(tried))


if __name__ == "__main__":
    main()
