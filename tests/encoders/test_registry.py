"""Encoders by name: what is found, what is listed, what a user is told when there is none."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from emoglot.encoders import store
from emoglot.encoders.onnx import OnnxEncoder
from emoglot.encoders.registry import list_encoders, load_encoder, load_trainable
from emoglot.encoders.tiny import TinyEncoder
from emoglot.errors import EncoderError
from tests.encoders.tools import changed_copy, python_without


@pytest.mark.parametrize(
    ("name", "way_out"),
    [
        ("nobody/has-this", "`emoglot encoders` lists the available"),
        ("/gone/away", "`emoglot encoders` lists the available"),
        ("e5-small", "emoglot encoders install e5-small"),
        ("nobody/has-this#x", "as in nobody/has-this#12, got 'x'"),
        ("nobody/has-this#", "as in nobody/has-this#12, got ''"),
        ("nobody/has-this#²", "as in nobody/has-this#12, got '²'"),
        ("nobody/has-this#-1", "as in nobody/has-this#12, got '-1'"),
    ],
)
def test_a_name_without_an_encoder(name: str, way_out: str) -> None:
    with pytest.raises(EncoderError) as caught:
        load_encoder(name)
    assert way_out in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["x" * 300, f"/{'x' * 300}", "a\0b"])
def test_a_name_that_no_folder_can_have(name: str) -> None:
    for load in (load_encoder, load_trainable):
        with pytest.raises(EncoderError, match="`emoglot encoders` lists the available"):
            load(name)


def test_a_layer_that_is_not_there(xlmr_folder: Path) -> None:
    with pytest.raises(EncoderError, match=r"layers 0 \(embeddings\) to 2, got layer 3"):
        load_encoder(f"{xlmr_folder}#3")


def test_a_folder_that_is_no_encoder(tmp_path: Path) -> None:
    with pytest.raises(
        EncoderError, match=r"neither encoder.json \(written by `emoglot encoders export`\) nor config.json"
    ):
        load_encoder(str(tmp_path))


def test_an_encoder_is_its_own_name() -> None:
    tiny = TinyEncoder()
    assert load_encoder(tiny) is tiny
    assert isinstance(load_encoder("tiny"), TinyEncoder)


@pytest.mark.parametrize("blocked", ["torch", "transformers"])
def test_without_the_hub_extra(blocked: str, xlmr_folder: Path) -> None:
    code = (
        "from emoglot.encoders.registry import load_encoder\nfrom emoglot.errors import MissingExtraError\n"
        "try: load_encoder(sys.argv[1])\nexcept MissingExtraError as error: print(error)"
    )
    output = python_without(blocked, code=code, arguments=(str(xlmr_folder),))
    assert f"needs {blocked!r}" in output
    assert "pip install 'emoglot[hub]'" in output


def test_the_list(float_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMOGLOT_CACHE", str(tmp_path))
    before = {info.name: info for info in list_encoders()}
    assert before["tiny"].installed
    for name, options in (("e5-small", "e5-small"), ("e5-small-int8", "e5-small --quantize int8")):
        assert (before[name].installed, before[name].megabytes) == (False, 91)
        assert before[name].hint == f"emoglot encoders install {options}"
    assert (before["xlm-roberta-large"].kind, before["xlm-roberta-large"].megabytes) == ("hub", 2250)

    shutil.copytree(float_folder, store.encoder_folder("our-float"))
    changed_copy(float_folder, store.encoder_folder(".our-draft"), name="our-draft")  # of a process that died
    damaged = shutil.copytree(float_folder, store.encoder_folder("our-damaged"))
    (damaged / "encoder.json").write_text("{")
    after = {info.name: info for info in list_encoders()}
    assert after.keys() - before.keys() == {"our-float"}
    assert after["our-float"].installed
    assert after["our-float"].megabytes == store.folder_size(float_folder) / 1e6
    assert len(list_encoders()) == len(after)
    assert load_encoder("our-float").fingerprint == OnnxEncoder(float_folder).fingerprint
