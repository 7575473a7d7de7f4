"""Networks compiled from their weights alone, against torch running the same weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from emoglot.encoders.bert_graph import (
    INPUTS,
    OUTPUT,
    can_compile,
    compile_beside,
    compile_int8,
    read_int8,
)
from emoglot.encoders.quantise import quantise_rows
from emoglot.errors import EncoderError

KINDS = ("bert", "xlm-roberta", "xlm-roberta, padding 0")
SIZES = {
    "vocab_size": 60,
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 40,
}
Network = tuple[Any, Path]  # a torch model, and the safetensors file of its weights
Rows = list[NDArray[np.int64]]


@pytest.fixture(scope="module")
def networks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Network]:
    import torch
    from transformers import BertConfig, BertModel, XLMRobertaConfig, XLMRobertaModel

    torch.manual_seed(3)
    made: dict[str, Network] = {}
    models: list[Any] = [
        BertModel(BertConfig(**SIZES, type_vocab_size=2, pad_token_id=0)),
        XLMRobertaModel(XLMRobertaConfig(**SIZES, type_vocab_size=1, pad_token_id=1)),
        XLMRobertaModel(XLMRobertaConfig(**SIZES, type_vocab_size=1, pad_token_id=0)),
    ]
    for kind, model in zip(KINDS, models, strict=True):
        with torch.no_grad():
            for parameter in model.parameters():  # new networks have biases of 0 and norms of 1, which hide mistakes
                parameter.add_(torch.randn_like(parameter) * 0.2)
        path = tmp_path_factory.mktemp("network") / "model.safetensors"
        save_file({name: tensor.numpy() for name, tensor in model.state_dict().items()}, path)
        made[kind] = model.eval(), path
    return made


@pytest.fixture(scope="module", params=KINDS)
def network(request: pytest.FixtureRequest, networks: dict[str, Network]) -> Network:
    return networks[request.param]


def make_rows(*lengths: int) -> Rows:
    rng = np.random.default_rng(1)
    return [rng.integers(3, SIZES["vocab_size"], length) for length in lengths]


def pad(rows: Rows, padding: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    ids = np.full((len(rows), max(map(len, rows))), padding)
    for row, values in zip(ids, rows, strict=True):
        row[: len(values)] = values
    mask = np.array([[place < len(row) for place in range(ids.shape[1])] for row in rows], dtype=np.int64)
    return ids, mask


def by_torch(model: Any, rows: Rows) -> list[NDArray[np.float32]]:
    import torch

    ids, mask = (torch.from_numpy(array) for array in pad(rows, model.config.pad_token_id))
    with torch.no_grad():
        states = model(input_ids=ids, attention_mask=mask).last_hidden_state.numpy()
    return [state[: len(row)] for state, row in zip(states, rows, strict=True)]


def by_onnx(path: Path, rows: Rows) -> list[NDArray[np.float32]]:
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    inputs = dict(zip(INPUTS, pad(rows, 0), strict=True))
    (states,) = session.run([OUTPUT], inputs)
    return [state[: len(row)] for state, row in zip(states, rows, strict=True)]


def test_float32_agrees_with_torch(network: Network) -> None:
    model, weights = network
    path = weights.with_name("model.onnx")
    compile_beside(model.config.to_dict(), weights, path)
    assert path.stat().st_size < weights.stat().st_size / 2  # the weights are not written again
    for rows in (make_rows(7), make_rows(38, 2, 11), make_rows(2), make_rows(*range(2, 30))):
        for got, expected in zip(by_onnx(path, rows), by_torch(model, rows), strict=True):
            np.testing.assert_allclose(got, expected, rtol=0, atol=1e-5)


def test_int8_is_close_to_torch(network: Network, tmp_path: Path) -> None:
    model, weights = network
    path = tmp_path / "model.onnx"
    compile_int8(model.config.to_dict(), load_file(weights), path)
    rows = make_rows(38, 2, 11, 25)
    got, expected = np.concatenate(by_onnx(path, rows)), np.concatenate(by_torch(model, rows))
    cosines = (got * expected).sum(axis=1) / np.linalg.norm(got, axis=1) / np.linalg.norm(expected, axis=1)
    assert cosines.min() > 0.99
    assert not np.array_equal(got, expected)


def test_int8_vectors_do_not_depend_on_neighbours(network: Network, tmp_path: Path) -> None:
    model, weights = network
    path = tmp_path / "model.onnx"
    compile_int8(model.config.to_dict(), load_file(weights), path)
    rows = make_rows(3, 38, 2, 17, 9, 16, 31)
    together = by_onnx(path, rows)
    for row, vectors in zip(rows, together, strict=True):
        np.testing.assert_array_equal(by_onnx(path, [row])[0], vectors)
    for vectors, expected in zip(by_onnx(path, rows[2::-1]), together[2::-1], strict=True):
        np.testing.assert_array_equal(vectors, expected)


def test_a_graph_without_its_weights_is_not_run(networks: dict[str, Network], tmp_path: Path) -> None:
    model, weights = networks["bert"]
    path = tmp_path / "model.onnx"
    compile_beside(model.config.to_dict(), weights, path)  # which lie in another folder
    with pytest.raises(Exception, match=r"model\.safetensors"):
        by_onnx(path, make_rows(3))


def test_weights_that_lack_a_layer(networks: dict[str, Network], tmp_path: Path) -> None:
    model, weights = networks["bert"]
    config = model.config.to_dict() | {"num_hidden_layers": 4}
    with pytest.raises(EncoderError, match=r"must contain encoder\.layer\.3\..*, and model\.safetensors does not"):
        compile_beside(config, weights, tmp_path / "model.onnx")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["bert", "roberta", "xlm-roberta"])
def test_what_can_be_compiled(kind: str) -> None:
    assert can_compile({"model_type": kind})  # what is not named is as usual
    assert can_compile(
        {"model_type": kind, "hidden_act": "gelu", "position_embedding_type": "absolute", "is_decoder": False}
    )
    assert can_compile({"model_type": kind, "position_embedding_type": None})


@pytest.mark.parametrize(
    "other",
    [
        {"model_type": "distilbert"},
        {"model_type": "deberta-v2"},
        {"model_type": None},
        {"hidden_act": "relu"},
        {"hidden_act": "gelu_new"},
        {"position_embedding_type": "relative_key"},
        {"is_decoder": True},
    ],
    ids=str,
)
def test_what_can_not_be_compiled(other: dict[str, Any]) -> None:
    assert not can_compile({"model_type": "bert"} | other)
    assert not can_compile({})


def test_rows_are_quantised_by_themselves() -> None:
    matrix = np.array([[1.0, -2.1, 0.5], [100.0, 3.0, -49.0], [0.0, 0.0, 0.0]], dtype=np.float32)
    levels, scales = quantise_rows(matrix, 63)
    assert levels.tolist() == [[30, -63, 15], [63, 2, -31], [0, 0, 0]]
    assert (np.abs(levels * scales[:, None] - matrix) <= scales[:, None] / 2).all()


def test_int8_weights_are_found_again_and_quantise_to_the_same_bytes(network: Network, tmp_path: Path) -> None:
    model, weights = network
    first, again = tmp_path / "first.onnx", tmp_path / "again.onnx"
    compile_int8(model.config.to_dict(), load_file(weights), first)
    config, found = read_int8(first)
    assert config["num_hidden_layers"] == SIZES["num_hidden_layers"]
    given = {name: array for name, array in load_file(weights).items() if not name.startswith("pooler.")}
    assert found.keys() == given.keys()
    for name, array in given.items():
        steps = np.abs(array).max(axis=-1, keepdims=True) / 63  # the coarser of the two kinds of rows
        assert (np.abs(found[name] - array) <= 0.51 * steps).all(), name
    compile_int8(config, found, again)
    rows = make_rows(5, 17)
    for one, other in zip(by_onnx(first, rows), by_onnx(again, rows), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


def test_a_graph_of_others_is_not_taken_for_int8(networks: dict[str, Network], tmp_path: Path) -> None:
    model, weights = networks["bert"]
    compile_beside(model.config.to_dict(), weights, weights.parent / "model.onnx")
    with pytest.raises(EncoderError, match="was not quantised by `emoglot encoders`"):
        read_int8(weights.parent / "model.onnx")
