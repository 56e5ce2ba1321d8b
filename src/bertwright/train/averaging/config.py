"""The recipe's choice of an average of the weights. Knows no torch."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from bertwright.core.config import Section, by_kind


class NoAveragingConfig(Section):
    """The weights after the last update are the result."""

    kind: Literal["none"] = "none"
    """Names this choice."""


class EmaConfig(Section):
    """An exponential moving average of the weights, moved after every applied update."""

    kind: Literal["ema"] = "ema"
    """Names this average."""
    decay: float = Field(0.999, ge=0, lt=1)
    """Share of the average that each update leaves: 0.999 looks back about 1,000 updates."""
    start: float = Field(0.0, ge=0, lt=1)
    """Share of the steps of all phases, by their lengths, after which it begins, from the weights of that step. Above 0
    no phase may have `hours`: its length is then only the most it may take."""


class LastConfig(Section):
    """The mean of the weights at several steps near the end (Kaddour 2022). Each takes as much memory, and room in a
    checkpoint, as the weights."""

    kind: Literal["last"] = "last"
    """Names this average."""
    count: int = Field(5, ge=1)
    """Steps whose weights are averaged: the newest ones."""
    every: int = Field(100, ge=1)
    """Steps between them, counted over all phases; checkpoints have their own, which are free to change."""


def within_few_steps(config: NoAveragingConfig | EmaConfig | LastConfig) -> dict[str, Any]:
    """The section of the same average for a training of a few steps: one that would be made of distant steps, of which
    there are none, is made of each."""
    return {**config.model_dump(mode="json"), **({"every": 1} if isinstance(config, LastConfig) else {})}


AveragingConfig = Annotated[
    NoAveragingConfig | EmaConfig | LastConfig, Field(discriminator="kind"), BeforeValidator(by_kind)
]
"""What is scored and exported in place of the last weights."""
