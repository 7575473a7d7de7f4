"""Jobs that are killed and resumed end with the same bytes; so do jobs in several processes."""

from __future__ import annotations

import json
import os
import random
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from emoglot.batch import scoring
from emoglot.batch.scoring import ModelSource
from emoglot.errors import UsageError
from emoglot.inference.folder import DESCRIPTION_FILE
from tests.batch.helpers import ROWS, KillError, command, kill_and_resume, read, run, write


@pytest.mark.parametrize("target", ["out.csv", "out.jsonl.gz", "out.tsv.zst", "out.parquet"])
@pytest.mark.parametrize("source", ["in.csv", "in.jsonl", "in.parquet"])
def test_an_interrupted_job_goes_on_to_the_same_bytes(source, target, model_folder, tmp_path):
    write(tmp_path / source, ROWS)
    run(tmp_path / source, tmp_path / f"whole-{target}", model_folder)

    def fail_at(count: int):
        def on_window(window, _source):
            if window.number == count:
                raise KillError

        return on_window

    for attempt, count in enumerate((0, 2, 3)):
        with pytest.raises(KillError):
            run(tmp_path / source, tmp_path / target, model_folder, resume=attempt > 0, on_window=fail_at(count))
        assert not (tmp_path / target).exists()
    with pytest.raises(UsageError, match="unfinished job"):
        run(tmp_path / source, tmp_path / target, model_folder)
    with pytest.raises(UsageError, match="another columns"):
        run(tmp_path / source, tmp_path / target, model_folder, resume=True, prefix="e_")
    run(tmp_path / source, tmp_path / target, model_folder, resume=True)
    assert (tmp_path / target).read_bytes() == (tmp_path / f"whole-{target}").read_bytes()


def test_a_job_goes_on_with_the_same_model_of_the_hub_only(model_folder, local, tmp_path, monkeypatch):
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / DESCRIPTION_FILE).write_bytes((model_folder / DESCRIPTION_FILE).read_bytes() + b" ")
    folders = {Path("user/one"): model_folder, Path("user/two"): tmp_path / "two"}
    monkeypatch.setattr("emoglot.batch.score.find_model", folders.__getitem__)
    monkeypatch.setattr(ModelSource, "load", lambda self: local)
    source, out = write(tmp_path / "in.csv", ROWS), tmp_path / "out.csv"

    def fail(window, _source):
        raise KillError

    with pytest.raises(KillError):
        run(source, out, Path("user/one"), on_window=fail)
    with pytest.raises(UsageError, match="another model: delete it"):
        run(source, out, Path("user/two"), resume=True)
    run(source, out, Path("user/one"), resume=True)


def test_a_job_killed_at_random_moments_loses_no_row(model_folder, tmp_path):
    """Kill -9 again and again; in the end the file is that of a run without."""
    rows = [{"id": str(number), "text": f"row {number} of many happy words"} for number in range(60_000)]
    source = write(tmp_path / "in.csv", rows)
    with source.open("ab") as file:
        file.write(b"60000,\xff\n")
    arguments = ("--model", model_folder, "--jobs", 1)
    whole = subprocess.run(command(source, tmp_path / "whole.csv", *arguments), capture_output=True, check=False)
    assert whole.returncode == 7
    out = tmp_path / "out.csv"
    assert kill_and_resume(source, out, *arguments, rng=random.Random(1)) >= 3
    assert out.read_bytes() == (tmp_path / "whole.csv").read_bytes()
    rejects = [(tmp_path / f"{name}.csv.rejects.jsonl").read_bytes() for name in ("out", "whole")]
    assert rejects[0] == rejects[1]
    assert json.loads(rejects[0])["line"] == 60_002
    found = Counter(row["id"] for row in read(tmp_path / "out.csv"))
    assert found == Counter(row["id"] for row in rows)


def test_several_processes_give_the_same_file(model_folder, tmp_path):
    source = write(tmp_path / "in.csv", ROWS)
    for jobs in (1, 2):
        run(source, tmp_path / f"out-{jobs}.csv", model_folder, jobs=jobs)
    assert (tmp_path / "out-1.csv").read_bytes() == (tmp_path / "out-2.csv").read_bytes()


def test_a_worker_starts_where_processes_can_not_be_pinned(model_folder, monkeypatch):
    """macOS and Windows lack the function."""
    monkeypatch.delattr(os, "sched_setaffinity")
    monkeypatch.setattr(scoring, "worker_number", lambda: 0)
    assert scoring._prepare(ModelSource(model_folder, None, None, None)).predict(["a"])
