"""Converts a recipe to the content of DeepSpeed's `ds_config.json`: values are set only in the recipe.

Does not import torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertwright.core.files import write_json
from bertwright.optim.config import OptimConfig
from bertwright.train.config import TrainConfig
from bertwright.train.engine.config import DeepSpeedConfig


@dataclass(frozen=True)
class Step:
    """Recipe values that DeepSpeed needs besides the sections of the engine and the optimizer."""

    batch: int = 1
    """Sequences per step, over all ranks."""
    micro_batch: int = 0
    """Sequences per forward pass; 0: a rank's entire share."""
    fp16: bool = False
    """Whether the network computes in float16."""


def step_of(train: TrainConfig, phase: int = 0) -> Step:
    """Return the `Step` of a phase."""
    config = train.phases[phase]
    # `auto` is refused with DeepSpeed (`contradictions.unsupported_by_sharding`).
    micro_batch = 0 if config.micro_batch == "auto" else config.micro_batch
    return Step(config.batch, micro_batch, train.precision.kind == "fp16")


def ds_config(config: DeepSpeedConfig, optim: OptimConfig, step: Step, ranks: int) -> dict[str, Any]:
    """Return DeepSpeed's configuration for this number of ranks.

    Its batch size must be accumulation x micro-batch x ranks; other sizes are rounded up to the next valid one. The
    engine marks the last micro-batch of each step, so this does not change any batch of the recipe.
    """
    share = -(-step.batch // ranks)
    micro_batch = min(share, step.micro_batch or share)
    accumulation = -(-share // micro_batch)
    return {
        "train_micro_batch_size_per_gpu": micro_batch,
        "gradient_accumulation_steps": accumulation,
        "train_batch_size": micro_batch * accumulation * ranks,
        # The loss scale comes from the recipe, and its state from the checkpoint: DeepSpeed receives it with each
        # update.
        **({"fp16": {"enabled": True}} if step.fp16 else {}),
        "zero_optimization": {"stage": config.stage},
        "gradient_clipping": optim.max_grad_norm,
        "zero_allow_untested_optimizer": True,
        "steps_per_print": 2**31,
    }


def write_ds_config(folder: Path, train: TrainConfig, optim: OptimConfig, ranks: int) -> None:
    """Write what DeepSpeed is given to `ds_config.json` in a folder, for the user to read, if the recipe has that
    engine; nothing reads the file."""
    if isinstance(train.engine, DeepSpeedConfig):
        write_json(folder / "ds_config.json", ds_config(train.engine, optim, step_of(train), ranks))
