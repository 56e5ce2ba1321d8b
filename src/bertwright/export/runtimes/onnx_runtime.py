"""ONNX Runtime, in float32, float16 and int8. The files are those that optimum and transformers.js read, too."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bertwright.core.errors import BertwrightError
from bertwright.export.onnx.graph import Precision, save
from bertwright.export.onnx.model import onnx_model
from bertwright.export.onnx.reading import text_reader
from bertwright.export.runtimes.runtime import Published, Reader, installed
from bertwright.model.pretrained_config import read_pretrained


@dataclass(frozen=True)
class OnnxRuntime:
    """See `Runtime`."""

    name: str
    title: str
    precision: Precision
    file: str
    """The name of its file; transformers.js chooses among them by its option `dtype`: fp32, fp16, q8."""
    package: str = "onnxruntime"
    install: str = "pip install 'bertwright[onnx]'"
    folder: str = "onnx"

    @property
    def reads(self) -> str:
        """As `Runtime.reads`."""
        return self.name

    @property
    def rounds(self) -> bool:
        """As `Runtime.rounds`."""
        return self.precision != "float32"

    def version(self) -> str:
        """As `Runtime.version`."""
        return installed(self.package)

    def missing(self) -> str:
        """As `Runtime.missing`."""
        gone = [name for name in ("onnx", self.package) if not installed(name)]
        return f"{' and '.join(gone)} not installed: {self.install}" if gone else ""

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


ONNX = OnnxRuntime("onnx", "ONNX Runtime", "float32", "model.onnx")
ONNX_FP16 = OnnxRuntime("onnx-fp16", "ONNX Runtime, fp16", "float16", "model_fp16.onnx")
ONNX_INT8 = OnnxRuntime("onnx-int8", "ONNX Runtime, int8", "int8", "model_quantized.onnx")


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
