"""An ONNX graph under construction: tensors, nodes and the three precisions of a matrix product.

The graph is written with operators of opset 17 and with operators of ONNX Runtime (domain com.microsoft) that compute
what several standard ones do in one pass; ONNX Runtime for the web and OpenVINO have these, too.

Names carry shapes: O outputs and I inputs of a linear map, R rows of an embedding, H hidden.
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
products, each output with its own scale; activations are rounded to 8 bits for a product, and float32 elsewhere."""
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

Tensors = Mapping[str, NDArray[Any]]


class Graph:
    """Nodes and constants; each method adds to them and returns the name of a value."""

    def __init__(self, precision: Precision) -> None:
        self.precision = precision
        self._nodes: list[Any] = []
        self._constants: dict[str, Any] = {}

    def constant(self, name: str, value: NDArray[Any]) -> str:
        """A tensor of the file; one of floating-point numbers has those of the network's precision."""
        from onnx.numpy_helper import from_array

        if name not in self._constants:
            if value.dtype.kind == "f":
                value = value.astype(np.float16 if self.precision == "float16" else np.float32)
            self._constants[name] = from_array(np.asarray(value, order="C"), name)
        return name

    def whole(self, *numbers: int) -> str:
        """A vector of integers."""
        return self.constant("_".join(["whole", *map(str, numbers)]), np.array(numbers, np.int64))

    def node(self, kind: str, *inputs: str, fused: bool = False, name: str = "", **attributes: Any) -> str:
        """The result of an operator; an input that is left out is ""."""
        return self.nodes(kind, inputs, [""], fused, name, attributes)[0]

    def nodes(
        self,
        kind: str,
        inputs: Sequence[str],
        outputs: Sequence[str | None],
        fused: bool = False,
        name: str = "",
        attributes: Mapping[str, Any] | None = None,
    ) -> list[str]:
        """The results of an operator with several, one for each of `outputs`: the end of its name, or None where the
        result is not used."""
        from onnx.helper import make_node

        name = name or f"{kind}_{len(self._nodes)}"
        results = ["" if end is None else f"{name}{end}" for end in outputs]
        self._nodes.append(
            make_node(kind, inputs, results, name=f"{name}:{kind}", domain=FUSED if fused else "", **(attributes or {}))
        )
        return results

    def rows(self, name: str, table_RH: NDArray[Any], ids: str) -> str:
        """The rows of an embedding [R, H] at `ids`."""
        if self.precision != "int8":
            return self.node("Gather", self.constant(name, table_RH), ids)
        whole_RH, scales_R = quantized(table_RH)
        whole = self.node("Gather", self.constant(f"{name}_int8", whole_RH), ids)
        scale = self.node("Gather", self.constant(f"{name}_scales", scales_R[:, None]), ids)
        return self.node("Mul", self.node("Cast", whole, to=FLOAT), scale)

    def linear(self, x: str, name: str, weight_OI: NDArray[Any], bias_O: NDArray[Any] | None = None) -> str:
        """The product of the last dimension of `x` with a weight, plus the bias."""
        bias = "" if bias_O is None else self.constant(f"{name}.bias", bias_O)
        if self.precision == "int8":
            whole_OI, scales_O = quantized(weight_OI)
            weight = self.constant(f"{name}.weight_int8", whole_OI.T)
            scales = self.constant(f"{name}.weight_scales", scales_O)
            return self.node("DynamicQuantizeMatMul", x, weight, scales, "", bias, fused=True)
        product = self.node("MatMul", x, self.constant(f"{name}.weight", weight_OI.T))
        return self.node("Add", product, bias) if bias else product

    def decoder(self, x: str, name: str, table_VH: NDArray[Any], bias_V: NDArray[Any] | None) -> str:
        """The product of `x` with an embedding whose rows were read before: the file has it once."""
        if self.precision == "int8":
            whole_VH, scales_V = quantized(table_VH)
            weight = self.node("Transpose", self.constant(f"{name}_int8", whole_VH), perm=[1, 0])
            bias = "" if bias_V is None else self.constant("mlm.bias", bias_V)
            scales = self.constant(f"{name}_scales_flat", scales_V)
            return self.node("DynamicQuantizeMatMul", x, weight, scales, "", bias, fused=True)
        product = self.node("MatMul", x, self.node("Transpose", self.constant(name, table_VH), perm=[1, 0]))
        return product if bias_V is None else self.node("Add", product, self.constant("mlm.bias", bias_V))

    def norm(
        self, x: str, name: str, tensors: Tensors, epsilon: float, add: str = "", sum_too: bool = False
    ) -> list[str]:
        """Layer norm of `x`, or of `x + add`; with `sum_too` also that sum."""
        weight = self.constant(f"{name}.weight", tensors[f"{name}.weight"])
        bias = self.constant(f"{name}.bias", tensors[f"{name}.bias"]) if f"{name}.bias" in tensors else ""
        if not add:
            inputs = [x, weight, bias] if bias else [x, weight]
            return self.nodes("LayerNormalization", inputs, [""], name=name, attributes={"epsilon": epsilon})
        inputs = [x, add, weight, bias] if bias else [x, add, weight]
        ends = ["", None, None, "_sum"] if sum_too else [""]
        found = self.nodes("SkipLayerNormalization", inputs, ends, True, name, {"epsilon": epsilon})
        return [each for each in found if each]

    def model(
        self, inputs: Mapping[str, Sequence[str]], outputs: Mapping[str, tuple[str, Sequence[str | int]]]
    ) -> ModelProto:
        """The graph as a model, with the names and dimensions of its inputs (int64), and of its outputs (float32), each
        with the value that it is."""
        from onnx.helper import make_graph, make_model, make_node, make_opsetid, make_tensor_value_info

        for name, (value, _) in outputs.items():
            self._nodes.append(make_node("Cast", [value], [name], name=f"{name}:Cast", to=FLOAT))
        graph = make_graph(
            self._nodes,
            "bertwright",
            [make_tensor_value_info(name, INT64, shape) for name, shape in inputs.items()],
            [make_tensor_value_info(name, FLOAT, shape) for name, (_, shape) in outputs.items()],
            list(self._constants.values()),
        )
        versions = [make_opsetid("", OPSET), make_opsetid(FUSED, 1)]
        return make_model(graph, opset_imports=versions, ir_version=IR_VERSION, producer_name="bertwright")


def quantized(weight_OI: NDArray[Any]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """A matrix in whole numbers of -127 to 127, and the scale of each of its rows."""
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
