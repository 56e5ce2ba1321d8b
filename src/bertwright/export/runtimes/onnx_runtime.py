"""ONNX Runtime, in float32, float16 and int8. The files are those that optimum and transformers.js read, too."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bertwright.core.errors import BertwrightError
from bertwright.export.onnx.graph import Precision, save
from bertwright.export.onnx.model import onnx_model
from bertwright.export.onnx.reading import text_reader
from bertwright.export.runtimes.runtime import Published, Reader, Runtime
from bertwright.model.pretrained_config import read_pretrained


class OnnxRuntime(Runtime):
    """ONNX Runtime with numbers of the given precision."""

    package = "onnxruntime"
    needs = ("onnx",)
    install = "pip install 'bertwright[onnx]'"
    folder = "onnx"

    def __init__(self, precision: Precision, name: str, title: str, file: str) -> None:
        """`file`: transformers.js chooses among these names by its option `dtype`: fp32, fp16, q8."""
        self.precision: Precision = precision
        self.name = self.reads = name
        self.title, self.file = title, file
        self.rounds = precision != "float32"

    def refusal(self, model: Published) -> str:
        """As `Runtime.refusal`."""
        return graph_refusal(model)

    def write(self, model: Published, out: Path) -> None:
        """As `Runtime.write`."""
        write_onnx(model, out / self.file, self.precision)

    @contextmanager
    def open(self, model: Published, out: Path, threads: int) -> Iterator[Reader]:
        """As `Runtime.open`."""
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        options.log_severity_level = 3  # errors: its warnings are about the graph, and nothing for a user to do
        session = onnxruntime.InferenceSession(str(out / self.file), options, providers=["CPUExecutionProvider"])
        names = [output.name for output in session.get_outputs()]
        inputs = [given.name for given in session.get_inputs()]
        yield text_reader(model, inputs, lambda given: dict(zip(names, session.run(None, given), strict=True)))


ONNX = OnnxRuntime("float32", "onnx", "ONNX Runtime", "model.onnx")
ONNX_FP16 = OnnxRuntime("float16", "onnx-fp16", "ONNX Runtime, fp16", "model_fp16.onnx")
ONNX_INT8 = OnnxRuntime("int8", "onnx-int8", "ONNX Runtime, int8", "model_quantized.onnx")


def graph_refusal(model: Published) -> str:
    """Why there is no ONNX graph of a model, in a sentence; "" if there is one."""
    try:
        _ = model.head  # an unknown one is an error
        return read_pretrained(model.folder).other_pooling
    except BertwrightError as error:
        return str(error)


def write_onnx(model: Published, path: Path, precision: Precision) -> None:
    """Write a published network as a file of ONNX; what is too large for it goes to a second file beside it."""
    from bertwright.model.text_encoder import load_model

    network = load_model(model.folder)
    tensors = {name: tensor.numpy() for name, tensor in network.state_dict().items()}
    save(onnx_model(network.config, tensors, precision), path)
