"""Model folders from elsewhere: each is refused in one sentence that names the file, or answers as before."""

from __future__ import annotations

import json
import os
import shutil
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file, save

from emoglot import load
from emoglot.errors import EncoderError, ModelError
from emoglot.inference.checks import MAX_LABELS, MAX_PAGE_BYTES
from emoglot.inference.folder import read_model, write_model, write_page
from tests.hostile.folders import TEXT, check_refused, edit_json, put

PAGES = ("README.md", "languages.json")


@pytest.fixture
def folder(model_folder: Path, tmp_path: Path) -> Path:
    """A copy to be altered."""
    return Path(shutil.copytree(model_folder, tmp_path / "model"))


# Links, pipes and sizes


@pytest.mark.parametrize("name", ["model.json", "weights.safetensors", "head.onnx", "README.md"])
def test_a_link_that_leads_out(name: str, folder: Path, tmp_path: Path) -> None:
    (folder / name).rename(tmp_path / "elsewhere")
    (folder / name).symlink_to(tmp_path / "elsewhere")
    check_refused(folder, name, "points outside of")


def test_a_link_to_a_secret_is_never_served(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret", encoding="utf-8")
    (folder / "languages.json").symlink_to(tmp_path / "secret")
    check_refused(folder, "languages.json", "points outside of")


def test_a_link_that_leads_nowhere(folder: Path) -> None:
    (folder / "languages.json").symlink_to(folder / "nothing")
    check_refused(folder, "languages.json")


def test_a_link_inside_the_folder_is_fine(folder: Path) -> None:
    (folder / "head.onnx").rename(folder / "blob")
    (folder / "head.onnx").symlink_to("blob")
    assert load(folder).predict(TEXT)


def test_a_linked_folder_is_fine(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(folder)
    assert load(tmp_path / "link").predict(TEXT)


@pytest.mark.parametrize("name", ["weights.safetensors", "README.md", "languages.json"])
def test_a_pipe_does_not_hang(name: str, folder: Path) -> None:
    (folder / name).unlink(missing_ok=True)
    os.mkfifo(folder / name)
    check_refused(folder, name)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_of_absurd_size_is_not_read(name: str, folder: Path) -> None:
    with (folder / name).open("wb") as file:
        file.truncate(3 * 2**30)
    check_refused(folder, name, f"may have at most {MAX_PAGE_BYTES} bytes")


# Pages for people


def test_what_was_measured_is_recorded_when_it_is_written(folder: Path) -> None:
    write_page(folder, "languages.json", "[]\n")
    write_page(folder, "README.md", "# Mine\n")
    assert load(folder).predict(TEXT)
    (folder / "languages.json").write_text("[ ]", encoding="utf-8")
    check_refused(folder, "languages.json")
    (folder / "languages.json").unlink()  # it is for people: a model works without it
    assert load(folder).predict(TEXT)
    with pytest.raises(ValueError, match=r"only README\.md and languages\.json"):
        write_page(folder, "head.onnx", "")


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("README.md", b"\xff\xfe card"),
        ("languages.json", b"\xff"),
        ("languages.json", b"[" * 100_000),
        ("languages.json", b"{}"),
        ("languages.json", b"[1]"),
        ("languages.json", b"[NaN]"),
    ],
)
def test_a_page_that_nobody_can_read(name: str, data: bytes, folder: Path) -> None:
    put(folder, name, data)
    check_refused(folder, name)
    edit_json(folder / "model.json", lambda values: values["files"].pop(name))
    check_refused(folder, name)


def test_a_folder_of_an_earlier_version_does_not_record_what_was_measured(folder: Path) -> None:
    (folder / "languages.json").write_text("[]", encoding="utf-8")
    assert load(folder).predict(TEXT)


# Weights


@pytest.mark.parametrize("name", ["wide.weights", "wide.steps", "wide.bias", "wide.signs", "wide.idf", "head.0"])
@pytest.mark.parametrize("dtype", [np.float64, np.int16, np.bool_])
def test_weights_of_another_type(name: str, dtype: Any, folder: Path) -> None:
    tensors = load_file(folder / "weights.safetensors")
    tensors[name] = tensors.get(name, np.zeros(3)).astype(dtype)
    put(folder, "weights.safetensors", save(tensors))
    check_refused(folder, "weights.safetensors", f"{name!r} must be", np.dtype(dtype).name)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["wide.bias", "wide.steps", "wide.idf", "wide.unknown_idf"])
