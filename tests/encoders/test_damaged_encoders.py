"""Damaged encoder folders are refused in one sentence."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from emoglot.encoders.registry import load_encoder
from emoglot.errors import EncoderError, UsageError
from tests.encoders.tools import changed_copy


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"version": "1"},
        {"version": 0},
        {"name": 5},
        {"fingerprint": None},
        {"fingerprint": "../elsewhere"},
        {"dim": 33},
        {"dim": "32"},
        {"max_tokens": 2},
        {"max_tokens": -1},
        {"max_tokens": 1e3},
        {"max_tokens": None},
        {"layout": "circular"},
        {"input_names": ["input_ids"]},
        {"input_names": ["input_ids", "mask"]},
        {"input_names": "ab"},
        {"input_names": [1, 2]},
        {"input_names": [{}, []]},
        {"output_name": "nothing"},
        {"output_name": {}},
        {"one_by_one": "no"},
    ],
    ids=str,
)
def test_a_description_that_is_wrong(change: dict[str, Any], float_folder: Path, tmp_path: Path) -> None:
    folder = changed_copy(float_folder, tmp_path / "damaged", **change)
    with pytest.raises(EncoderError, match=r"install the encoder again|pip install -U emoglot"):
        load_encoder(str(folder))


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b"{}", b"\xff\xfe", b"[" * 100_000])
def test_a_description_that_is_none(content: bytes, float_folder: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(float_folder, tmp_path / "damaged")
    (folder / "encoder.json").write_bytes(content)
    with pytest.raises(EncoderError, match="install the encoder again"):
        load_encoder(str(folder))


@pytest.mark.parametrize("part", [0, 0.3, 0.9, None], ids=["empty", "third", "most", "missing"])
@pytest.mark.parametrize("file", ["model.onnx", "tokenizer.json"])
def test_a_truncated_export(file: str, part: float | None, float_folder: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(float_folder, tmp_path / "damaged")
    content = (folder / file).read_bytes()
    (folder / file).unlink() if part is None else (folder / file).write_bytes(content[: int(part * len(content))])
    with pytest.raises(EncoderError, match="install or export it again"):
        load_encoder(str(folder))


def test_a_network_of_another_export_is_refused(float_folder: Path, int8_folder: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(float_folder, tmp_path / "swapped")
    shutil.copy(int8_folder / "model.onnx", folder / "model.onnx")
    with pytest.raises(EncoderError, match="have changed since they were written"):
        load_encoder(str(folder))


@pytest.mark.parametrize("setting", ["hidden_act", "layer_norm_eps"])
def test_the_fingerprint_sees_the_settings_of_a_network(setting: str, xlmr_folder: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(xlmr_folder, tmp_path / "other")
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config[setting] = {"hidden_act": "relu", "layer_norm_eps": 0.1}[setting]
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    assert load_encoder(folder).fingerprint != load_encoder(xlmr_folder).fingerprint


def test_a_folder_is_never_looked_up_on_the_hub(xlmr_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(xlmr_folder.parent)
    name = load_encoder(xlmr_folder.name).name
    assert name == f"./{xlmr_folder.name}"
    monkeypatch.chdir("/")
    with pytest.raises(EncoderError, match=r"there is no encoder folder \./"):
        load_encoder(name)


@pytest.mark.parametrize("name", [3, None, ["tiny"]])
def test_what_is_no_encoder_is_refused(name: object) -> None:
    with pytest.raises(UsageError, match="a name, a folder or an Encoder"):
        load_encoder(name)


@pytest.mark.parametrize("part", [0, 0.5])
@pytest.mark.parametrize("file", ["model.safetensors", "tokenizer.json", "config.json"])
def test_a_truncated_transformers_folder(file: str, part: float, xlmr_folder: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(xlmr_folder, tmp_path / "damaged")
    content = (folder / file).read_bytes()
    (folder / file).write_bytes(content[: int(part * len(content))])
    with pytest.raises(EncoderError, match="is not a readable transformers folder"):
        load_encoder(str(folder))
