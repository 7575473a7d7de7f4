"""The model folder: a round trip changes no bit, and nothing foreign is ever lost."""

from __future__ import annotations

import hashlib
import json
import math
import shutil
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from emoglot import load
from emoglot.classifier import EmotionClassifier
from emoglot.encoders.tiny import TinyEncoder
from emoglot.errors import DataError, EncoderError, ModelError, UsageError
from emoglot.evaluation.evidence import Language, write_languages
from emoglot.inference import card
from emoglot.inference import folder as model_folder_module
from emoglot.inference.folder import ModelState, check_target, read_model, write_model
from emoglot.inference.metrics import ClassMetrics, Evaluation, Metrics
from emoglot.model import Model
from tests.inference.altered import FILES, TEXTS, check_refused, content_of, edit


def test_a_round_trip_changes_no_bit(trained: Model, model_folder: Path, tmp_path: Path) -> None:
    loaded = load(model_folder)
    again = load(loaded.save(tmp_path / "again"))
    for other in (loaded, again):
        np.testing.assert_array_equal(other.predict_proba(TEXTS), trained.predict_proba(TEXTS))
        assert other.predict(TEXTS) == trained.predict(TEXTS)
        assert other.explain(TEXTS[1]) == trained.explain(TEXTS[1])
        assert other.thresholds == trained.thresholds
        assert other.labels == trained.labels
        assert other.metrics == trained.metrics
        assert other.config == trained.config
    assert len(np.unique(trained.predict_proba(TEXTS))) > len(TEXTS)  # so there was something to compare
    before, after = content_of(model_folder), content_of(tmp_path / "again")
    assert {name for name in FILES if before[name] != after[name]} <= {"README.md"}  # which begins with the name


def test_names_that_no_file_can_hold_are_refused_before_training(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="must be UTF-8"):
        check_target(tmp_path / "caf\udce9")
    with pytest.raises(DataError, match="valid Unicode"):
        EmotionClassifier("tiny", labels=["joy", "\ud83d"]).fit(["a", "b"], [[1, 0], [0, 1]])


def test_metrics_are_of_the_labels(folder: Path) -> None:
    def drop(description: dict[str, Any]) -> None:
        del description["metrics"]["overall"]["per_class"]["joy"]  # as if no validation row had said anything of it

    edit(folder, drop)
    assert load(folder).save(folder.with_name("again"))
    damages: list[Any] = [{}, {"overall": []}, {"overall": {"per_class": 3}}]
    for metrics in damages:
        edit(folder, lambda description, metrics=metrics: description.update(metrics=metrics))
        check_refused(folder, "does not describe a model")
    strange = Evaluation(Metrics(0.0, 0.0, 0.0, 1, {"boredom": ClassMetrics(0.0, 0.0, 0.0, 1)}), {})
    edit(folder, lambda description: description.update(metrics=asdict(strange)))
    check_refused(folder, "metrics must be of labels, got boredom")


def test_no_folder_is_above_the_root() -> None:
    with pytest.raises(ModelError, match="nothing but a model can be replaced"):
        check_target(Path("/"))


def test_a_fingerprint_tells_models_apart_that_score_apart(state: ModelState) -> None:
    wide = state.wide
    assert wide
    others = (
        replace(state, wide=None, config=state.config.override({"wide.enabled": False})),
        replace(state, wide=replace(wide, bias=wide.bias + 1)),
        replace(state, config=state.config.override({"wide.word_ngrams": 1})),
        replace(state, graph=state.graph + b"x"),
    )
    assert len({state.fingerprint(), *(other.fingerprint() for other in others)}) == 5
    assert replace(state, thresholds=state.thresholds / 2).fingerprint() == state.fingerprint()


