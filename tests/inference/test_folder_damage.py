"""A damaged model folder is refused in one sentence."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

from emoglot import load
from emoglot.errors import EncoderError, ModelError
from emoglot.inference.checks import MAX_FILE_BYTES
from emoglot.inference.description import MAX_DESCRIPTION_BYTES
from tests.inference.altered import FILES, check_refused, edit, rehash


def test_there_is_no_folder(tmp_path: Path) -> None:
    check_refused(tmp_path / "none", "there is no model folder")
    check_refused(tmp_path, "it has no model.json")


@pytest.mark.parametrize("part", [0, 0.5, 0.999])
@pytest.mark.parametrize("name", sorted(FILES - {"README.md"}))
def test_a_truncated_file(name: str, part: float, folder: Path) -> None:
    data = (folder / name).read_bytes()
    (folder / name).write_bytes(data[: int(part * len(data))])
    check_refused(folder, "is not readable JSON" if name == "model.json" else "it is truncated or another file")


@pytest.mark.parametrize("name", sorted(FILES - {"README.md"}))
def test_a_missing_file(name: str, folder: Path) -> None:
    (folder / name).unlink()
    check_refused(folder, f"it has no {name}" if name == "model.json" else f"is incomplete: {name} is missing")


@settings(max_examples=30)
@given(name=st.sampled_from(["weights.safetensors", "head.onnx"]), data=st.data())
def test_one_altered_byte(
    name: str, data: st.DataObject, model_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = Path(shutil.copytree(model_folder, tmp_path_factory.mktemp("altered") / "model"))
    content = bytearray((folder / name).read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    (folder / name).write_bytes(content)
    check_refused(folder, "has changed: its sha256 is not the recorded one")
    shutil.rmtree(folder)


@settings(max_examples=200)
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


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{}", "format must be 'emoglot-model'"),
        (b"[]", "format must be 'emoglot-model'"),
        (b'{"format": "layers-model"}', "format must be 'emoglot-model'"),
        (b'{"format": "emoglot-model"}', "version must be a positive integer, got None"),
        (b'{"format": "emoglot-model", "version": true}', "version must be a positive integer, got True"),
        (b'{"format": "emoglot-model", "version": 2}', "pip install -U emoglot"),
        (b'{"format": "emoglot-model", "version": 1}', "'labels' is missing"),
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
    "labels that are one word": (lambda d: d.update(labels="anger"), "labels must be a list, got 'anger'"),
    "a label twice": (lambda d: d.update(labels=["joy"] * 5), "'joy' more than once"),
    "a label that is a number": (lambda d: d.update(labels=[1, 2, 3, 4, 5]), "each of labels must be a text, got 1"),
    "a threshold above 1": (lambda d: d["thresholds"].__setitem__(0, 1.7), "must be in [0, 1] or null, got [1.7"),
    "a threshold below 0": (lambda d: d["thresholds"].__setitem__(0, -0.1), "must be in [0, 1] or null, got [-0.1"),
    "a threshold that is text": (
        lambda d: d["thresholds"].__setitem__(0, "0.5"),
        "must be a number, got '0.5'",
    ),
    "a threshold that is true": (
        lambda d: d["thresholds"].__setitem__(0, True),
        "must be a number, got True",
    ),
    "a threshold that is NaN": (lambda d: d["thresholds"].__setitem__(0, math.nan), "NaN is not a JSON number"),
    "an infinite threshold": (lambda d: d["thresholds"].__setitem__(0, math.inf), "Infinity is not a JSON number"),
    "a huge threshold": (lambda d: d["thresholds"].__setitem__(0, 10**400), "too large"),
    "NaN among the metrics": (lambda d: d["metrics"].update(macro_f1=math.nan), "NaN is not a JSON number"),
    "another normalisation": (
        lambda d: d.update(normalisation=999),
        "was trained with version 999 of the normalisation",
    ),
    "no normalisation": (lambda d: d.pop("normalisation"), "was trained with version None of the normalisation"),
    "no config": (lambda d: d.pop("config"), "'config' is missing"),
    "a config that is a list": (lambda d: d.update(config=[]), "config must be a table, got []"),
    "an unknown setting": (lambda d: d["config"].update(volume=11), "there is no setting 'volume'"),
    "a setting out of range": (lambda d: d["config"]["wide"].update(buckets=0), "wide.buckets must be in"),
    "other buckets": (lambda d: d["config"]["wide"].update(buckets=256), "must fit 256 buckets"),
    "no encoder": (lambda d: d.pop("encoder"), "'encoder' is missing"),
    "an encoder that is text": (lambda d: d.update(encoder="tiny"), "does not describe a model"),
    "metrics that are text": (lambda d: d.update(metrics=""), "metrics must be a table, got ''"),
    "another fingerprint": (lambda d: d["encoder"].update(fingerprint="f00"), "use the original encoder"),
    "no hashes": (lambda d: d.pop("files"), "'files' is missing"),
    "no hash of the head": (lambda d: d["files"].pop("head.onnx"), "records no size and hash for head.onnx"),
    "a hash that is a list": (
        lambda d: d["files"].update({"head.onnx": []}),
        "head.onnx must be a table, got []",
    ),
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
    check_refused(folder, "files.head.onnx.bytes must be a whole number, got inf")


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
    check_refused(folder, "cannot be run by onnxruntime")


def test_a_file_of_absurd_size_is_not_read(folder: Path) -> None:
    """Two gigabytes of nothing, which take no room on the disk, are refused by their size."""
    size = 2 * MAX_FILE_BYTES
    with (folder / "weights.safetensors").open("wb") as file:
        file.truncate(size)
    edit(folder, lambda description: description["files"]["weights.safetensors"].update(bytes=size))
    check_refused(folder, f"may have at most {MAX_FILE_BYTES} bytes")
    with (folder / "model.json").open("ab") as file:
        file.truncate(MAX_DESCRIPTION_BYTES + 1)
    check_refused(folder, f"may have at most {MAX_DESCRIPTION_BYTES} bytes")


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
