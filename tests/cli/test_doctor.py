"""`emoglot doctor`: what a healthy installation prints, and what a broken one does."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from emoglot import __version__, doctor
from tests.cli.harness import Run, shell


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EMOGLOT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def failed(content: dict[str, Any]) -> list[dict[str, Any]]:
    return [finding for finding in content["findings"] if finding["status"] == "failed"]


def test_a_healthy_installation(run: Run, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (cache / "features").mkdir(parents=True)
    (cache / "features" / "vectors").write_bytes(bytes(3_000_000))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    result = run("doctor", "--json")
    content = json.loads(result.out)
    assert (result.code, content["healthy"], failed(content)) == (0, True, [])
    found = {finding["name"]: finding for finding in content["findings"]}
    assert found["emoglot"]["found"].startswith(__version__)
    assert found["cache of features"]["found"] == f"3 MB in {cache / 'features'}"
    assert "OMP_NUM_THREADS=1" in found["threads"]["found"]
    assert "train" in found["extras present"]["found"]
    assert found["telemetry"]["found"] == "off (ORT_DISABLE_TELEMETRY=1)"
    assert "joy" in found["prediction"]["found"]
    assert all(finding["seconds"] >= 0 for finding in content["findings"])
    assert found["model"]["seconds"] > 0


def test_the_table_fits_80_columns(cache: Path, model_folder: Path) -> None:
    finished = shell("doctor", "--model", model_folder, COLUMNS="80", EMOGLOT_CACHE=str(cache))
    assert finished.returncode == 0, finished.stderr
    shown = finished.stdout.decode()
    assert max(map(len, shown.splitlines())) <= 80
    assert "…" not in shown
    assert finished.stderr.decode().endswith("everything works\n")


def test_a_damaged_model_is_told_with_exit_code_1(run: Run, cache: Path, model_folder: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(model_folder, tmp_path / "model"))
    (folder / "head.onnx").write_bytes(b"")
    result = run("doctor", "--model", folder)
    assert result.code == 1
    assert "head.onnx" in result.err
    assert result.err.endswith("something is broken: see above\n")
    assert "numpy" in result.out  # the rest is examined all the same


def test_a_damaged_encoder_is_told_with_the_way_out(run: Run, cache: Path, model_folder: Path) -> None:
    folder = cache / "encoders" / "broken"
    folder.mkdir(parents=True)
    (folder / "encoder.json").write_text("{", encoding="utf-8")
    result = run("doctor", "--json", "--model", model_folder)
    (finding,) = failed(json.loads(result.out))
    assert result.code == 1
    assert finding["advice"] == f"remove {folder}, then install the encoder again"


def test_a_package_of_the_core_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "PACKAGES", ("numpy", "no-such-package"))
    missing = [finding for finding in doctor.examine() if finding.status == doctor.FAILED]
    assert [(finding.name, finding.found) for finding in missing] == [("no-such-package", "not installed")]
    assert "pip install" in missing[0].advice


def test_a_full_or_read_only_disk_is_a_note_as_predictions_work(
    monkeypatch: pytest.MonkeyPatch, cache: Path, model_folder: Path
) -> None:
    def notes() -> list[doctor.Finding]:
        findings = doctor.examine(model_folder)
        assert doctor.is_healthy(findings)
        return [finding for finding in findings if finding.status == doctor.NOTE]

    assert notes() == []
    monkeypatch.setattr(doctor, "LEAST_FREE_MEGABYTES", 1e12)
    (finding,) = notes()
    assert "MB free" in finding.found
    assert "EMOGLOT_CACHE" in finding.advice
    monkeypatch.setattr("os.access", lambda path, mode: False)
    (finding,) = notes()
    assert "is read-only" in finding.found


def test_extras_include_those_of_extras_that_they_name(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = [
        "numpy>=1.26",
        "torch>=2.4; extra == 'train'",
        'onnx>=1.17; extra == "train"',
        "emoglot[train]; extra == 'tune'",
        "optuna>=5; extra == 'tune'",
        "ray[data]>=2.40; extra == 'ray'",
        "tomli>=2; python_version < '3.11' and extra == 'dev'",
    ]
    monkeypatch.setattr("importlib.metadata.requires", lambda name: listed)
    assert doctor.required_by_extra() == {
        "train": ["onnx", "torch"],
        "tune": ["onnx", "optuna", "torch"],
        "ray": ["ray"],
        "dev": ["tomli"],
    }


def test_an_error_that_nobody_expected_is_a_finding(monkeypatch: pytest.MonkeyPatch, model_folder: Path) -> None:
    def fail() -> None:
        raise RuntimeError("out of order")

    monkeypatch.setattr(doctor, "import_onnxruntime", fail)
    (finding,) = [finding for finding in doctor.examine(model_folder) if finding.status == doctor.FAILED]
    assert (finding.name, finding.found) == ("telemetry", "RuntimeError: out of order")
    assert "report this as a bug" in finding.advice
