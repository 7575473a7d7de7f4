"""SIGTERM ends a command as an error does: no temporary folder is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

from tests.batch.helpers import command

# A command that is ended while it writes a folder.
WRITING = """
import time
from pathlib import Path
from emoglot import cli
from emoglot.files import folder_in_the_making

def write(**_):
    with folder_in_the_making(Path("model")) as draft:
        (draft / "weights").touch()
        print("writing", flush=True)
        time.sleep(60)

cli.app = write
cli.main()
"""


def test_a_folder_that_is_being_written_is_removed(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", WRITING], cwd=tmp_path, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"writing\n"
    assert list(tmp_path.iterdir())
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert process.returncode == 128 + signal.SIGTERM
    assert list(tmp_path.iterdir()) == []


def test_the_pieces_of_a_job_that_can_not_be_resumed_are_removed(model_folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    os.mkfifo(tmp_path / "in.csv")
    process = subprocess.Popen(command(tmp_path / "in.csv", out, "--model", model_folder, "--jobs", 1))
    ended = threading.Event()

    def write() -> None:
        with suppress(BrokenPipeError), (tmp_path / "in.csv").open("w", encoding="utf-8") as pipe:
            pipe.write("text\n" + "".join(f"row {number} of many happy words\n" for number in range(60_000)))
            pipe.flush()
            ended.wait(60)

    writer = threading.Thread(target=write)
    writer.start()
    while process.poll() is None and not list(tmp_path.glob("out.csv.parts/*-*")):
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=60) == 128 + signal.SIGTERM
    ended.set()
    writer.join()
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv"]
