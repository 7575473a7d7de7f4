"""Nothing the user has is lost: files of others, input that changes, two jobs at once, workers that are killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from emoglot.batch import window as limits
from emoglot.batch.job import Job
from emoglot.batch.window import InputColumns
from emoglot.errors import DataError, UsageError
from tests.batch.helpers import ROWS, KillError, command, parquet, read, run, write

pa = pytest.importorskip("pyarrow", reason="scoring files needs: pip install 'emoglot[parquet]'")

FORMATS = ["in.csv", "in.jsonl", "in.tsv.zst", "in.parquet"]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write(tmp_path / "in.csv", ROWS)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out.csv"


@pytest.fixture
def whole(source: Path, model_folder: Path, tmp_path: Path) -> bytes:
    """The output of a job that nothing happens to."""
    run(source, tmp_path / "whole.csv", model_folder)
    return (tmp_path / "whole.csv").read_bytes()


def at_window(number: int, action: Callable[[], Any]) -> Callable[..., None]:
    def on_window(window: Any, _source: Any) -> None:
        if window.number == number:
            action()

    return on_window


def kill() -> None:
    raise KillError


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# What others have made


@pytest.mark.parametrize("options", [{}, {"resume": True}, {"overwrite": True}, {"resume": True, "overwrite": True}])
@pytest.mark.parametrize(
    "foreign",
    [
        {"notes.txt": "mine"},
        {"job.json": '{"model": 1}'},
        {"job.json": "[]"},
        {"000000-10-ab": "mine"},
        {"lock": "x", "a": ""},
    ],
)
def test_a_foreign_folder_of_pieces_is_refused_and_kept(foreign, options, source, out, model_folder, tmp_path):
    parts = tmp_path / "out.csv.parts"
    parts.mkdir()
    for name, text in foreign.items():
        (parts / name).write_text(text)
    before = contents(tmp_path)
    with pytest.raises(UsageError, match=r"out\.csv\.parts, which exists and was not created by emoglot score: rename"):
        run(source, out, model_folder, **options)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("make", [Path.mkdir, Path.touch, lambda path: path.symlink_to("nowhere")])
def test_an_empty_folder_and_a_file_in_the_place_of_pieces_are_refused(make, source, out, model_folder, tmp_path):
    make(tmp_path / "out.csv.parts")
    with pytest.raises(UsageError, match="was not created by emoglot score"):
        run(source, out, model_folder, resume=True)
    assert os.path.lexists(tmp_path / "out.csv.parts")


def test_other_names_beside_the_output_are_left_alone(source, out, model_folder, tmp_path, whole):
    for name in ("out.csv.parts.done", "out.csv.parts.old"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "mine").write_text("mine")
    run(source, out, model_folder)
    assert out.read_bytes() == whole
    for name in ("out.csv.parts.done", "out.csv.parts.old"):
        assert (tmp_path / name / "mine").read_text() == "mine"


def test_what_others_put_into_the_folder_of_pieces_stays(source, out, model_folder, tmp_path, whole):
    parts = tmp_path / "out.csv.parts"
    with pytest.raises(KillError):
        run(source, out, model_folder, on_window=at_window(1, kill))
    (parts / "2026-01").write_text("mine")
    run(source, out, model_folder, resume=True)
    assert out.read_bytes() == whole
    assert contents(parts) == {"2026-01": b"mine"}


def test_a_list_of_rejects_is_not_replaced_unasked(source, out, model_folder, tmp_path):
    listed = tmp_path / "out.csv.rejects.jsonl"
    ours = json.dumps({"line": 3, "reason": "NUL", "id": None}) + "\n"
    listed.write_text(ours)
    with pytest.raises(UsageError, match=r"rejects\.jsonl already exists: .* --overwrite"):
        run(source, out, model_folder)
    assert listed.read_text() == ours
    run(source, out, model_folder, overwrite=True)
    assert not listed.exists()  # it was of the output that was replaced
    listed.write_text('{"mine": 1}\n')
    with pytest.raises(UsageError, match="was not created by emoglot score"):
        run(source, out, model_folder, overwrite=True)
    assert listed.read_text() == '{"mine": 1}\n'


@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir, lambda path: path.write_text("[" * 10**5)])
def test_what_is_no_list_of_rejects_is_refused_and_kept(make, source, out, model_folder, tmp_path):
    make(tmp_path / "out.csv.rejects.jsonl")
    with pytest.raises(UsageError, match=r"rejects\.jsonl, which exists and was not created by emoglot score"):
        run(source, out, model_folder, overwrite=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == [source.name, "out.csv.rejects.jsonl"]


def test_a_pipe_in_the_place_of_a_job_does_not_hang(source, out, model_folder, tmp_path):
    (tmp_path / "out.csv.parts").mkdir()
    os.mkfifo(tmp_path / "out.csv.parts" / "job.json")
    with pytest.raises(UsageError, match=r"job\.json is damaged \(it is not a regular file\)"):
        run(source, out, model_folder, resume=True)


@pytest.mark.parametrize("name", ["out.csv", "out.csv.rejects.jsonl"])
def test_what_comes_while_the_job_runs_is_not_replaced(name, source, out, model_folder, tmp_path, whole):
    mine = tmp_path / name
    with pytest.raises(UsageError, match=r"already exists|not created by"):
        run(source, out, model_folder, on_window=at_window(1, lambda: mine.write_text("mine")))
    assert mine.read_text() == "mine"
    with pytest.raises(UsageError, match=r"already exists|not created by"):
        run(source, out, model_folder, resume=True)
    mine.unlink()
    run(source, out, model_folder, resume=True)
    assert out.read_bytes() == whole


def test_leave_to_overwrite_is_kept_for_resuming(source, out, model_folder, whole):
    out.write_text("old")
    with pytest.raises(KillError):
        run(source, out, model_folder, overwrite=True, on_window=at_window(1, kill))
    assert out.read_text() == "old"
    run(source, out, model_folder, resume=True)
    assert out.read_bytes() == whole


def test_the_input_is_not_replaced(source, out, model_folder, tmp_path):
    before = source.read_bytes()
    with pytest.raises(UsageError, match="must differ from the input"):
        run(source, source, model_folder, overwrite=True)
    listed = tmp_path / "out.csv.rejects.jsonl"
    listed.write_text(json.dumps({"line": 3, "reason": "NUL", "id": None}) + "\n")
    with pytest.raises(UsageError, match="must differ from the input"):
        run(listed, out, model_folder, InputColumns("reason"), overwrite=True)
    assert source.read_bytes() == before
    assert listed.exists()


@pytest.mark.parametrize("moment", ["_enter", "_remove"])
def test_a_job_killed_while_it_writes_its_output_goes_on(moment, out, model_folder, tmp_path, monkeypatch):
    source = tmp_path / "in.csv"
    source.write_bytes(b"text\nfine\nnul\x00\n")
    real = getattr(Job, moment)

    def killed(job: Job, *arguments: Any) -> None:
        if arguments == ("writing",):
            return real(job, *arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(Job, moment, killed)
    with pytest.raises(KeyboardInterrupt):
        run(source, out, model_folder)
    monkeypatch.undo()
    monkeypatch.setattr(limits, "WINDOW_ROWS", 10)
    written = contents(tmp_path)
    assert out.exists()
    if moment == "_enter":  # before it was recorded as done
        run(source, out, model_folder, resume=True)
    else:
        with pytest.raises(UsageError, match="nothing to resume"):
            run(source, out, model_folder, resume=True)
    kept = ["in.csv", "out.csv", "out.csv.rejects.jsonl"]
    assert contents(tmp_path) == {name: written[name] for name in kept}


# Input that changes

LONG = [{"id": str(number), "text": f"row {number} of many {'happy ' * 20}"} for number in range(600)]


@pytest.fixture
def larger_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "WINDOW_ROWS", 100)


@pytest.mark.usefixtures("larger_windows")
@pytest.mark.parametrize("change", ["cut", "grow"])
@pytest.mark.parametrize("name", FORMATS)
def test_a_file_that_is_cut_or_grows_while_it_is_read_gives_no_output(name, change, out, model_folder, tmp_path):
    source = write(tmp_path / name, LONG)
    size = source.stat().st_size

    def touch() -> None:
        os.truncate(source, size // 2 if change == "cut" else size + 1)

    with pytest.raises(DataError, match=rf"{name} (has changed|cannot be read)"):
        run(source, out, model_folder, on_window=at_window(0, touch))
    assert not out.exists()
    with pytest.raises((UsageError, DataError), match=r"another input|not a readable Parquet file|cannot be read"):
        run(source, out, model_folder, resume=True)


def edit(path: Path, old: bytes, new: bytes) -> None:
    """Change a file in place so that its size and time stay."""
    before, data = path.stat(), path.read_bytes()
    assert data.count(old)
    with path.open("r+b") as file:
        file.write(data.replace(old, new))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)


def write_plain(path: Path) -> Path:
    """Write rows so that their texts can be found in the bytes of the file, Parquet in groups of 13."""
    if path.suffix != ".parquet":
        return write(path, ROWS)
    table = pa.Table.from_pylist(ROWS)
    parquet.write_table(
        table, path, row_group_size=13, compression="none", use_dictionary=False, write_statistics=False
    )
    return path


@pytest.mark.parametrize("name", ["in.csv", "in.jsonl", "in.parquet"])
def test_an_edit_between_kill_and_resumption_is_refused(name, out, model_folder, tmp_path):
    source = write_plain(tmp_path / name)
    for window in (0, 1, 2):
        with pytest.raises(KillError):
            run(source, out, model_folder, on_window=at_window(window, kill))
        edit(source, b"wonderful", b"dangerous")
        with pytest.raises(DataError, match=f"must not change while it is scored, .*{name} has changed"):
            run(source, out, model_folder, resume=True)
        assert not out.exists()
        edit(source, b"dangerous", b"wonderful")
        run(source, out, model_folder, resume=True)  # now it is what was read
        assert len(read(out)) == len(ROWS)
        out.unlink()


@pytest.mark.parametrize("name", ["in.csv", "in.jsonl", "in.parquet"])
def test_an_edit_while_it_is_read_is_noticed_though_size_and_time_stay(name, out, model_folder, tmp_path):
    source = write_plain(tmp_path / name)
    with pytest.raises(DataError, match="has changed"):
        run(source, out, model_folder, on_window=at_window(1, lambda: edit(source, b"wonderful", b"dangerous")))
    assert not out.exists()


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(
    "touch", [lambda path: path.chmod(0o600), Path.unlink, lambda path: path.rename(f"{path}.old")]
)
def test_a_file_that_is_touched_but_not_changed_is_scored(touch, name, out, model_folder, tmp_path):
    source = write(tmp_path / name, ROWS)
    run(source, out, model_folder, on_window=at_window(1, lambda: touch(source)))
    assert [row["text"] for row in read(out)] == [row["text"] for row in ROWS]


@pytest.mark.parametrize("last", [b"", b"\n", b"\n\n \n"])
def test_a_job_killed_after_its_last_row_goes_on(last, out, model_folder, tmp_path):
    """Blank lines at the end are read with the last window, and not when its rows are passed again."""
    source = write(tmp_path / "in.jsonl", ROWS)
    with source.open("ab") as file:
        file.write(last)
    with pytest.raises(KillError):
        run(source, out, model_folder, on_window=at_window(len(ROWS) // 10, kill))
    run(source, out, model_folder, resume=True)
    assert len(read(out)) == len(ROWS)


def test_empty_row_groups_are_passed(out, model_folder, tmp_path):
    table = pa.Table.from_pylist(ROWS)
    with parquet.ParquetWriter(tmp_path / "in.parquet", table.schema) as writer:
        for first in range(0, len(ROWS), 10):
            writer.write_table(table.slice(first, 10))
            writer.write_table(table.slice(0, 0))
    for window in (0, 1, 4):
        with pytest.raises(KillError):
            run(tmp_path / "in.parquet", out, model_folder, resume=window > 0, on_window=at_window(window, kill))
    run(tmp_path / "in.parquet", out, model_folder, resume=True)
    assert [row["text"] for row in read(out)] == [row["text"] for row in ROWS]


# Two jobs, and workers that die


@pytest.mark.parametrize("options", [{}, {"resume": True}, {"overwrite": True}])
def test_a_second_job_is_told_of_the_first(options, source, out, model_folder, whole):
    def second() -> None:
        with pytest.raises(UsageError, match=r"one job at a time can write .*out\.csv, and one is running"):
            run(source, out, model_folder, **options)

    run(source, out, model_folder, on_window=at_window(1, second))
    assert out.read_bytes() == whole


def started(source: Path, out: Path, *options: object) -> subprocess.Popen[str]:
    """Start a job, and wait for its first piece."""
    process = subprocess.Popen(
        command(source, out, *options), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    while process.poll() is None and not list(out.parent.glob(f"{out.name}.parts/*-*")):
        time.sleep(0.01)
    return process


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = [{"id": str(number), "text": f"row {number} of many happy words"} for number in range(40_000)]
    return write(tmp_path_factory.mktemp("many") / "in.csv", rows)


def test_a_lock_dies_with_its_process(many, out, model_folder):
    options = ("--model", model_folder, "--jobs", 1)
    first = started(many, out, *options)
    os.kill(first.pid, signal.SIGSTOP)  # so that it is running for as long as we look
    second = subprocess.run(command(many, out, *options, "--resume"), capture_output=True, text=True, check=False)
    assert second.returncode == 2
    assert "one is running" in second.stderr
    first.kill()
    first.communicate()
    third = subprocess.run(command(many, out, *options, "--resume"), capture_output=True, text=True, check=False)
    assert third.returncode == 0, third.stderr
    assert len(read(out)) == 40_000


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="workers are found in /proc")
def test_a_worker_that_is_killed_is_told_and_the_job_goes_on(many, out, model_folder):
    options = ("--model", model_folder)
    process = started(many, out, *options, "--jobs", 2)
    victims = [
        int(path.parent.name)
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if b"multiprocessing.spawn" in path.read_bytes() and _parent(path.parent) == process.pid
    ]
    assert len(victims) == 2
    os.kill(victims[0], signal.SIGKILL)
    told, _ = process.communicate(timeout=120)
    assert process.returncode == 8, told
    assert "error: a worker process died, probably out of memory: use fewer --jobs" in told
    assert "Traceback" not in told
    assert not out.exists()
    done = subprocess.run(command(many, out, *options, "--jobs", 1, "--resume"), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(read(out)) == 40_000


def _parent(process: Path) -> int:
    return int((process / "stat").read_text().rpartition(")")[2].split()[1])
