"""An ONNX graph under construction: tensors, nodes and the three precisions of a matrix product.

The graph is written with operators of opset 17 and with operators of ONNX Runtime (domain com.microsoft) that compute
what several standard ones do in one pass; ONNX Runtime for the web and OpenVINO have these, too.

Names carry shapes: O outputs and I inputs of a linear map, R rows of an embedding, V vocabulary, H hidden, T tokens
of all texts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from bertwright.core.files import write_atomic

if TYPE_CHECKING:
    from onnx import ModelProto

Precision = Literal["float32", "float16", "int8"]
"""float16: all numbers of the network, with inputs and outputs as in float32. int8: embeddings and the weights of
products, with a scale for each of their rows; what is multiplied with them is rounded to 8 bits, once or twice, and
float32 elsewhere (docs/decisions/0072)."""
OPSET = 17
"""The version of the standard operators; with LayerNormalization the lowest that is needed."""
IR_VERSION = 8
"""The version of the file format that belongs to it."""
FUSED = "com.microsoft"
"""The domain of ONNX Runtime's own operators."""
MOST_BYTES = 2**31 - 2**20
"""A file of Protocol Buffers has less than 2 GiB; larger tensors are stored beside it."""
DATA = "{}_data"
"""The file beside it: the name that transformers.js expects."""

INT32, FLOAT, INT64 = 6, 1, 7
"""The numbers of ONNX for element types."""

Shape = Sequence[str | int]
"""The dimensions of a value, by number or by name."""


