"""Exported encoders: as exact as promised, without torch, whole or not at all."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from emoglot.classifier import EmotionClassifier
from emoglot.config import Config
from emoglot.encoders import store
from emoglot.encoders.base import Encoder
from emoglot.encoders.export import export_encoder
from emoglot.encoders.hub import HubEncoder
from emoglot.encoders.onnx import OnnxEncoder
from emoglot.encoders.registry import load_encoder
from emoglot.errors import MissingExtraError, ModelError, UsageError
from emoglot.model import load
from tests.encoders.tools import NETWORKS, TEXTS, python_without


def test_a_float_export_agrees_with_torch(encoders: dict[str, Encoder]) -> None:
    # Long texts, also one of words that the tokenizer may drop.
    texts = [*TEXTS, "happy day " * 100, "\u200b \x01 " * 100 + "happy day"]
    torch_vectors, onnx_vectors = encoders["hub"].encode(texts), encoders["onnx"].encode(texts)
    np.testing.assert_array_equal(torch_vectors.spans, onnx_vectors.spans)
    np.testing.assert_array_equal(torch_vectors.splits, onnx_vectors.splits)
    np.testing.assert_allclose(torch_vectors.vectors, onnx_vectors.vectors, rtol=0, atol=1e-4)


def test_an_int8_export_is_smaller_and_similar(
    encoders: dict[str, Encoder], float_folder: Path, int8_folder: Path
) -> None:
    assert store.folder_size(int8_folder) < store.folder_size(float_folder)
    exact, rough = encoders["onnx"].encode(TEXTS).vectors, encoders["int8"].encode(TEXTS).vectors
    norms = np.linalg.norm(exact, axis=1) * np.linalg.norm(rough, axis=1)
    assert ((exact * rough).sum(axis=1) / norms).mean() > 0.9
    assert not np.array_equal(exact, rough)


@pytest.mark.parametrize(("kind", "difference"), [("float", 1e-3), ("int8", 0.1)])
def test_a_model_takes_the_export_of_its_encoder_but_no_other(
    kind: str, difference: float, hub: HubEncoder, float_folder: Path, int8_folder: Path, tmp_path: Path
) -> None:
    config = Config().override({"training.max_epochs": 2, "head.hidden": 8, "head.layers": 1})
    model = EmotionClassifier(hub, config=config, cache=tmp_path / "cache")
    texts = TEXTS * 6
    labels = [{"joy"} if row % 2 else {"fear"} for row in range(len(texts))]
    model.fit(texts, labels, validation=([f"then {text}" for text in texts], labels)).model_.save(tmp_path / "model")
    folder = float_folder if kind == "float" else int8_folder
    moved = load(tmp_path / "model", encoder=folder)
    assert np.abs(moved.predict_proba(TEXTS) - model.predict_proba(TEXTS)).max() < difference
    with pytest.raises(ModelError, match="use the original encoder"):
        load(tmp_path / "model", encoder="emoglot-small")


def test_a_layer_can_be_exported(xlmr_folder: Path, float_folder: Path, tmp_path: Path) -> None:
    layer = HubEncoder("layer", layer=1, source=xlmr_folder)
    exported = OnnxEncoder(export_encoder(layer, tmp_path / "one", "one"))
    np.testing.assert_allclose(exported.encode(TEXTS).vectors, layer.encode(TEXTS).vectors, rtol=0, atol=1e-4)
    assert exported.fingerprint != OnnxEncoder(float_folder).fingerprint


def test_fingerprints_of_exports(encoders: dict[str, Encoder], float_folder: Path) -> None:
    assert load_encoder(str(float_folder)).fingerprint == encoders["onnx"].fingerprint
    assert len({encoders[name].fingerprint for name in NETWORKS}) == 3


@pytest.mark.parametrize("kind", ["onnx", "int8"])
def test_an_export_needs_neither_torch_nor_transformers(
    kind: str, encoders: dict[str, Encoder], float_folder: Path, int8_folder: Path
) -> None:
    folder = {"onnx": float_folder, "int8": int8_folder}[kind]
    code = (
        "from emoglot.encoders.registry import load_encoder\n"
        "print(load_encoder(sys.argv[1]).encode(sys.argv[2:]).vectors.tobytes().hex())"
    )
    arguments = (str(folder), *TEXTS[:4])
    output = python_without("torch", "transformers", "onnx", "sklearn", "scipy", code=code, arguments=arguments)
    np.testing.assert_allclose(
        np.frombuffer(bytes.fromhex(output), np.float32).reshape(-1, 32),
        encoders[kind].encode(TEXTS[:4]).vectors,
        rtol=0,
        atol=1e-5,
    )


def test_an_export_refuses_what_it_can_not_mean(hub: HubEncoder, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    with pytest.raises(UsageError, match=r"there already exists.*another --out"):
        export_encoder(hub, tmp_path / "there", "name")
    with pytest.raises(UsageError, match="one of none, int8, got 'int4'"):
        export_encoder(hub, tmp_path / "new", "name", "int4")
    assert [path.name for path in tmp_path.iterdir()] == ["there"]
    assert not any((tmp_path / "there").iterdir())


def test_a_failed_export_leaves_nothing(xlmr_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    layer = HubEncoder("layer", layer=1, source=xlmr_folder)
    monkeypatch.setitem(sys.modules, "onnxruntime.quantization", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'emoglot\[export\]'"):
        export_encoder(layer, tmp_path / "new", "name", "int8")
    assert list(tmp_path.iterdir()) == []


def test_without_the_export_extra(xlmr_folder: Path, tmp_path: Path) -> None:
    code = (
        "from pathlib import Path\nfrom emoglot.encoders.registry import load_encoder\n"
        "from emoglot.encoders.export import export_encoder\nfrom emoglot.errors import MissingExtraError\n"
        "try: export_encoder(load_encoder(sys.argv[1]), Path(sys.argv[2]), 'name')\n"
        "except MissingExtraError as error: print(error)"
    )
    output = python_without("onnxscript", code=code, arguments=(f"{xlmr_folder}#1", str(tmp_path / "new")))
    assert output == "exporting an encoder needs 'onnxscript', which is not installed: pip install 'emoglot[export]'"
    assert list(tmp_path.iterdir()) == []
