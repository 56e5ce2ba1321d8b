"""Recipe settings for an average of the weights. Does not import torch."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from bertwright.core.config import Section, by_kind

Keep = Literal["better", "average"]


class NoAveragingConfig(Section):
    """No average: the weights after the last update are the result."""

    kind: Literal["none"] = "none"
    """Selects this choice."""


class EmaConfig(Section):
    """An exponential moving average of the weights, updated after every applied optimizer update.

    Its nth update keeps at most the share (1 + n) / (10 + n) of the average, so that an average over fewer updates than
    `decay` is meant for covers about the last tenth of them, not the first weights.
    """

    kind: Literal["ema"] = "ema"
    """Selects this average."""
    decay: float = Field(0.999, ge=0, lt=1)
    """Share of the average that each update keeps at most: 0.999 averages over about the last 1,000 updates."""
    start: float = Field(0.0, ge=0, lt=1)
    """Share of the steps of all phases, by their lengths, after which the average begins, from the weights of that
    step. If above 0, no phase may have `hours`, because its length is then only an upper limit."""
    keep: Keep = "better"
    """Weights of the finished model: `better`: the average or the last weights, whichever has the lower held-out loss
    at the end; `average`: the average in any case."""


class LastConfig(Section):
    """The mean of the weights at several steps near the end (Kaddour 2022). Each copy takes as much memory, and space
    in a checkpoint, as the weights."""

    kind: Literal["last"] = "last"
    """Selects this average."""
    count: int = Field(5, ge=1)
    """Number of steps whose weights are averaged: the newest ones."""
    every: int = Field(100, ge=1)
    """Steps between two averaged ones, counted over all phases; independent of the checkpoint interval."""
    keep: Keep = "better"
    """Weights of the finished model: `better`: the average or the last weights, whichever has the lower held-out loss
    at the end; `average`: the average in any case."""


def within_few_steps(config: NoAveragingConfig | EmaConfig | LastConfig) -> dict[str, Any]:
    """Return the section of the same average for a training of a few steps, in which `last` averages every step instead
    of distant ones."""
    return {**config.model_dump(mode="json"), **({"every": 1} if isinstance(config, LastConfig) else {})}


AveragingConfig = Annotated[
    NoAveragingConfig | EmaConfig | LastConfig, Field(discriminator="kind"), BeforeValidator(by_kind)
]
"""Which average may become the finished model instead of the last weights."""
