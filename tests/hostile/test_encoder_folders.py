"""Encoder folders from elsewhere: every error is an EncoderError of one sentence that names the file."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from emoglot import load
from emoglot.encoders.description import EncoderDescription
from emoglot.encoders.foreign import foreign_errors
from emoglot.encoders.onnx import OnnxEncoder
from emoglot.encoders.registry import load_encoder
from emoglot.errors import EncoderError, ModelError
from tests.hostile.conftest import make_network
from tests.hostile.folders import TEXT, check_encoder_refused, check_refused, edit_json, put, put_in_encoder


def opens(folder: Path) -> Callable[[], object]:
    return lambda: OnnxEncoder(folder)


def uses(folder: Path) -> Callable[[], object]:
    return lambda: OnnxEncoder(folder).encode([TEXT])


def test_the_folder_itself_works(plain_encoder: Path, whole_model: Path) -> None:
    assert OnnxEncoder(plain_encoder).encode([TEXT]).vectors.shape == (3, 32)
    assert load(whole_model).predict(TEXT).scores


# Links, pipes and sizes


@pytest.mark.parametrize("name", ["encoder.json", "model.onnx", "tokenizer.json"])
def test_a_link_that_leads_out(name: str, encoder_folder: Path, tmp_path: Path) -> None:
    (encoder_folder / name).rename(tmp_path / "elsewhere")
    (encoder_folder / name).symlink_to(tmp_path / "elsewhere")
    check_encoder_refused(opens(encoder_folder), name, "points outside of")


def test_a_model_whose_encoder_is_a_link(whole_model: Path, plain_encoder: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(whole_model, tmp_path / "model"))
    shutil.rmtree(folder / "encoder")
    (folder / "encoder").symlink_to(plain_encoder)
    check_refused(folder, "encoder", "points outside of")


def test_a_folder_inside_that_is_a_link(encoder_folder: Path) -> None:
    (encoder_folder / "more").symlink_to("/usr")
    check_encoder_refused(opens(encoder_folder), "more")


def test_a_pipe_does_not_hang(encoder_folder: Path) -> None:
    (encoder_folder / "tokenizer.json").unlink()
    os.mkfifo(encoder_folder / "tokenizer.json")
    check_encoder_refused(opens(encoder_folder), "tokenizer.json", "regular file")


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json", "weights.data", "encoder.json"])
def test_three_gigabytes_are_refused_before_they_are_read(name: str, encoder_folder: Path) -> None:
    with (encoder_folder / name).open("ab") as file:
        file.truncate(3 * 2**30)
    start = time.process_time()
    check_encoder_refused(opens(encoder_folder), name)
    assert time.process_time() - start < 0.5


def test_weights_of_another_size_are_refused_before_they_are_read(encoder_folder: Path) -> None:
    put_in_encoder(encoder_folder, "weights.data", b"weights")
    with (encoder_folder / "weights.data").open("ab") as file:
        file.truncate(3 * 2**30)
    start = time.process_time()
    check_encoder_refused(opens(encoder_folder), "weights.data", "have changed since they were written")
    assert time.process_time() - start < 0.5


def test_folders_of_an_earlier_version_record_no_sizes(encoder_folder: Path) -> None:
    edit_json(encoder_folder / "encoder.json", lambda values: values.pop("sizes"))
    assert OnnxEncoder(encoder_folder).encode([TEXT])


def test_ten_thousand_files(encoder_folder: Path) -> None:
    (encoder_folder / "more").mkdir()
    for number in range(1100):
        (encoder_folder / "more" / str(number)).touch()
    check_encoder_refused(opens(encoder_folder), "may have at most 1000 files")


# External data


def with_external_data(folder: Path, location: str) -> None:
    """Move the table of the network to a file beside it."""
    network = make_network()
    (tensor,) = [item for item in network.graph.initializer if item.name == "table"]
    data = tensor.raw_data
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", "0"), ("length", str(len(data)))):
        tensor.external_data.add(key=key, value=value)
    put_in_encoder(folder, "model.onnx", network.SerializeToString())
    (folder / location).parent.mkdir(exist_ok=True)
    (folder / location).write_bytes(data)


@pytest.mark.parametrize("location", ["weights.data", "inner/weights.data"])
def test_external_data_is_hashed(location: str, encoder_folder: Path) -> None:
    with_external_data(encoder_folder, location)
    check_encoder_refused(opens(encoder_folder), location, "have changed since they were written")
    data = (encoder_folder / location).read_bytes()
    put_in_encoder(encoder_folder, location, data)
    assert OnnxEncoder(encoder_folder).encode([TEXT])
    (encoder_folder / location).write_bytes(b"\x01" + data[1:])
    check_encoder_refused(opens(encoder_folder), location, "have changed since they were written")


def test_external_data_outside_the_folder(encoder_folder: Path) -> None:
    with_external_data(encoder_folder, "../weights.data")
    check_encoder_refused(opens(encoder_folder), "model.onnx", "../weights.data")


# What libraries raise


def test_a_tokenizer_that_is_none(encoder_folder: Path) -> None:
    for content in (b"", b"{}", b"\xff", b"[" * 100_000, b'{"version": "1.0", "model": {"type": "Spell"}}'):
        put_in_encoder(encoder_folder, "tokenizer.json", content)
        check_encoder_refused(opens(encoder_folder), "tokenizer.json")


def test_token_ids_that_the_network_does_not_have(encoder_folder: Path) -> None:
    tokenizer = json.loads((encoder_folder / "tokenizer.json").read_text(encoding="utf-8"))
    tokenizer["model"]["vocab"]["happy"] = 10**6
    put_in_encoder(encoder_folder, "tokenizer.json", json.dumps(tokenizer).encode())
    check_encoder_refused(uses(encoder_folder), "model.onnx", "cannot be run")


def test_a_network_whose_vectors_do_not_fit_its_tokens(encoder_folder: Path) -> None:
    network = make_network()
    node = helper.make_node("Concat", ["states", "states"], ["doubled"], axis=1)
    network.graph.node.append(node)
    network.graph.output[0].name = "doubled"
    put_in_encoder(encoder_folder, "model.onnx", network.SerializeToString())
    edit_json(encoder_folder / "encoder.json", lambda values: values.update(output_name="doubled"))
    check_encoder_refused(uses(encoder_folder), "model.onnx", "must return 32 numbers for each of 5 tokens")


def test_a_broken_encoder_of_a_model_names_its_file(whole_model: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(whole_model, tmp_path / "model"))
    put_in_encoder(folder / "encoder", "tokenizer.json", b"{}")
    put(folder, "encoder/encoder.json", (folder / "encoder" / "encoder.json").read_bytes())
    check_refused(folder, "tokenizer.json", "copy or train the model again")


class PanicException(BaseException):  # as pyo3 names it
    """What Rust raises where it gives up."""


@pytest.mark.parametrize("error", [PanicException("index out of\nbounds"), RuntimeError(""), OSError("x" * 5000)])
def test_whatever_a_library_raises(error: BaseException) -> None:
    with (
        pytest.raises(EncoderError, match="file cannot be read: ") as caught,
        foreign_errors("file", EncoderError, "cannot be read", "copy it again"),
    ):
        raise error
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(1), ModelError("ours"), MemoryError()])
def test_what_is_not_a_librarys_passes(error: BaseException) -> None:
    with pytest.raises(type(error)), foreign_errors("file", EncoderError, "cannot be read", "copy it again"):
        raise error


# Names


@pytest.mark.parametrize("name", ["a" * 300, "a/" * 200, "/" + "a" * 5000, "./" + "b" * 300, "a\0b", "./a\0b"])
def test_names_that_no_file_has(name: str) -> None:
    check_encoder_refused(lambda: load_encoder(name))


def test_a_description_with_a_name_longer_than_a_file_name(encoder_folder: Path) -> None:
    edit_json(encoder_folder / "encoder.json", lambda values: values.update(name="a" * 10_000))
    check_encoder_refused(opens(encoder_folder), "encoder.json", "name must be at most 255 characters")


# Anything at all


def check_works_or_names(folder: Path, texts: list[str]) -> None:
    """Check that an encoder works, or is refused with the name of its folder."""
    message = str(folder)
    try:
        OnnxEncoder(folder).encode(texts)
    except EncoderError as error:
        message = str(error)
    assert str(folder) in message


@settings(deadline=None, max_examples=40)
@given(
    key=st.sampled_from(["name", "fingerprint", "dim", "max_tokens", "input_names", "files", "sizes", "extends"]),
    value=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=5,
    ),
)
def test_any_value_in_the_description(key: str, value: Any, plain_encoder: Path) -> None:
    folder = Path(shutil.copytree(plain_encoder, plain_encoder.with_name("any"), dirs_exist_ok=True))
    edit_json(folder / "encoder.json", lambda values: values.update({key: value}))
    check_works_or_names(folder, [TEXT])


@settings(deadline=None, max_examples=60)
@given(name=st.sampled_from(["model.onnx", "tokenizer.json"]), data=st.data())
def test_any_byte_with_a_fitting_hash(name: str, data: st.DataObject, plain_encoder: Path) -> None:
    """Damage on purpose never ends in another error than ours, whether the network is opened or run."""
    folder = Path(shutil.copytree(plain_encoder, plain_encoder.with_name("bytes"), dirs_exist_ok=True))
    content = bytearray((folder / name).read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    put_in_encoder(folder, name, bytes(content))
    check_works_or_names(folder, [TEXT, ""])


def test_an_output_whose_name_is_no_text(plain_encoder: Path) -> None:
    folder = Path(shutil.copytree(plain_encoder, plain_encoder.with_name("name"), dirs_exist_ok=True))
    content = (folder / "model.onnx").read_bytes()
    name = EncoderDescription.read(folder).output_name.encode()
    put_in_encoder(folder, "model.onnx", content.replace(name, b"\x80" + name[1:]))
    check_encoder_refused(opens(folder), "model.onnx")


def test_the_network_is_still_onnx(plain_encoder: Path) -> None:
    onnx.checker.check_model(onnx.load(plain_encoder / "model.onnx"))
