"""What is fuzzed: functions of any bytes, which raise for a finding and return otherwise."""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError

from emoglot import load
from emoglot.data.lines import MalformedLineError
from emoglot.data.records import open_records
from emoglot.data.streams import Reading, open_stream
from emoglot.encoders.operators import OPERATORS, check_graph
from emoglot.errors import DataError, EncoderError, ModelError
from emoglot.text.normalise import normalise, normalise_text
from tests.hostile.folders import TEXT, check_sentence, put
from tests.text.test_normalise import EXAMPLES

Target = Callable[[bytes], None]
MODEL_FILES = ("model.json", "weights.safetensors", "languages.json", "README.md")


def check_normaliser(data: bytes) -> None:
    text = data.decode("utf-8", "surrogateescape")
    found = normalise(text)
    found.text.encode()
    assert normalise_text(text) == found.text
    assert normalise_text(found.text) == found.text
    assert list(found.starts) == sorted(found.starts)
    assert list(found.ends) == sorted(found.ends)
    assert all(0 <= start <= end <= len(text) for start, end in zip(found.starts, found.ends, strict=True))


def check_reader(data: bytes, kind: str) -> None:
    """Check that every line is a record, is malformed, or ends the file with one sentence."""
    with ExitStack() as stack:
        try:
            stream = open_stream(io.BytesIO(data), f"in.{kind}", Reading(kind), stack)
            records = open_records(stream, Reading(kind))
            last = 0
            for number, record in records.rows:
                assert number > last
                last = number
                if not isinstance(record, MalformedLineError):
                    assert records.columns is None or tuple(record) == records.columns
                    repr(record).encode()
        except DataError as error:
            check_sentence(error, "in." + kind)


def check_network(data: bytes) -> None:
    """Check that a network that is accepted has, as the onnx package reads it, no other operators."""
    try:
        check_graph(data)
    except ValueError:
        return
    try:
        graph = onnx.load_from_string(data).graph
    except DecodeError:
        return
    assert {node.op_type for node in graph.node} <= OPERATORS


def model_target(model: Path) -> Target:
    """Return a target whose first byte chooses a file of a model; the others replace it, with a hash that fits."""
    original = {path.name: path.read_bytes() for path in model.iterdir() if path.is_file()}

    def check_model(data: bytes) -> None:
        name = MODEL_FILES[data[0] % len(MODEL_FILES)] if data else MODEL_FILES[0]
        if name == "model.json":
            (model / name).write_bytes(data[1:])
        else:
            put(model, name, data[1:])
        try:
            load(model).predict_proba([TEXT])
        except (ModelError, EncoderError) as error:
            check_sentence(error)
        finally:
            (model / name).unlink()
            for kept, content in original.items():
                (model / kept).write_bytes(content)

    return check_model


TARGETS: dict[str, Callable[[Path], Target]] = {
    "normaliser": lambda model: check_normaliser,
    "csv": lambda model: lambda data: check_reader(data, "csv"),
    "jsonl": lambda model: lambda data: check_reader(data, "jsonl"),
    "network": lambda model: check_network,
    "model": model_target,
}


def write_seeds(folder: Path, model: Path) -> None:
    """Write some valid input of every target, from which a fuzzer begins, and the model that one of them alters."""
    seeds = {
        "normaliser": [text.encode("utf-8", "surrogatepass") for text in EXAMPLES],
        "csv": [b'id,text\n1,"so ""happy"", no"\n2,plain\n', "text;n\né;1\n".encode("cp1252")],
        "jsonl": [b'{"text": "so happy", "n": [1, null, "\\u00e9"]}\n\n{"text": ""}\n'],
        "network": [(model / "head.onnx").read_bytes()],
        "model": [
            bytes([index]) + ((model / name).read_bytes() if (model / name).exists() else b'[{"code": "en"}]')
            for index, name in enumerate(MODEL_FILES)
        ],
    }
    for target, contents in seeds.items():
        (folder / target).mkdir(parents=True)
        for index, content in enumerate(contents):
            (folder / target / str(index)).write_bytes(content)
    shutil.copytree(model, folder / "altered")
