"""Imports the package deepspeed for a device, and adapts it to a process that trains more than once and is watched;
refuses it if not installed or unable to compute as requested."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from typing import Any

import torch

from bertwright.core.errors import MissingExtraError, RecipeError
from bertwright.train.engine.ds_config import Step
from bertwright.train.ranks import Ranks

_COLLECTIVES = (
    "all_gather",
    "all_gather_coalesced",
    "all_gather_into_tensor",
    "all_reduce",
    "all_reduce_coalesced",
    "barrier",
    "broadcast",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_tensor",
)
"""What its stages send, as methods of its transport."""


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
    # It keeps its groups in variables, and would use those of an earlier training of this process, which are closed.
    package.comm.comm.cdb = None
    package.utils.groups._WORLD_GROUP = None
    return package


def count_collectives(package: Any, ranks: Ranks) -> None:
    """Count what the package sends from now on, as `Ranks.count` says: the watchdog knows a rank that hangs by it."""
    transport = package.comm.comm.cdb
    for name in _COLLECTIVES:
        setattr(transport, name, _counted(getattr(transport, name), ranks))


def _counted(collective: Callable[..., Any], ranks: Ranks) -> Callable[..., Any]:
    def call(*arguments: Any, **options: Any) -> Any:
        ranks.count()
        return collective(*arguments, **options)

    return call