def test_a_model_without_the_wide_channel(state: ModelState, tmp_path: Path) -> None:
    narrow = replace(state, wide=None, config=state.config.override({"wide.enabled": False}))
    write_model(narrow, tmp_path / "narrow", "0")
    assert read_model(tmp_path / "narrow").wide is None
    assert load(tmp_path / "narrow").predict_proba(TEXTS).shape == (len(TEXTS), len(state.labels))
    assert not any(name.startswith("wide.") for name in load_file(tmp_path / "narrow" / "weights.safetensors"))


def test_a_label_that_is_never_given(state: ModelState, tmp_path: Path) -> None:
    thresholds = state.thresholds.copy()
    thresholds[1], thresholds[2] = math.inf, 0.0
    write_model(replace(state, thresholds=thresholds), tmp_path / "model", "0")
    loaded = load(tmp_path / "model")
    assert list(loaded.thresholds.values()) == thresholds.tolist()
    for prediction in loaded.predict(TEXTS):
        assert state.labels[1] not in prediction.labels
        # A threshold of 0 lets everything pass but a text that was not read.
        assert (state.labels[2] in prediction.labels) == bool(prediction.scores)
    assert f"| {state.labels[1]} | never predicted |" in (tmp_path / "model" / "README.md").read_text(encoding="utf-8")


def test_the_files_of_a_folder(model_folder: Path) -> None:
    contents = content_of(model_folder)
    assert contents.keys() == FILES
    for data in contents.values():
        assert not data.startswith((b"PK", b"\x80"))  # neither a zip, as torch writes, nor a pickle
    description = json.loads(contents["model.json"])
    assert (description["format"], description["version"]) == ("emoglot-model", 1)
    for name in ("weights.safetensors", "head.onnx"):
        recorded = {"bytes": len(contents[name]), "sha256": hashlib.sha256(contents[name]).hexdigest()}
        assert description["files"][name] == recorded
    assert "README.md" not in description["files"]  # which people may edit


def test_only_the_core_is_needed(trained: Model, model_folder: Path) -> None:
    """Loading and predicting need none of the extras."""
    code = (
        "import sys\n"
        "for name in ('torch', 'transformers', 'sklearn', 'scipy', 'onnx', 'optuna', 'pyarrow', 'sentencepiece'):\n"
        "    sys.modules[name] = None\n"
        "import emoglot\n"
        "model = emoglot.load(sys.argv[1])\n"
        "assert model.predict(sys.argv[2:]) and model.explain(sys.argv[2])\n"
        "print(model.predict_proba(sys.argv[2:]).tobytes().hex())"
    )
    command = [sys.executable, "-W", "error", "-c", code, str(model_folder), *TEXTS[:4]]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.strip() == trained.predict_proba(TEXTS[:4]).tobytes().hex()


def test_an_encoder_that_moved(folder: Path, tmp_path: Path, trained: Model) -> None:
    edit(folder, lambda description: description["encoder"].update(name=str(tmp_path / "gone")))
    check_refused(folder, "there is no encoder", EncoderError)
    for encoder in ("tiny", TinyEncoder()):
        found = load(folder, encoder=encoder)
        np.testing.assert_array_equal(found.predict_proba(TEXTS), trained.predict_proba(TEXTS))


def test_another_encoder_is_refused(model_folder: Path, xlmr_folder: Path) -> None:
    with pytest.raises(ModelError, match="was trained on the encoder 'tiny' with the fingerprint tiny-1, got"):
        load(model_folder, encoder=str(xlmr_folder))


def test_an_encoder_of_another_width_is_refused(model_folder: Path) -> None:
    class Wider(TinyEncoder):
        dim = 64

    with pytest.raises(ModelError, match="maps 32 dimensions to 5 labels, but the encoder has 64"):
        load(model_folder, encoder=Wider())


