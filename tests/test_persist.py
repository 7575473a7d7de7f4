"""The model folder: a round trip changes no bit, damage is told in one sentence, nothing foreign is ever lost."""

from __future__ import annotations

import hashlib
import json
import math
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

from emoglot import card, load, persist
from emoglot.encoders.tiny import TinyEncoder
from emoglot.errors import DataError, EmoglotError, EncoderError, ModelError, UsageError
from emoglot.languages import Language, write_languages
from emoglot.model import EmotionClassifier
from emoglot.persist import MAX_DESCRIPTION_BYTES, MAX_FILE_BYTES, ModelState, check_target, read_model, write_model

TEXTS = ["I am so happy", "Estoy furioso!!!", "", "أنا خائف 😱", "\ud800 x \x00", "no " * 700]
FILES = {"model.json", "weights.safetensors", "head.onnx", "README.md"}


@pytest.fixture
def folder(model_folder: Path, tmp_path: Path) -> Path:
    """A copy to be damaged."""
    return Path(shutil.copytree(model_folder, tmp_path / "model"))


@pytest.fixture(scope="session")
def state(model_folder: Path) -> ModelState:
    return read_model(model_folder)


def edit(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the description of a folder."""
    path = folder / "model.json"
    description = json.loads(path.read_text(encoding="utf-8"))
    change(description)
    path.write_text(json.dumps(description), encoding="utf-8")


def rehash(folder: Path, name: str) -> None:
    """Record what a file holds now, as somebody would who alters it on purpose."""
    data = (folder / name).read_bytes()
    recorded = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    edit(folder, lambda description: description["files"].update({name: recorded}))


def check_refused(folder: Path, message: str, kind: type[EmoglotError] = ModelError) -> None:
    with pytest.raises(kind) as caught:
        load(folder)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600


def content_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# The round trip


def test_a_round_trip_changes_no_bit(trained: EmotionClassifier, model_folder: Path, tmp_path: Path) -> None:
    loaded = load(model_folder)
    again = load(loaded.save(tmp_path / "again"))
    for other in (loaded, again):
        np.testing.assert_array_equal(other.predict_proba(TEXTS), trained.predict_proba(TEXTS))
        assert other.predict(TEXTS) == trained.predict(TEXTS)
        assert other.explain(TEXTS[1]) == trained.explain(TEXTS[1])
        assert other.thresholds_ == trained.thresholds_
        assert other.labels_ == trained.labels_
        assert other.metrics_ == trained.metrics_
        assert other.config == trained.config
    assert len(np.unique(trained.predict_proba(TEXTS))) > len(TEXTS)  # so there was something to compare
    assert content_of(tmp_path / "again")["weights.safetensors"] == content_of(model_folder)["weights.safetensors"]
    assert content_of(tmp_path / "again")["model.json"] == content_of(model_folder)["model.json"]


def test_names_that_no_file_can_hold_are_refused_before_training(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is UTF-8"):
        check_target(tmp_path / "caf\udce9")
    with pytest.raises(DataError, match="whole characters"):
        EmotionClassifier("tiny", labels=["joy", "\ud83d"])


def test_metrics_are_of_the_labels(folder: Path) -> None:
    def drop(description: dict[str, Any]) -> None:
        del description["metrics"]["overall"]["per_class"]["joy"]  # as if no validation row had said anything of it

    edit(folder, drop)
    assert load(folder).save(folder.with_name("again"))
    damages: list[Any] = [{}, {"overall": []}, {"overall": {"per_class": 3}}]
    for metrics in damages:
        edit(folder, lambda description, metrics=metrics: description.update(metrics=metrics))
        check_refused(folder, "does not describe a model")
    edit(folder, lambda description: description.update(metrics={"overall": {"per_class": {"boredom": {}}}}))
    check_refused(folder, "there are metrics of boredom, which is no label")


def test_no_folder_is_above_the_root() -> None:
    with pytest.raises(ModelError, match="not a model folder"):
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
    assert list(loaded.thresholds_.values()) == thresholds.tolist()
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


def test_the_card(trained: EmotionClassifier, model_folder: Path) -> None:
    text = (model_folder / "README.md").read_text(encoding="utf-8")
    metrics = trained.metrics_["overall"]
    assert text.startswith("# tiny-model\n")
    for label, entry in metrics["per_class"].items():
        threshold = trained.thresholds_[label]
        shown = "never predicted" if math.isinf(threshold) else f"{threshold:.3f}"
        assert f"| {label} | {shown} | {100 * entry['precision']:.1f} |" in text
    for name, entry in {**trained.metrics_["languages"], "all": metrics}.items():
        assert f"| {name} | {entry['rows']} | {100 * entry['macro_f1']:.1f} | {100 * entry['micro_f1']:.1f} |" in text
    assert f"Measured on {metrics['rows']} validation rows" in text
    assert "the frozen encoder `tiny`" in text
    assert "- `head.hidden` = `8`" in text
    data = json.loads((model_folder / "model.json").read_text(encoding="utf-8"))["training"]["data"]
    for part, summary in data.items():
        languages = ", ".join(f"{code} {rows}" for code, rows in summary["languages"].items())
        assert f"| {part} | {summary['rows']} | {languages} |" in text
        assert summary["fingerprint"][:16] in text


def test_a_bar_in_a_label_does_not_break_the_card(state: ModelState, tmp_path: Path) -> None:
    rename = {name: "joy|love" if name == "joy" else name for name in state.labels}
    labels, overall = tuple(rename.values()), state.metrics["overall"]
    per_class = {rename[name]: entry for name, entry in overall["per_class"].items()}
    metrics = {**state.metrics, "overall": {**overall, "per_class": per_class}}
    write_model(replace(state, labels=labels, metrics=metrics), tmp_path / "model", "0")
    lines = (tmp_path / "model" / "README.md").read_text(encoding="utf-8").splitlines()
    (row,) = [line for line in lines if line.startswith("| joy")]
    assert row.replace(r"\|", "").count("|") == 7
    assert load(tmp_path / "model").labels_ == labels


def test_only_the_core_is_needed(trained: EmotionClassifier, model_folder: Path) -> None:
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


# Damage


def test_there_is_no_folder(tmp_path: Path) -> None:
    check_refused(tmp_path / "none", "there is no model folder")
    check_refused(tmp_path, "it has no model.json")


@pytest.mark.parametrize("part", [0, 0.5, 0.999])
@pytest.mark.parametrize("name", sorted(FILES - {"README.md"}))
def test_a_truncated_file(name: str, part: float, folder: Path) -> None:
    data = (folder / name).read_bytes()
    (folder / name).write_bytes(data[: int(part * len(data))])
    check_refused(folder, "is not readable JSON" if name == "model.json" else "it is truncated or foreign")


@pytest.mark.parametrize("name", sorted(FILES - {"README.md"}))
def test_a_missing_file(name: str, folder: Path) -> None:
    (folder / name).unlink()
    check_refused(folder, f"it has no {name}" if name == "model.json" else f"is incomplete: {name} is missing")


@settings(deadline=None, max_examples=30)
@given(name=st.sampled_from(["weights.safetensors", "head.onnx"]), data=st.data())
def test_one_altered_byte(
    name: str, data: st.DataObject, model_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = Path(shutil.copytree(model_folder, tmp_path_factory.mktemp("altered") / "model"))
    content = bytearray((folder / name).read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    (folder / name).write_bytes(content)
    check_refused(folder, "was altered: its sha256 is not the recorded one")
    shutil.rmtree(folder)


@settings(deadline=None, max_examples=200)
@given(data=st.data())
def test_one_altered_byte_of_the_description(
    data: st.DataObject, model_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Many bytes may change without harm, such as those of a figure; any harm must be ours to report."""
    content = bytearray((model_folder / "model.json").read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    folder = tmp_path_factory.mktemp("altered")
    for name in ("weights.safetensors", "head.onnx"):
        shutil.copy(model_folder / name, folder / name)
    (folder / "model.json").write_bytes(content)
    with suppress(ModelError, EncoderError):
        assert load(folder).predict_proba(["so happy"]).shape == (1, 5)
    shutil.rmtree(folder)


def test_the_card_is_for_people_only(folder: Path, trained: EmotionClassifier) -> None:
    (folder / "README.md").unlink()
    np.testing.assert_array_equal(load(folder).predict_proba(TEXTS), trained.predict_proba(TEXTS))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{}", "format must be 'emoglot-model'"),
        (b"[]", "format must be 'emoglot-model'"),
        (b'{"format": "layers-model"}', "format must be 'emoglot-model'"),
        (b'{"format": "emoglot-model"}', "version must be a positive integer, got None"),
        (b'{"format": "emoglot-model", "version": true}', "version must be a positive integer, got True"),
        (b'{"format": "emoglot-model", "version": 2}', "pip install -U emoglot"),
        (b'{"format": "emoglot-model", "version": 1}', "records no size and hash"),
        (b'{"format": NaN}', "is not readable JSON: NaN"),
        (b"\xff\xfe{}", "is not readable JSON"),
        (b"[" * 100_000, "is not readable JSON"),
    ],
)
def test_a_foreign_description(content: bytes, message: str, folder: Path) -> None:
    (folder / "model.json").write_bytes(content)
    check_refused(folder, message)


