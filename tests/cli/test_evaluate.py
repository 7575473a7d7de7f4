"""`emoglot evaluate`: the figures of `evaluate_model`, and what is refused."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from emoglot import load
from emoglot.data.registry import read
from emoglot.evaluation.evaluate import evaluate_model
from tests.cli.harness import DATA, MODEL, QUICK, Run, check_error


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
    assert "no row has love, so they count as absent" in measured.err
    loud = tmp_path / "loud.tsv"
    loud.write_text("\n".join([header, *(row.upper() for row in rows)]) + "\n", encoding="utf-8")
    for command in (("evaluate",), ("thresholds", "--out", tmp_path / "loud")):
        check_error(run(*command, "--model", out, "--data", loud), DATA, "must have at least one of the model's labels")
    loud.write_text("\n".join([header, *rows, rows[0].replace("\tjoy", "\tLOVE,joy")]) + "\n", encoding="utf-8")
    assert "the model has no label LOVE: left out" in run("evaluate", "--model", out, "--data", loud).err
    result = run(
        "train", "--encoder", "tiny", "--train", table, "--validation", data, "--out", tmp_path / "two", *QUICK
    )
    assert result.code == 0
    recorded = json.loads((tmp_path / "two" / "model.json").read_text(encoding="utf-8"))["training"]["data"]
    assert recorded["stopping"]["known"]["love"] == recorded["stopping"]["rows"]
