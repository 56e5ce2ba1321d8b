"""OpenVINO, for processors and graphics of Intel, in the layout that optimum-intel and sentence-transformers read.

Its own reader of ONNX makes the network. Numbers are float32: on a CPU with instructions for it, OpenVINO would compute
in bfloat16 unless told otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from numpy.typing import NDArray

from bertwright.export.onnx.reading import text_reader
from bertwright.export.runtimes.onnx_runtime import graph_refusal, write_onnx
from bertwright.export.runtimes.runtime import Published, Reader, Runtime


class OpenVino(Runtime):
    """See `Runtime`."""

    name = package = folder = reads = "openvino"
    title = "OpenVINO"
    needs = ("onnx",)
    install = "pip install 'bertwright[openvino]'"
    file = "openvino_model.xml"

    def refusal(self, model: Published) -> str:
        """As `Runtime.refusal`."""
        return graph_refusal(model)

    def write(self, model: Published, out: Path) -> None:
        """As `Runtime.write`."""
        import openvino

        with TemporaryDirectory(dir=out) as folder:
            path = Path(folder) / "model.onnx"
            write_onnx(model, path, "float32")
            # Not `convert_model`, whose package reports its use to Intel.
            network = openvino.Core().read_model(path)
            openvino.save_model(network, out / self.file, compress_to_fp16=False)

    @contextmanager
    def open(self, model: Published, out: Path, threads: int) -> Iterator[Reader]:
        """As `Runtime.open`."""
        import openvino

        settings = {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": "f32"}
        network = openvino.Core().compile_model(out / self.file, "CPU", settings)

        def compute(given: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
            found = network(dict(given))
            # An output may have several names: that of its node comes beside the one that it was given.
            return {name: found[output] for output in network.outputs for name in output.names}

        yield text_reader(model, [each.any_name for each in network.inputs], compute)