def test_weights_that_are_no_numbers(name: str, value: float, folder: Path) -> None:
    tensors = load_file(folder / "weights.safetensors")
    tensors[name] = tensors[name].copy()  # the library's may be read-only
    tensors[name].flat[-1] = value
    put(folder, "weights.safetensors", save(tensors))
    check_refused(folder, "weights.safetensors", f"{name!r} must be finite")


def test_weights_of_unknown_name(folder: Path) -> None:
    tensors = load_file(folder / "weights.safetensors") | {"else": np.zeros(1, np.float32)}
    put(folder, "weights.safetensors", save(tensors))
    check_refused(folder, "weights.safetensors", "'else' must be named")


@pytest.mark.parametrize("dtype", ["BF16", "F8_E4M3", "F4", "X", 7, None])
def test_types_that_numpy_does_not_have(dtype: Any, folder: Path) -> None:
    header = json.dumps({"wide.bias": {"dtype": dtype, "shape": [2], "data_offsets": [0, 4]}}).encode()
    put(folder, "weights.safetensors", len(header).to_bytes(8, "little") + header + bytes(4))
    check_refused(folder)


# Names


def test_a_hundred_thousand_labels_are_refused_at_once(folder: Path) -> None:
    def change(values: dict[str, Any]) -> None:
        values["labels"] = [f"label {number}" for number in range(100_000)]
        values["thresholds"] = [0.5] * 100_000

    edit_json(folder / "model.json", change)
    start = time.process_time()
    check_refused(folder, "model.json", f"may have at most {MAX_LABELS} labels, got 100000")
    assert time.process_time() - start < 1


def test_too_many_labels_are_not_written(folder: Path) -> None:
    state = replace(read_model(folder), labels=tuple(map(str, range(MAX_LABELS + 1))))
    with pytest.raises(ModelError, match=f"may have at most {MAX_LABELS} labels"):
        write_model(state, folder.with_name("new"), "0")


@pytest.mark.parametrize(
    "name",
    ["../encoder", "./../encoder", "//host/share", "\\\\host\\share", "a" * 300, "/" + "a" * 300, "a\0b", "~x", ""],
)
def test_encoder_names_that_lead_elsewhere(name: str, folder: Path) -> None:
    edit_json(folder / "model.json", lambda values: values["encoder"].update(name=name))
    check_refused(folder, "model.json", "encoder")


# Anything at all


@settings(deadline=None, max_examples=100)
@given(data=st.data())
def test_any_value_anywhere_in_the_description(data: st.DataObject, model_folder: Path) -> None:
    """Put a value of another kind somewhere into model.json: an error must be ours."""
    values = json.loads((model_folder / "model.json").read_text(encoding="utf-8"))
    place = values
    for _ in range(data.draw(st.integers(0, 3))):
        inner = [key for key, value in place.items() if isinstance(value, dict) and value]
        if not inner:
            break
        place = place[data.draw(st.sampled_from(inner))]
    odd = st.sampled_from([None, True, -1, 2**70, 1e300, "", "x" * 300, "../x", [], {}, [[]], [None], {"": 0}])
    place[data.draw(st.sampled_from(sorted(place)))] = data.draw(odd)
    folder = model_folder.with_name("any")
    shutil.copytree(model_folder, folder, dirs_exist_ok=True)
    (folder / "model.json").write_text(json.dumps(values), encoding="utf-8")
    with suppress(ModelError, EncoderError):
        assert load(folder).predict_proba([TEXT]).shape[0] == 1


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_any_byte_of_the_weights_with_a_fitting_hash(data: st.DataObject, model_folder: Path) -> None:
    folder = model_folder.with_name("bytes")
    shutil.copytree(model_folder, folder, dirs_exist_ok=True)
    name = data.draw(st.sampled_from(["weights.safetensors", "languages.json", "README.md"]))
    content = bytearray((folder / name).read_bytes() if (folder / name).exists() else b'[{"code": "en"}]')
    content[data.draw(st.integers(0, min(len(content), 600) - 1))] = data.draw(st.integers(0, 255))
    put(folder, name, bytes(content))
    with suppress(ModelError):
        assert load(folder).predict_proba([TEXT]).shape[0] == 1
    (folder / "languages.json").unlink(missing_ok=True)
