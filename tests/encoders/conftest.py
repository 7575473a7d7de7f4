"""One encoder of each kind: built in, of transformers, and exported, in float32 and in int8."""

from __future__ import annotations

from pathlib import Path

import pytest

from emoglot.encoders.base import Encoder
from emoglot.encoders.export import export_encoder
from emoglot.encoders.hub import HubEncoder
from emoglot.encoders.onnx import OnnxEncoder
from emoglot.encoders.registry import load_encoder
from emoglot.encoders.tiny import TinyEncoder
from tests.encoders.tools import NETWORKS


@pytest.fixture(scope="session")
def hub(xlmr_folder: Path) -> HubEncoder:
    encoder = load_encoder(str(xlmr_folder))
    assert isinstance(encoder, HubEncoder)
    return encoder


@pytest.fixture(scope="session")
def float_folder(hub: HubEncoder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export_encoder(hub, tmp_path_factory.mktemp("export") / "float", "our-float")


@pytest.fixture(scope="session")
def int8_folder(hub: HubEncoder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export_encoder(hub, tmp_path_factory.mktemp("export") / "int8", "our-int8", "int8")


@pytest.fixture(scope="session")
def encoders(hub: HubEncoder, float_folder: Path, int8_folder: Path) -> dict[str, Encoder]:
    return {"tiny": TinyEncoder(), "hub": hub, "onnx": OnnxEncoder(float_folder), "int8": OnnxEncoder(int8_folder)}


@pytest.fixture(params=["tiny", *NETWORKS])
def encoder(request: pytest.FixtureRequest, encoders: dict[str, Encoder]) -> Encoder:
    return encoders[request.param]
