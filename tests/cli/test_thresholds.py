"""`emoglot thresholds`: for each language, for any text, and for a domain."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from emoglot import load
from emoglot.data.registry import read
from emoglot.evaluation.evaluate import evaluate_model
from emoglot.evaluation.language_thresholds import calibrate
from tests.cli.harness import DATA, MODEL, USAGE, Run, check_error, write_recipe


def test_thresholds(run: Run, model_folder: Path, table: Path, tmp_path: Path) -> None:
    out, pooled = tmp_path / "model", tmp_path / "pooled"
    result = run("thresholds", "--model", model_folder, "--data", table, "--out", out)
    assert (result.code, result.out) == (0, f"{out}\n"), result.err
    assert "thresholds for ar, en, es, chosen on 64 rows" in result.err
    expected = calibrate(load(model_folder), read(table))
    found = load(out).state.language_thresholds
    assert {name: values.tolist() for name, values in found.items()} == {
        name: values.tolist() for name, values in expected.state.language_thresholds.items()
    }
    (record,) = run("predict", "--model", out, "--json", "--language", "es", "so happy").records()
    assert record == json.loads(json.dumps({"text": "so happy", **asdict(expected.predict(["so happy"], "es")[0])}))
    recipe = write_recipe(tmp_path / "recipe.toml", "[[data.thresholds]]", 'path = "*.tsv"')
    by_recipe = ["--config", recipe, "--root", table.parent, "--pooled"]
    assert run("thresholds", "--model", model_folder, *by_recipe, "--out", pooled).code == 0
    assert load(pooled).state.language_thresholds == {}


def test_thresholds_use_the_rows_of_files_and_of_a_config(
    run: Run, model_folder: Path, table: Path, tmp_path: Path
) -> None:
    recipe = write_recipe(tmp_path / "recipe.toml", "[[data.thresholds]]", f'path = "{table.name}"')
    arguments = ["thresholds", "--model", model_folder, "--pooled", "--config", recipe, "--root", table.parent]
    result = run(*arguments, "--data", table, "--out", tmp_path / "model")
    assert "chosen on 128 rows" in result.err  # 64 of each


def test_thresholds_refuses(run: Run, model_folder: Path, table: Path, tmp_path: Path) -> None:
    arguments = ["thresholds", "--model", model_folder, "--out"]
    check_error(run(*arguments, tmp_path / "model"), USAGE, "no data", "--data")
    check_error(run(*arguments, model_folder, "--data", table), USAGE, "already exists")
    check_error(run(*arguments, tmp_path / "model", "--data", tmp_path / "none.tsv"), DATA, "there is no file")
    other = ["thresholds", "--model", tmp_path / "none", "--data", table, "--out", tmp_path / "model"]
    check_error(run(*other), MODEL, "there is no model folder")
    (tmp_path / "other.tsv").write_text("text\tboredom\nso dull\t1\n", encoding="utf-8")
    check_error(
        run(*arguments, tmp_path / "model", "--data", tmp_path / "other.tsv"),
        DATA,
        "must have at least one of the model's labels",
    )
    assert not (tmp_path / "model").exists()


def test_thresholds_for_a_domain(run: Run, model_folder: Path, table: Path, tmp_path: Path) -> None:
    arguments = ["thresholds", "--model", model_folder, "--data", table, "--domain", "posts"]
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


def test_thresholds_by_translations(run: Run, model_folder: Path, table: Path, tmp_path: Path) -> None:
    lines = [f"I am so happy about {number}\tIch bin so froh über {number}" for number in range(60 * 32)]
    (tmp_path / "de.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    arguments = ["thresholds", "--model", model_folder, "--parallel", tmp_path / "de.tsv"]
    result = run(*arguments, "--out", tmp_path / "model")
    assert (result.code, result.out) == (0, f"{tmp_path / 'model'}\n"), result.err
    assert "thresholds for de, matched by translations" in result.err
    assert load(tmp_path / "model").state.matched_thresholds.keys() == {"de"}
    check_error(run(*arguments, "--data", table, "--out", tmp_path / "both"), USAGE, "--parallel", "once for each")
