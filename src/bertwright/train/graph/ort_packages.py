"""What running a network with ONNX Runtime needs besides torch; checked before work starts, so without importing
torch."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

REMEDY = "Run make ort-env in a checkout and train with .venv-ort/bin/bertwright, or set train.graph=eager."
"""Remedy named in errors. Both environments may train one run, one after the other, with the same data and
checkpoints."""


def missing_ortmodule() -> str:
    """Return what is missing in this environment to run with ONNX Runtime; "" if nothing."""
    # Located, not imported: the package would load torch.
    spec = find_spec("onnxruntime")
    folders = [Path(place) / "training" / "ortmodule" for place in (spec and spec.submodule_search_locations) or ()]
    if not any(folder.is_dir() for folder in folders):
        return "ONNX Runtime's training package (onnxruntime-training-cpu 1.19.2 with torch 2.3.1)"
    if not any(library for folder in folders for library in (folder / "torch_cpp_extensions").glob("*.so")):
        return "the extension of torch that ONNX Runtime's training package is built with"
    return ""
