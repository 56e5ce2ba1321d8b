"""What running a network by ONNX Runtime takes beside torch; asked before work starts, so without torch."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

REMEDY = "Run make ort-env in a checkout and train with .venv-ort/bin/bertwright, or set train.graph=eager."
"""Two environments may train one run, one after the other: prepared data and checkpoints are the same for both."""


def missing_ortmodule() -> str:
    """What running by ONNX Runtime lacks in this environment; "" if nothing."""
    # Found and not imported: the package would load torch.
    spec = find_spec("onnxruntime")
    folders = [Path(place) / "training" / "ortmodule" for place in (spec and spec.submodule_search_locations) or ()]
    if not any(folder.is_dir() for folder in folders):
        return "ONNX Runtime's training package (onnxruntime-training-cpu 1.19.2 with torch 2.3.1)"
    if not any(library for folder in folders for library in (folder / "torch_cpp_extensions").glob("*.so")):
        return "the extension of torch that ONNX Runtime's training package is built with"
    return ""
