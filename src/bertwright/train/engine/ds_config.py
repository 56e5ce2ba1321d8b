"""A recipe as DeepSpeed's `ds_config.json` would say it: each value stands in the recipe alone. Knows no torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bertwright.optim.config import OptimConfig
from bertwright.train.config import TrainConfig
from bertwright.train.engine.config import DeepSpeedConfig


@dataclass(frozen=True)
class Step:
    """What of a recipe DeepSpeed is told beside the sections of the engine and the optimizer."""

    batch: int = 1
    """Sequences of a step, of all ranks."""
    micro_batch: int = 0
    """Sequences of a forward pass; 0: all of a rank."""
    fp16: bool = False
    """Whether the network computes in float16."""


def step_of(train: TrainConfig, phase: int = 0) -> Step:
    """What a step of a phase is."""
    config = train.phases[phase]
    # `auto` is refused with DeepSpeed (`contradictions.in_parts`).
    micro_batch = 0 if config.micro_batch == "auto" else config.micro_batch
    return Step(config.batch, micro_batch, train.precision.kind == "fp16")


def ds_config(config: DeepSpeedConfig, optim: OptimConfig, step: Step, ranks: int) -> dict[str, Any]:
    """What DeepSpeed is told on so many ranks.

    Its batches are accumulation x micro-batch x ranks; of another one it is told the next that is. Which micro-batch of
    a step is the last it hears from the engine, so no batch of the recipe is changed by that.
    """
    share = -(-step.batch // ranks)
    micro_batch = min(share, step.micro_batch or share)
    accumulation = -(-share // micro_batch)
    return {
        "train_micro_batch_size_per_gpu": micro_batch,
        "gradient_accumulation_steps": accumulation,
        "train_batch_size": micro_batch * accumulation * ranks,
        # The loss scale is the recipe's, and its state is the checkpoint's: DeepSpeed is given it at each update.
        **({"fp16": {"enabled": True}} if step.fp16 else {}),
        "zero_optimization": {"stage": config.stage},
        "gradient_clipping": optim.max_grad_norm,
        "zero_allow_untested_optimizer": True,
        "steps_per_print": 2**31,
    }