@pytest.mark.parametrize(
    "contents",
    [
        {"notes.txt": "mine"},
        {"README.md": "# my project"},
        {"model.json": '{"format": "layers-model"}', "README.md": "a network of somebody else"},
        {"model.json": "{"},
        {"sub/deep.txt": "mine"},
        {"weights.safetensors": "mine"},
        {"languages.json": "[]"},
    ],
    ids=str,
)
def test_a_foreign_folder_is_left_alone(contents: dict[str, str], trained: Model, tmp_path: Path) -> None:
    target = tmp_path / "target"
    for name, text in contents.items():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_text(text, encoding="utf-8")
    before = content_of(tmp_path)
    with pytest.raises(ModelError, match="nothing was overwritten"):
        trained.save(target)
    assert content_of(tmp_path) == before
    assert [path.name for path in tmp_path.iterdir()] == ["target"]


@pytest.mark.parametrize("extra", ["evaluation.json", ".git/HEAD"])
def test_what_a_user_put_beside_a_model_is_left_alone(extra: str, folder: Path, trained: Model) -> None:
    (folder / extra).parent.mkdir(exist_ok=True)
    (folder / extra).write_text("mine", encoding="utf-8")
    before = content_of(folder)
    with pytest.raises(ModelError, match="nothing was overwritten"):
        trained.save(folder)
    assert content_of(folder) == before


def test_a_file_is_left_alone(trained: Model, tmp_path: Path) -> None:
    target = tmp_path / "model.json"
    target.write_text("mine", encoding="utf-8")
    with pytest.raises(ModelError, match="nothing was overwritten"):
        trained.save(target)
    assert target.read_text(encoding="utf-8") == "mine"


def test_an_empty_folder_is_free(trained: Model, tmp_path: Path) -> None:
    target = tmp_path / "some" / "where"
    target.mkdir(parents=True)
    check_target(target)
    assert content_of(trained.save(target)).keys() == FILES
    assert [path.name for path in target.parent.iterdir()] == ["where"]


def test_the_working_directory_and_a_mounted_disk_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model replaces a folder, which is noticed before training if it cannot be replaced."""
    monkeypatch.chdir(tmp_path)
    for folder in (Path(), tmp_path):
        with pytest.raises(UsageError, match="use a folder inside it"):
            check_target(folder)
    (tmp_path / "disk").mkdir()
    monkeypatch.setattr("os.path.ismount", lambda path: Path(path).name == "disk")
    with pytest.raises(UsageError, match="use a folder inside it"):
        check_target(tmp_path / "disk")
    check_target(tmp_path / "disk" / "model")


def test_a_model_replaces_a_model(state: ModelState, folder: Path) -> None:
    thresholds = np.full_like(state.thresholds, 0.25)
    write_model(replace(state, thresholds=thresholds), folder, "0")
    assert set(load(folder).thresholds.values()) == {0.25}
    assert content_of(folder).keys() == FILES
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


def test_what_was_measured_of_the_replaced_model_goes_with_it(state: ModelState, folder: Path) -> None:
    write_languages([Language("en", "English", False, 0.5, 10, None, 0)], folder)
    write_model(state, folder, "0")
    assert content_of(folder).keys() == FILES


@pytest.mark.parametrize("is_there", [True, False])
def test_a_failed_write_changes_nothing(
    is_there: bool, folder: Path, state: ModelState, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> str:
        raise OSError("no space left on device")

    if not is_there:
        shutil.rmtree(folder)
    before = content_of(folder.parent)
    monkeypatch.setattr(card, "render_card", fail)
    with pytest.raises(OSError, match="no space left"):
        write_model(replace(state, thresholds=np.full_like(state.thresholds, 0.25)), folder, "0")
    assert content_of(folder.parent) == before
    assert [path.name for path in folder.parent.iterdir()] == (["model"] if is_there else [])


def test_a_folder_is_for_others_to_read(model_folder: Path) -> None:
    assert model_folder.stat().st_mode & 0o055 == 0o055


def test_the_docstring_draws_the_folder() -> None:
    assert all(f"── {name} " in (model_folder_module.__doc__ or "") for name in FILES | {"languages.json"})
