"""Imports the package deepspeed for a device; refuses it if not installed or unable to compute as requested."""

from __future__ import annotations

import importlib
import os
from typing import Any

import torch

from bertwright.core.errors import MissingExtraError, RecipeError
from bertwright.train.engine.ds_config import Step


def open_package(device: torch.device, step: Step) -> Any:
    """Return the package, set to compute on the device.

    Raises `MissingExtraError` if it is not installed, `RecipeError` if it lacks float16 for a step that uses it.
    """
    if device.type == "cpu":
        os.environ.setdefault("DS_ACCELERATOR", "cpu")
    try:
        package = importlib.import_module("deepspeed")
    except ImportError as error:
        raise MissingExtraError(
            "train.engine = deepspeed needs the package deepspeed, which is not installed: pip install "
            "--no-build-isolation 'bertwright[deepspeed]'."
        ) from error
    accelerator = importlib.import_module("deepspeed.accelerator").get_accelerator()
    if step.fp16 and not accelerator.is_fp16_supported():
        raise RecipeError(
            "train.precision = fp16 with train.engine = deepspeed, but DeepSpeed has no float16 on this processor. "
            "Set train.precision=fp32, or train.engine=zero, which computes in float16 slowly "
            "(train.precision.allow_slow=true)."
        )
    if device.type == "cpu":
        # Disable its shared-memory all-reduce: the first start compiles it for minutes, and waits forever for a
        # compiler that was killed. gloo reduces instead, as for the other engines.
        package.ops.__compatible_ops__["deepspeed_shm_comm"] = False
    return package
