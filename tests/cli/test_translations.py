"""`emoglot distill` and `emoglot project`: what is made of translations."""

from __future__ import annotations

from pathlib import Path

from emoglot import load
from emoglot.data.dataset import Dataset
from emoglot.data.registry import read
from emoglot.encoders.export import export_encoder
from emoglot.encoders.hub import HubEncoder
from emoglot.encoders.registry import extended_fingerprints, load_encoder
from tests.cli.harness import DATA, ENCODER, MODEL, USAGE, Run, check_error
from tests.conftest import QUICK, train


def test_distill_adds_a_language(run: Run, translations: Path, xlmr_folder: Path, tmp_path: Path) -> None:
    more = tmp_path / "more"
    base = export_encoder(HubEncoder("base", source=xlmr_folder), tmp_path / "base", "base", "int8")
    lines = (translations / "xg.tsv").read_text(encoding="utf-8").splitlines()
    path = tmp_path / "xc.tsv"
    path.write_text("\n".join([*lines, "no tab"]) + "\n", encoding="utf-8")
    extend = ["distill", "--extend", base, "--parallel", path, "--out", more, "--set", "epochs=1"]
    check_error(run(*extend), DATA, "xc.tsv, line 25", "--skip-bad")
    result = run(*extend, "--skip-bad")
    assert (result.code, result.out) == (0, f"{more}\n"), result.err
    assert "dropped 1 malformed lines of 25" in result.err
    assert load_encoder(base).fingerprint in extended_fingerprints(load_encoder(more))


def test_distill_refuses(run: Run, translations: Path, tmp_path: Path) -> None:
    arguments = ["distill", "--parallel", translations, "--out", tmp_path / "out"]
    check_error(run(*arguments, "--extend", "tiny"), USAGE, "got 'tiny'")
    check_error(run(*arguments, "--extend", "nobody/has-this"), ENCODER, "no encoder")
    check_error(run(*arguments, "--extend", "tiny", "--set", "colour=3"), USAGE, "there is no setting")
    for left_out in ("--extend", "--parallel"):  # the parser says so itself
        given = {"--extend": "tiny", "--parallel": translations, "--out": tmp_path / "out"}
        del given[left_out]
        result = run("distill", *(part for pair in given.items() for part in pair))
        assert result.code == USAGE
        assert left_out in result.err
    check_error(
        run("distill", "--extend", "tiny", "--parallel", translations, "--out", translations), USAGE, "already exists"
    )
    missing = ["distill", "--extend", "tiny", "--parallel", tmp_path / "none.tsv", "--out", tmp_path / "out"]
    check_error(run(*missing), DATA, "there is no file of translations")
    assert not (tmp_path / "out").exists()


def test_project_then_read(run: Run, dataset: Dataset, translations: Path, tmp_path: Path) -> None:
    # Trained long enough to be sure of some texts.
    config = QUICK.override({"training.max_epochs": 60, "training.patience": 60, "loss.kind": "cross-entropy"})
    teacher = tmp_path / "teacher"
    train("tiny", dataset, config=config).save(teacher)
    out = tmp_path / "projected.csv"
    arguments = ["project", "--model", teacher, "--parallel", translations, "--out", out]
    result = run(*arguments, "--per-language", 10)
    assert (result.code, result.out) == (0, f"{out}\n"), result.err
    data = read(out)
    assert f"{len(data)} texts in 1 languages" in result.err
    assert set(data.languages) == {"xg"}
    assert 0 < len(data) <= 10
    assert data.labels == load(teacher).labels
    check_error(run(*arguments), USAGE, "already exists")
    out.unlink()
    check_error(run(*arguments, "--encoder", "nobody/has-this"), ENCODER, "no encoder")
    check_error(run("project", "--model", tmp_path / "none", *arguments[3:]), MODEL, "there is no model folder")
    missing = ["project", "--model", teacher, "--parallel", tmp_path / "none.tsv", "--out", out]
    check_error(run(*missing), DATA, "there is no file of translations")
    assert run(*arguments, "--per-language", 1).code == USAGE
    assert not out.exists()
