"""Only operators that an export writes may be in a network, wherever they are hidden."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from emoglot.encoders.onnx import OnnxEncoder
from emoglot.encoders.operators import OPERATORS, check_graph, check_graph_file
from emoglot.encoders.registry import BUNDLED_MODEL
from tests.hostile.conftest import make_network
from tests.hostile.folders import check_encoder_refused, check_refused, put, put_in_encoder

BRANCHES = {"Loop", "Scan", "If", "SequenceMap"}


def operators_by_onnx(graph: Any) -> set[str]:
    """Collect operator types with the onnx package: the oracle of the walk."""
    found = set()
    for node in graph.node:
        found.add(node.op_type)
        for attribute in node.attribute:
            for inner in ([attribute.g] if attribute.HasField("g") else []) + list(attribute.graphs):
                found |= operators_by_onnx(inner)
    return found


def loop(trips: int) -> onnx.ModelProto:
    """Build the head of somebody who wants us to wait: a loop of `trips` rounds before anything else."""
    body = helper.make_graph(
        [helper.make_node("Identity", ["going"], ["still"]), helper.make_node("Add", ["value", "value"], ["next"])],
        "body",
        [
            helper.make_tensor_value_info("round", TensorProto.INT64, []),
            helper.make_tensor_value_info("going", TensorProto.BOOL, []),
            helper.make_tensor_value_info("value", TensorProto.FLOAT, []),
        ],
        [
            helper.make_tensor_value_info("still", TensorProto.BOOL, []),
            helper.make_tensor_value_info("next", TensorProto.FLOAT, []),
        ],
    )
    constants = [
        numpy_helper.from_array(np.array(trips), "trips"),
        numpy_helper.from_array(np.array(True), "yes"),
        numpy_helper.from_array(np.array(1, np.float32), "one"),
    ]
    node = helper.make_node("Loop", ["trips", "yes", "one"], ["out"], body=body)
    output = helper.make_tensor_value_info("out", TensorProto.FLOAT, [])
    graph = helper.make_graph([node], "graph", [], [output], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("path", [BUNDLED_MODEL / "head.onnx", BUNDLED_MODEL / "encoder" / "model.onnx"], ids=str)
def test_the_walk_finds_what_onnx_finds(path: Path) -> None:
    expected = operators_by_onnx(onnx.load(path, load_external_data=False).graph)
    assert check_graph_file(path).operators == expected
    assert check_graph(path.read_bytes()).operators == expected


def test_a_head_as_training_writes_it(model_folder: Path) -> None:
    data = (model_folder / "head.onnx").read_bytes()
    assert check_graph(data).operators == operators_by_onnx(onnx.load_from_string(data).graph)


def test_no_operator_that_loops_is_allowed() -> None:
    assert not OPERATORS & BRANCHES


def test_an_endless_loop_is_refused_by_the_encoder(encoder_folder: Path) -> None:
    put_in_encoder(encoder_folder, "model.onnx", loop(2**60).SerializeToString())
    check_encoder_refused(lambda: OnnxEncoder(encoder_folder), "model.onnx", "it contains Loop")


def test_an_endless_loop_is_refused_by_the_head(model_folder: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(model_folder, tmp_path / "model"))
    put(folder, "head.onnx", loop(2**60).SerializeToString())
    check_refused(folder, "head.onnx", "it contains Loop")


def test_an_operator_hidden_in_a_subgraph() -> None:
    hidden = helper.make_graph([helper.make_node("RandomNormal", [], ["x"])], "inner", [], [])
    network = make_network()
    network.graph.node.append(helper.make_node("Identity", ["states"], ["other"], inner=hidden))
    with pytest.raises(ValueError, match="RandomNormal"):
        check_graph(network.SerializeToString())


def test_graphs_that_are_nested_without_end() -> None:
    inner = helper.make_graph([], "inner", [], [])
    for _ in range(20):
        inner = helper.make_graph([helper.make_node("Identity", [], ["x"], body=inner)], "inner", [], [])
    network = make_network()
    network.graph.node.append(helper.make_node("Identity", [], ["x"], body=inner))
    with pytest.raises(ValueError, match="nested more than"):
        check_graph(network.SerializeToString())


def test_operators_of_others_and_functions() -> None:
    network = make_network()
    network.graph.node.append(helper.make_node("Add", ["a"], ["b"], domain="com.microsoft"))
    with pytest.raises(ValueError, match=r"an operator of 'com.microsoft'"):
        check_graph(network.SerializeToString())
    network = make_network()
    network.functions.append(helper.make_function("mine", "Mul", ["a"], ["b"], [], []))
    with pytest.raises(ValueError, match="it defines functions"):
        check_graph(network.SerializeToString())


def test_two_graphs_in_one_file() -> None:
    """A protobuf reader joins what is given twice, so that neither may hide the other."""
    for data in (make_network().SerializeToString() + loop(3).SerializeToString(), loop(3).SerializeToString() * 2):
        with pytest.raises(ValueError, match="it contains Loop"):
            check_graph(data)


@pytest.mark.parametrize("data", [b"nonsense", b"\xff" * 20, b"\x3a\xff\xff\xff\xff\x0f", b"\x3a\x05", b"1234ORTM5678"])
def test_what_is_no_onnx(data: bytes) -> None:
    with pytest.raises(ValueError, match="not an ONNX graph"):
        check_graph(data)


def test_an_empty_file(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    with pytest.raises(ValueError, match="it is empty"):
        check_graph_file(tmp_path / "empty")


@settings(deadline=None, max_examples=150)
@given(st.data())
def test_any_bytes_end_in_an_answer(data: st.DataObject) -> None:
    content = bytearray(make_network().SerializeToString())
    for _ in range(data.draw(st.integers(0, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(content)))
    for damaged in (bytes(content), bytes(content[:cut]), data.draw(st.binary(max_size=60))):
        try:
            found = check_graph(damaged)
        except ValueError:
            continue
        assert found.operators <= OPERATORS
