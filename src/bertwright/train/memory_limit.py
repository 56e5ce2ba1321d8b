"""Phases that take more than `train.memory_limit_gb` even one sequence at a time. Does not import torch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from bertwright.core.numbers import size_of
from bertwright.model.config import NetworkConfig
from bertwright.train.config import TrainConfig
from bertwright.train.sizes import Computing, training_bytes


class OverLimit(NamedTuple):
    """A phase whose smallest micro-batch takes more than the limit."""

    text: str
    """What is wrong, as a sentence."""
    remedy: str
    """What to do, as a sentence."""
    times: float
    """The memory that it takes, as a multiple of the limit."""


def over_limit(train: TrainConfig, network: NetworkConfig, computing: Computing) -> Iterator[OverLimit]:
    """Yield each phase of `micro_batch` auto that does not fit into the limit of the recipe, if there is one."""
    limit = 1e9 * train.memory_limit_gb
    for number, phase in enumerate(train.phases):
        if not limit or phase.micro_batch != "auto" or (least := training_bytes(network, phase, computing)) <= limit:
            continue
        key = f"train.phases.{number}.micro_batch"
        text = f"{key} = auto takes about {size_of(least)} even with one sequence at a time, but"
        yield OverLimit(
            f"{text} train.memory_limit_gb = {train.memory_limit_gb:g}.",
            f"Raise train.memory_limit_gb, lower train.phases.{number}.length, or choose a smaller model.size.",
            least / limit,
        )
