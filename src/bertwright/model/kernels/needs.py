"""What kernels of our own need. Does not import Triton."""

from __future__ import annotations

from importlib.util import find_spec

import torch

from bertwright.core.errors import MissingExtraError
from bertwright.model.config import VARLEN_CAPABILITY


def missing_for(key: str, device: torch.device, on_a_cpu: str, instead: str) -> str:
    """Return what a device lacks for the value `triton` of a key, and the value to set instead; "" if nothing.

    Raises `MissingExtraError` if there is no Triton.
    """
    if device.type != "cuda":
        return f"is for GPUs, but this training runs on a CPU; set {key}={on_a_cpu}"
    if not torch.version.hip and (has := torch.cuda.get_device_capability(device)) < VARLEN_CAPABILITY:
        return f"needs compute capability 8.0, but this GPU has {has[0]}.{has[1]}; set {key}={instead}"
    if find_spec("triton") is None:
        raise MissingExtraError(
            f"{key} = triton needs Triton, which comes with torch for CUDA. Install the version that torch "
            f"{torch.__version__} was built with, or set {key}={instead}."
        )
    return ""