class Graph:
    """A graph for a network's tensors, which are given under this project's names and in its shapes. Each method adds
    nodes and constants, and returns the name of a value."""

    def __init__(self, tensors: Mapping[str, NDArray[Any]], precision: Precision) -> None:
        self.tensors = tensors
        self.precision = precision
        self._nodes: list[Any] = []
        self._constants: dict[str, Any] = {}

    def constant(self, name: str, value: NDArray[Any]) -> str:
        """A tensor of any shape in the file; floating-point numbers get the network's precision."""
        from onnx.numpy_helper import from_array

        if name not in self._constants:
            if value.dtype.kind == "f":
                value = value.astype(np.float16 if self.precision == "float16" else np.float32)
            self._constants[name] = from_array(np.asarray(value, order="C"), name)
        return name

    def whole(self, *numbers: int) -> str:
        """A vector of integers."""
        return self.constant("_".join(["whole", *map(str, numbers)]), np.array(numbers, np.int64))

    def parameter(self, name: str) -> str:
        """A tensor of the network as it is; "" if the network has none of this name."""
        return self.constant(name, self.tensors[name]) if name in self.tensors else ""

    def node(self, kind: str, *inputs: str, fused: bool = False, **attributes: Any) -> str:
        """The result of an operator, `fused` if it is one of ONNX Runtime's; an input that is left out is ""."""
        return self.nodes(kind, inputs, ("",), fused, **attributes)[0]

    def nodes(
        self, kind: str, inputs: Sequence[str], ends: Sequence[str], fused: bool = False, **attributes: Any
    ) -> list[str]:
        """The results of an operator, whose names have these ends."""
        from onnx.helper import make_node

        name = f"{kind}_{len(self._nodes)}"
        results = [f"{name}{end}" for end in ends]
        self._nodes.append(make_node(kind, inputs, results, name, domain=FUSED if fused else "", **attributes))
        return results

    def split(self, x: str, *widths: int) -> list[str]:
        """Parts of the last dimension."""
        return self.nodes("Split", (x, self.whole(*widths)), [f"_{part}" for part in range(len(widths))], axis=-1)

    def rows(self, name: str, ids: str) -> str:
        """The rows of the embedding `name` at `ids`."""
        table_RH = self.tensors[f"{name}.weight"]
        if self.precision != "int8":
            return self.node("Gather", self.constant(f"{name}.weight", table_RH), ids)
        whole_RH, scales_R = quantized(table_RH)
        whole = self.node("Gather", self.constant(f"{name}.weight_int8", whole_RH), ids)
        scale = self.node("Gather", self.constant(f"{name}.scales", scales_R), ids)
        return self.node("Mul", self.node("Cast", whole, to=FLOAT), self.node("Unsqueeze", scale, self.whole(-1)))

    def decoder(self, x: str, embedding: str, bias: str) -> str:
        """The product of `x` [T, H] with the rows of an embedding, which the file has once, plus a bias or ""."""
        table_VH = self.tensors[f"{embedding}.weight"]
        if self.precision == "int8":
            whole_VH, scales_V = quantized(table_VH)
            weight = self.node("Transpose", self.constant(f"{embedding}.weight_int8", whole_VH), perm=(1, 0))
            return self._in_int8(x, weight, self.constant(f"{embedding}.scales", scales_V), bias, twice=False)
        weight = self.node("Transpose", self.constant(f"{embedding}.weight", table_VH), perm=(1, 0))
        return self._in_floats(x, weight, bias)

    def linear(self, x: str, name: str, twice: bool = True) -> str:
        """The linear map `name` of the rows of `x` [T, I], as [T, O]; `twice` as in `product`."""
        return self.product(x, name, bias=self.parameter(f"{name}.bias"), twice=twice)

    def product(self, x: str, *names: str, bias: str = "", twice: bool = True) -> str:
        """The product of `x` [T, I] with the weights of the linear maps `names`, their outputs side by side [T, O],
        plus a bias or "". In int8 `x` is rounded to 8 bits, and with `twice` also what that leaves."""
        weight_OI = np.concatenate([self.tensors[f"{name}.weight"] for name in names])
        name = "+".join(names)
        if self.precision == "int8":
            whole_OI, scales_O = quantized(weight_OI)
            weight = self.constant(f"{name}.weight_int8", whole_OI.T)
            return self._in_int8(x, weight, self.constant(f"{name}.scales", scales_O), bias, twice)
        return self._in_floats(x, self.constant(f"{name}.weight", weight_OI.T), bias)

    def bias(self, *names: str) -> str:
        """The biases of the linear maps `names` one after another [O]."""
        bias_O = np.concatenate([self.tensors[f"{name}.bias"] for name in names])
        return self.constant("+".join(names) + ".bias", bias_O)

    def _in_floats(self, x: str, weight: str, bias: str) -> str:
        return self.node("Gemm", x, weight, bias) if bias else self.node("MatMul", x, weight)

    def _in_int8(self, x: str, weight: str, scales: str, bias: str, twice: bool) -> str:
        if not twice:
            return self.node("DynamicQuantizeMatMul", x, weight, scales, "", bias, fused=True)
        rounded, scale, zero = self.nodes("DynamicQuantizeLinear", (x,), ("", "_scale", "_zero"))
        product = self.node("MatMulIntegerToFloat", rounded, weight, scale, scales, zero, "", bias, fused=True)
        rest = self.node("Sub", x, self.node("DequantizeLinear", rounded, scale, zero))
        return self.node("Add", product, self.node("DynamicQuantizeMatMul", rest, weight, scales, fused=True))

    def norm(self, x: str, name: str, epsilon: float) -> str:
        """The layer norm `name` of `x`."""
        weights = filter(None, (self.parameter(f"{name}.weight"), self.parameter(f"{name}.bias")))
        return self.node("LayerNormalization", x, *weights, axis=-1, epsilon=epsilon)

    def add_norm(self, x: str, residual: str, name: str, epsilon: float) -> tuple[str, str]:
        """The layer norm `name` of `x + residual`, and that sum, all [T, H].

        ONNX Runtime has one operator for both, which takes seven times as long on a CPU; it does not put it in the
        place of these two where they have two dimensions.
        """
        total = self.node("Add", x, residual)
        return self.norm(total, name, epsilon), total

    def model(self, inputs: Mapping[str, Shape], outputs: Mapping[str, tuple[str, Shape]]) -> ModelProto:
        """The graph as a model, with the names and dimensions of its inputs (int64), and of its outputs (float32) with
        the value of each."""
        from onnx.helper import make_graph, make_model, make_node, make_opsetid, make_tensor_value_info

        if self.precision == "float16":
            nodes = [make_node("Cast", [value], [name], name, to=FLOAT) for name, (value, _) in outputs.items()]
            nodes = [*self._nodes, *nodes]
        else:
            nodes = self._renamed({value: name for name, (value, _) in outputs.items()})
        graph = make_graph(
            nodes,
            "bertwright",
            [make_tensor_value_info(name, INT64, shape) for name, shape in inputs.items()],
            [make_tensor_value_info(name, FLOAT, shape) for name, (_, shape) in outputs.items()],
            list(self._constants.values()),
        )
        versions = [make_opsetid("", OPSET), make_opsetid(FUSED, 1)]
        return make_model(graph, opset_imports=versions, ir_version=IR_VERSION, producer_name="bertwright")

    def _renamed(self, names: Mapping[str, str]) -> list[Any]:
        """The nodes, with other names of some values, and of the nodes that compute these: OpenVINO would give the
        output both names."""
        for node in self._nodes:
            for values in (node.input, node.output):
                values[:] = [names.get(value, value) for value in values]
            node.name = node.output[0]
        return self._nodes


def quantized(weight_OI: NDArray[Any]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """A matrix in whole numbers of -127 to 127 [O, I], and the scale of each of its rows [O]."""
    largest_O = np.abs(weight_OI).max(1)
    scales_O = (np.where(largest_O > 0, largest_O, 1) / 127).astype(np.float32)
    return np.rint(weight_OI / scales_O[:, None]).astype(np.int8), scales_O


def save(model: ModelProto, path: Path, most_bytes: int = MOST_BYTES) -> None:
    """Write a model; one of more bytes than a file of its format may have, with its tensors in a second file."""
    import onnx

    if model.ByteSize() <= most_bytes:
        write_atomic(path, model.SerializeToString())
    else:
        data = DATA.format(path.name)
        onnx.save_model(model, str(path), save_as_external_data=True, location=data, size_threshold=1024)
