"""Check this machine: whether the hardware is sufficient, and which optional packages are installed."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from bertwright.check.verdict import Verdict, error, ok, warning
from bertwright.core.errors import MissingExtraError
from bertwright.core.numbers import size_of
from bertwright.core.resources import default_workers, memory_size
from bertwright.estimate.machine_facts import disk_free, torch_build

# The oldest supported version of torch.
_TORCH = (2, 11)
_EXTRAS = {
    "transformers": ("hf", "export"),
    "pyarrow": ("formats", "Parquet, LDDL and datasets"),
    "selectolax": ("html", "HTML pages and dumps of them"),
    "h5py": ("formats", "writing HDF5"),
    "sentencepiece": ("sentencepiece", "vocab.trainer.kind = sentencepiece"),
    "distributed": ("dask", "--dask"),
    "tensorboardX": ("tensorboard", "train.observers = tensorboard"),
    "mlflow": ("mlflow", "train.observers = mlflow"),
    "trackio": ("trackio", "train.observers = trackio"),
    "wandb": ("wandb", "train.observers = wandb"),
    "deepspeed": ("deepspeed", "train.engine = deepspeed"),
    "s3fs": ("s3", "sources and mirrors at s3://"),
    "adlfs": ("azure", "sources and mirrors at az://"),
}
"""Optional packages: the extra that contains each, and what needs it."""


def check_machine() -> list[Verdict]:
    """Return verdicts on CPUs, memory, disk of the current folder, Python, torch, GPUs, OpenMP threads and packages."""
    return [*_hardware(), _python(), *_torch(), _openmp_threads(), *_packages()]


def _hardware() -> Iterator[Verdict]:
    cores, memory, free = default_workers(), memory_size(), disk_free(Path.cwd())
    yield (
        ok("processors", f"{cores}")
        if cores > 1
        else warning(
            "processors",
            "one: the corpus stage cannot use a second worker.",
            "Allow this process to use more CPU cores.",
        )
    )
    if memory < 1e9:
        yield error("memory", f"{size_of(memory)}.", "The demo needs at least 1 GB.")
    elif memory < 4e9:
        yield warning("memory", f"{size_of(memory)}: enough for `mini`.", "For `base`, use 16 GB or a GPU.")
    else:
        yield ok("memory", f"{size_of(memory)}")
    if free < 2e9:
        yield warning(
            "disk", f"{size_of(free)} are free.", "A Wikipedia of 1 GB needs about 4 GB in addition to its dump."
        )
    else:
        yield ok("disk", f"{size_of(free)} are free")


def _python() -> Verdict:
    text = f"{platform.python_version()}, {platform.platform()}"
    if platform.system() in ("Linux", "Darwin"):
        return ok("python", text)
    return warning("python", f"{text}: bertwright is not tested on it.", "Use Linux (also WSL) or macOS.")


def _torch() -> Iterator[Verdict]:
    build = torch_build()
    if not build.version:
        yield error(
            "torch",
            "it is not installed.",
            "pip install torch (README says how to get the CPU build).",
            MissingExtraError,
        )
        return
    # Builds are called 2.13.0+cpu or 2.14.0a0, so only the leading numbers are compared.
    numbers = tuple(int(part) for part in build.version.split("+")[0].split(".")[:2] if part.isdigit())
    if numbers < _TORCH and _trains_by_torch():
        wanted = ".".join(map(str, _TORCH))
        yield error("torch", f"{build.version} is too old.", f"pip install 'torch>={wanted}'.", MissingExtraError)
        return
    try:
        # An installed torch may still fail to load: a CUDA build without its libraries raises here.
        from bertwright.model.device import visible_gpus

        gpus = visible_gpus()
    except (ImportError, OSError) as cause:
        yield error("torch", f"{build.version} cannot be loaded: {cause}.", "Install it again.", MissingExtraError)
        return
    yield ok("torch", f"{build.version}, {'with' if build.accelerated else 'without'} GPUs")
    if gpus:
        yield ok("gpu", "; ".join(gpus))
    elif build.accelerated:
        yield warning(
            "gpu",
            "torch finds none.",
            "Training runs on the CPU; check the driver (nvidia-smi) if there is a GPU.",
        )
    # The device file exists whatever torch was built for.
    elif os.path.exists("/dev/nvidia0"):
        yield warning("gpu", "there is a GPU, but this torch is a build for the CPU.", "Install a CUDA build of torch.")
    else:
        yield ok("gpu", "none: training runs on the CPU")


def _trains_by_torch() -> bool:
    """Whether this is no environment of `make ort-env`, whose torch is as old as ONNX Runtime's training package."""
    from bertwright.train.graph.packages import missing_ortmodule  # only an old torch needs it

    return bool(missing_ortmodule())


def _openmp_threads() -> Verdict:
    """Return a verdict on whether waiting OpenMP threads spin while other processes need the cores."""
    policy = os.environ.get("OMP_WAIT_POLICY", "").lower()
    load, cores = os.getloadavg()[0], default_workers()
    if policy == "passive":
        return ok(
            "waiting threads",
            "sleep (OMP_WAIT_POLICY=PASSIVE): half the speed on idle cores, but right on shared cores",
        )
    # Waiting threads that spin take cores away from processes that would use them.
    if load > cores / 2:
        text = f"spin, while other processes use these cores (load {load:.1f} on {cores}): up to ten times slower."
        return warning("waiting threads", text, "Set OMP_WAIT_POLICY=PASSIVE in the environment, or train.threads=1.")
    return ok("waiting threads", f"spin (OMP_WAIT_POLICY is {policy or 'not set'}): right on idle cores")


def _packages() -> Iterator[Verdict]:
    for module, (extra, purpose) in _EXTRAS.items():
        if find_spec(module) is None:
            remedy = f"To get it: pip install 'bertwright[{extra}]'."
            yield warning(module, f"is not installed; it is needed only for {purpose}.", remedy)
        else:
            yield ok(module, f"is installed, for {purpose}")
