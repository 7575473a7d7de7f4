"""A builder of ONNX graphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from emoglot.encoders.onnx import IR_VERSION, OPSET

Weights: TypeAlias = Mapping[str, NDArray[np.float32]]


class GraphBuilder:
    """Collects nodes and constants; methods return the names of results."""

    def __init__(self) -> None:
        self._nodes: list[Any] = []
        self._constants: dict[str, Any] = {}

    def node(self, operator: str, *inputs: str, result: str = "", **attributes: Any) -> str:
        """Append an operator and return the name of its result."""
        (name,) = self.nodes(operator, *inputs, results=(result,), **attributes)
        return name

    def nodes(self, operator: str, *inputs: str, results: Sequence[str], **attributes: Any) -> list[str]:
        """Append an operator with several results and return their names."""
        number = len(self._nodes)
        names = [name or f"{operator.lower()}_{number}_{index}" for index, name in enumerate(results)]
        self._nodes.append(helper.make_node(operator, list(inputs), names, **attributes))
        return names

    def constant(self, value: Any, dtype: Any = np.float32, name: str = "") -> str:
        """Append a constant tensor."""
        name = name or f"constant_{len(self._constants)}"
        array = np.ascontiguousarray(value, dtype=dtype).reshape(np.shape(value))
        self._constants[name] = numpy_helper.from_array(array, name)
        return name

    def integers(self, *values: int) -> str:
        """Append a list of integers, such as axes or a shape."""
        return self.constant(list(values), np.int64)

    def linear(self, source: str, weights: Weights, layer: str, result: str = "") -> str:
        """Append x Wᵀ + b."""
        weight = self.constant(weights[f"{layer}.weight"], name=f"{layer}.weight")
        bias = self.constant(weights[f"{layer}.bias"], name=f"{layer}.bias")
        return self.node("Gemm", source, weight, bias, transB=1, result=result)

    def model(self, name: str, inputs: Sequence[Any], outputs: Sequence[Any]) -> Any:
        """Return the model."""
        graph = helper.make_graph(self._nodes, name, list(inputs), list(outputs), list(self._constants.values()))
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