DAMAGES: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "a label less": (lambda d: d["labels"].pop(), "one threshold for each of 4 labels"),
    "a label and its threshold less": (lambda d: (d["labels"].pop(), d["thresholds"].pop()), "4 labels"),
    "no labels": (lambda d: d.update(labels=[]), "at least one label"),
    "labels that are one word": (lambda d: d.update(labels="anger"), "stands where a list must"),
    "a label twice": (lambda d: d.update(labels=["joy"] * 5), "'joy' more than once"),
    "a label that is a number": (lambda d: d.update(labels=[1, 2, 3, 4, 5]), "non-empty string, got 1"),
    "a threshold above 1": (lambda d: d["thresholds"].__setitem__(0, 1.7), "must be in [0, 1] or null, got [1.7"),
    "a threshold below 0": (lambda d: d["thresholds"].__setitem__(0, -0.1), "must be in [0, 1] or null, got [-0.1"),
    "a threshold that is text": (lambda d: d["thresholds"].__setitem__(0, "0.5"), "'0.5' stands where a number must"),
    "a threshold that is true": (lambda d: d["thresholds"].__setitem__(0, True), "True stands where a number must"),
    "a threshold that is NaN": (lambda d: d["thresholds"].__setitem__(0, math.nan), "NaN is not a number in JSON"),
    "an infinite threshold": (lambda d: d["thresholds"].__setitem__(0, math.inf), "Infinity is not a number in JSON"),
    "a huge threshold": (lambda d: d["thresholds"].__setitem__(0, 10**400), "too large"),
    "NaN among the metrics": (lambda d: d["metrics"].update(macro_f1=math.nan), "NaN is not a number in JSON"),
    "another normalisation": (lambda d: d.update(normalisation=999), "was trained on normalisation 999"),
    "no normalisation": (lambda d: d.pop("normalisation"), "was trained on normalisation None"),
    "no config": (lambda d: d.pop("config"), "'config' is missing"),
    "a config that is a list": (lambda d: d.update(config=[]), "[] stands where a dict must"),
    "an unknown setting": (lambda d: d["config"].update(volume=11), "there is no setting 'volume'"),
    "a setting out of range": (lambda d: d["config"]["wide"].update(buckets=0), "wide.buckets must be in"),
    "other buckets": (lambda d: d["config"]["wide"].update(buckets=256), "must fit 256 buckets"),
    "no encoder": (lambda d: d.pop("encoder"), "'encoder' is missing"),
    "an encoder that is text": (lambda d: d.update(encoder="tiny"), "does not describe a model"),
    "metrics that are text": (lambda d: d.update(metrics=""), "'' stands where a dict must"),
    "another fingerprint": (lambda d: d["encoder"].update(fingerprint="f00"), "its scores would mean nothing"),
    "no hashes": (lambda d: d.pop("files"), "records no size and hash"),
    "a hash that is a list": (lambda d: d["files"].update({"head.onnx": []}), "records no size and hash"),
    "an endless file": (lambda d: d["files"]["head.onnx"].update(bytes=10**400), "must have 1000"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_description_that_does_not_fit(damage: str, folder: Path) -> None:
    change, message = DAMAGES[damage]
    edit(folder, change)
    with pytest.raises(ModelError) as caught:
        load(folder)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_number_beyond_floating_point(folder: Path) -> None:
    text = (folder / "model.json").read_text(encoding="utf-8")
    size = (folder / "head.onnx").stat().st_size
    (folder / "model.json").write_text(text.replace(f'"bytes": {size}', '"bytes": 1e999'), encoding="utf-8")
    check_refused(folder, "records no size and hash for head.onnx")


def test_weights_that_fit_the_hash_but_not_the_model(folder: Path) -> None:
    tensors = load_file(folder / "weights.safetensors")
    del tensors["wide.idf"]
    save_file(tensors, folder / "weights.safetensors")
    rehash(folder, "weights.safetensors")
    check_refused(folder, "'idf' is missing")
    (folder / "weights.safetensors").write_bytes(b"nonsense")
    rehash(folder, "weights.safetensors")
    check_refused(folder, "does not describe a model")


def test_a_network_that_fits_the_hash_but_is_none(folder: Path) -> None:
    (folder / "head.onnx").write_bytes(b"nonsense")
    rehash(folder, "head.onnx")
    check_refused(folder, "can't be run by onnxruntime")


def test_a_file_of_absurd_size_is_not_read(folder: Path) -> None:
    """Two gigabytes of nothing, which take no room on the disk, are refused by their size."""
    size = 2 * MAX_FILE_BYTES
    with (folder / "weights.safetensors").open("wb") as file:
        file.truncate(size)
    edit(folder, lambda description: description["files"]["weights.safetensors"].update(bytes=size))
    check_refused(folder, f"may have {MAX_FILE_BYTES} bytes")
    with (folder / "model.json").open("ab") as file:
        file.truncate(MAX_DESCRIPTION_BYTES + 1)
    check_refused(folder, f"may have {MAX_DESCRIPTION_BYTES} bytes")


@pytest.mark.parametrize("shape", [[2**40], [2**62, 2**62], [-1]])
def test_tensors_of_absurd_shape_are_refused(shape: list[int], folder: Path) -> None:
    header = json.dumps({"wide.bias": {"dtype": "F32", "shape": shape, "data_offsets": [0, 4]}}).encode()
    (folder / "weights.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))
    rehash(folder, "weights.safetensors")
    check_refused(folder, "does not describe a model")


@pytest.mark.parametrize("changes", [{"head": {"hidden": 10**9}}, {"wide": {"buckets": 2**60}}])
def test_settings_of_absurd_size_are_refused(changes: dict[str, Any], folder: Path) -> None:
    for section, values in changes.items():
        edit(folder, lambda description: description["config"][section].update(values))  # noqa: B023
    check_refused(folder, "must be in")


def test_no_path_in_the_description_leads_out_of_the_folder(folder: Path, tmp_path: Path) -> None:
    """File names are constants: what a description lists beside them is never opened."""
    outside = tmp_path / "secret"
    outside.write_text("secret")
    edit(folder, lambda description: description["files"].update({f"../{outside.name}": {"bytes": 6, "sha256": "x"}}))
    assert load(folder).predict(["a"])
    edit(folder, lambda description: description["files"].pop("head.onnx"))
    check_refused(folder, "records no size and hash for head.onnx")


# The encoder


def test_an_encoder_that_moved(folder: Path, tmp_path: Path, trained: EmotionClassifier) -> None:
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

    with pytest.raises(ModelError, match="maps 32 dimensions to 5 labels, the encoder gives 64"):
        load(model_folder, encoder=Wider())


# Writing


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
def test_a_foreign_folder_is_left_alone(contents: dict[str, str], trained: EmotionClassifier, tmp_path: Path) -> None:
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
def test_what_a_user_put_beside_a_model_is_left_alone(extra: str, folder: Path, trained: EmotionClassifier) -> None:
    (folder / extra).parent.mkdir(exist_ok=True)
    (folder / extra).write_text("mine", encoding="utf-8")
    before = content_of(folder)
    with pytest.raises(ModelError, match="nothing was overwritten"):
        trained.save(folder)
    assert content_of(folder) == before


def test_a_file_is_left_alone(trained: EmotionClassifier, tmp_path: Path) -> None:
    target = tmp_path / "model.json"
    target.write_text("mine", encoding="utf-8")
    with pytest.raises(ModelError, match="nothing was overwritten"):
        trained.save(target)
    assert target.read_text(encoding="utf-8") == "mine"


def test_an_empty_folder_is_free(trained: EmotionClassifier, tmp_path: Path) -> None:
    target = tmp_path / "some" / "where"
    target.mkdir(parents=True)
    check_target(target)
    assert content_of(trained.save(target)).keys() == FILES
    assert [path.name for path in target.parent.iterdir()] == ["where"]


def test_a_model_replaces_a_model(state: ModelState, folder: Path) -> None:
    thresholds = np.full_like(state.thresholds, 0.25)
    write_model(replace(state, thresholds=thresholds), folder, "0")
    assert set(load(folder).thresholds_.values()) == {0.25}
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
    monkeypatch.setattr(card, "render", fail)
    with pytest.raises(OSError, match="no space left"):
        write_model(replace(state, thresholds=np.full_like(state.thresholds, 0.25)), folder, "0")
    assert content_of(folder.parent) == before
    assert [path.name for path in folder.parent.iterdir()] == (["model"] if is_there else [])


def test_a_folder_is_for_others_to_read(model_folder: Path) -> None:
    assert model_folder.stat().st_mode & 0o055 == 0o055


def test_the_docstring_draws_the_folder() -> None:
    assert all(f"── {name} " in (persist.__doc__ or "") for name in FILES | {"languages.json"})
