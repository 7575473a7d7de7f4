"""The description of an encoder folder, `encoder.json`, and the checks of its files."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from emoglot.encoders.operators import check_graph_file
from emoglot.errors import EncoderError, UsageError
from emoglot.files import check_regular, hash_file, walk_files
from emoglot.schema import Rule, build, number, one_of, ruled, within

DESCRIPTION_FILE = "encoder.json"
MODEL_FILE = "model.onnx"
TOKENIZER_FILE = "tokenizer.json"
FORMAT_VERSION = 1
LAYOUT = "padded"  # ids and mask (texts, tokens)
FRAME_TOKENS = 2  # special tokens around a text
MAX_NAME = 255  # characters, as for file names
# More than any encoder needs, so that checking an untrusted folder takes little time. A protobuf has at most 2 GiB;
# larger weights are in a separate file.
MAX_DESCRIPTION_BYTES = 2**20
_MAX_BYTES = {".onnx": 2**31, ".json": 2**28}
_MAX_WEIGHTS_BYTES = 2**35
_MAX_FILES = 1000
_MAX_EXTENDS = 1000

_LONGEST_VALUE = 200  # characters of a list of names that fit into a message
_SHORT = Rule(f"at most {MAX_NAME} characters", lambda value: len(value) <= MAX_NAME)
# It is the name of a folder in the feature cache.
_FINGERPRINT = Rule("1 to 255 letters, digits, _ and -", lambda value: bool(re.fullmatch(r"[\w-]{1,255}", value)))


@dataclass(frozen=True)
class EncoderDescription:
    """The content of `encoder.json`."""

    name: str = field(metadata=ruled(_SHORT))
    fingerprint: str = field(metadata=ruled(_FINGERPRINT))
    dim: int = field(metadata=ruled(within(1)))
    max_tokens: int = field(metadata=ruled(within(FRAME_TOKENS + 1, 2**31 - 1)))
    layout: str = field(metadata=ruled(one_of([LAYOUT])))
    input_names: tuple[str, str]
    output_name: str
    one_by_one: bool  # whether texts are encoded separately, because a batch would change their vectors
    files: dict[str, str] = field(default_factory=dict)  # the SHA-256 of every other file, by name
    version: int = number(FORMAT_VERSION, 1)
    # Fingerprints of encoders that it can replace: the one it was exported from, or the one it adds words to.
    extends: tuple[str, ...] = ()
    sizes: dict[str, int] = field(default_factory=dict)  # in bytes, of every other file; missing in older folders

    def write(self, folder: Path) -> None:
        """Write the description last: a folder without it is incomplete."""
        files = _list_files(folder)
        sizes = {name: path.stat().st_size for name, path in files.items()}
        described = replace(self, name=self.name[:MAX_NAME], files=_hashes(files), sizes=sizes)
        (folder / DESCRIPTION_FILE).write_text(json.dumps(asdict(described), indent=2) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> EncoderDescription:
        """Read and check the description of a folder."""
        path = folder / DESCRIPTION_FILE
        try:
            check_regular(path, folder, MAX_DESCRIPTION_BYTES)
            values = json.loads(path.read_text(encoding="utf-8"))
            version = values.get("version") if isinstance(values, dict) else None
            if isinstance(version, int) and version > FORMAT_VERSION:
                raise EncoderError(
                    f"{folder} was written by a newer version of emoglot (format {version}): pip install -U emoglot"
                )
            description = build(cls, values, ignore_unknown=True)
            if missing := {MODEL_FILE, TOKENIZER_FILE} - description.files.keys():
                raise UsageError(f"files must list {' and '.join(sorted(missing))}")
            if len(description.extends) > _MAX_EXTENDS:
                raise UsageError(f"extends may have at most {_MAX_EXTENDS} entries, got {len(description.extends)}")
        except (OSError, ValueError, RecursionError, UsageError) as error:
            raise EncoderError(f"{path} is damaged: {error}; install the encoder again") from error
        return description


def _list_files(folder: Path) -> dict[str, Path]:
    """Return all files of an encoder folder except the description, by their path inside the folder."""
    found: dict[str, Path] = {}
    for path in walk_files(folder):
        found[path.relative_to(folder).as_posix()] = path
        if len(found) > _MAX_FILES:
            raise EncoderError(
                f"an encoder folder may have at most {_MAX_FILES} files, {folder} has more: check the path"
            )
    found.pop(DESCRIPTION_FILE, None)
    return dict(sorted(found.items()))


def _hashes(files: Mapping[str, Path]) -> dict[str, str]:
    return {name: hash_file(path) for name, path in files.items()}


def check_files(folder: Path, description: EncoderDescription) -> None:
    """Check the names and sizes of the files, then their content, then the operators of the network."""
    files = _list_files(folder)
    changed = sorted(files.keys() ^ description.files.keys())
    try:
        sizes = {
            name: check_regular(path, folder, _MAX_BYTES.get(path.suffix, _MAX_WEIGHTS_BYTES))
            for name, path in files.items()
        }
        changed = changed or [name for name, size in description.sizes.items() if sizes.get(name) != size]
        if not changed:
            hashes = _hashes(files)
            changed = [name for name, digest in description.files.items() if hashes[name] != digest]
    except (OSError, ValueError) as error:
        raise EncoderError(f"{error}; install or export the encoder again") from error
    if changed:
        raise EncoderError(
            f"files of {folder} have changed since they were written ({_names(changed)}): install or export it again"
        )
    _check_network_file(folder, description)


def _check_network_file(folder: Path, description: EncoderDescription) -> None:
    path = folder / MODEL_FILE
    try:
        network = check_graph_file(path)
    except (OSError, ValueError) as error:
        raise EncoderError(f"{path} cannot be run: {error}; install or export the encoder again") from error
    if strange := sorted(network.external - description.files.keys()):
        raise EncoderError(
            f"{path} has weights in {_names(strange)}, which is not among the files of {folder}: install or export the "
            "encoder again"
        )


def _names(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))[:_LONGEST_VALUE]
