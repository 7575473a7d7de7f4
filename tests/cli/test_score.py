"""`emoglot score`: the options that one engine has and the other has not. What it writes is tested in tests/batch."""

from __future__ import annotations

import pytest

from tests.cli.harness import USAGE, check_error

CLUSTER = ("--engine", "ray")


@pytest.mark.parametrize(("rows", "message"), [(0, "0 rows scored"), (1, "1 row scored"), (2, "2 rows scored")])
def test_one_row_is_one_row(run, model_folder, tmp_path, rows, message):
    (tmp_path / "in.csv").write_text("text\n" + "so happy\n" * rows)
    assert message in run("score", "--model", model_folder, tmp_path / "in.csv", tmp_path / "out.csv").err.splitlines()


def test_an_output_without_a_format_is_told_what_to_add(run, tmp_path):
    check_error(run("score", tmp_path / "in.csv", "-"), USAGE, "add --out-format csv, tsv or jsonl")
    check_error(run("score", tmp_path / "in.csv", "."), USAGE, ". is a folder", "scored.csv")
    check_error(run("score", tmp_path / "in.csv", tmp_path / "out"), USAGE, "add .csv, or set --out-format")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((*CLUSTER, "--resume"), "--resume is not supported on a cluster"),
        ((*CLUSTER, "--overwrite"), "--overwrite is not supported on a cluster"),
        ((*CLUSTER, "--encoding", "cp1252"), "--encoding is not supported on a cluster"),
        ((*CLUSTER, "--delimiter", ";"), "--delimiter is not supported on a cluster"),
        ((*CLUSTER, "--id-column", "id"), "--id-column is not supported on a cluster"),
        (("--address", "ray://head:10001"), "add --engine ray"),
        (("--engine", "spark"), "--engine must be local or ray, got 'spark'"),
    ],
)
def test_an_option_that_would_be_ignored_is_refused(run, tmp_path, options, message):
    check_error(run("score", tmp_path / "in.csv", tmp_path / "out.csv", *options), USAGE, message)
