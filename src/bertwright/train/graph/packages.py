"""What a graph mode needs besides torch, and which mode `auto` is. Does not import torch, so that both are known before
work starts."""

from __future__ import annotations

import os
import shutil
import sysconfig
from importlib.util import find_spec
from pathlib import Path

from bertwright.train.config import TrainConfig
from bertwright.train.graph.config import AutoGraphConfig, ChosenGraph, CompiledConfig, EagerConfig

WORTH = 1e16
"""Operations of a training from which compiling pays off: half a minute of an H100, minutes of a smaller GPU. Compiling
takes about 20 seconds."""


def graph_of(train: TrainConfig, gpu: bool) -> ChosenGraph:
    """Return the graph of a recipe; for `auto`, what a long training has on this kind of device with a compiler."""
    if not isinstance(train.graph, AutoGraphConfig):
        return train.graph
    return EagerConfig() if not gpu or unsupported_when_compiled(train) else CompiledConfig()


def unsupported_when_compiled(train: TrainConfig) -> str:
    """Return what of a recipe a compiled network does not support; "" if nothing."""
    if train.attention == "sequences":
        return "train.attention=sequences makes different calls for every batch"
    if train.objective.compares_layers:
        return "the objective compares hidden states of single layers"
    if train.engine.kind in ("fsdp", "deepspeed"):
        return f"with train.engine={train.engine.kind} each rank has only parts of the tensors"
    return ""


def missing_compiler(device_type: str) -> str:
    """Return what is missing on this machine to compile for a device, cuda or cpu; "" if nothing."""
    if device_type == "cuda" and not find_spec("triton"):
        return "Triton, which torch for GPUs comes with (pip install triton)"
    # For a GPU, Triton compiles a module of Python in C that loads and starts kernels; for a CPU, torch compiles one in
    # C++ that computes. Both look only for these programs.
    language, variable, usual = ("C", "CC", ("gcc", "clang")) if device_type == "cuda" else ("C++", "CXX", ("g++",))
    programs = (os.environ[variable],) if variable in os.environ else usual
    if not any(map(shutil.which, programs)):
        return f"a {language} compiler ({' or '.join(programs)})"
    return "" if (header := python_header()).is_file() else f"Python's header file {header} (Debian: python3-dev)"


def python_header() -> Path:
    """Return where the header file of this Python must be."""
    # Not the default scheme: Debian's names a folder for local packages, without these files.
    return Path(sysconfig.get_path("include", "posix_prefix"), "Python.h")


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
