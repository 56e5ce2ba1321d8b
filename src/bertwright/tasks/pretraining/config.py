"""The task `pretraining` in a recipe. Does not import torch."""

from __future__ import annotations

import re
from typing import Literal

from bertwright.tasks.task import TaskSettings

GAP = re.compile(r"\[MASK(?:=([^\]]+))?\]")
"""A gap in a cloze line: [MASK], or [MASK=word] if the word is known."""


class PreTrainingConfig(TaskSettings):
    """Masked-language modelling and, if the examples are pairs of segments, next-sentence prediction or, with
    `examples.plan = "sentence-order"`, sentence-order prediction."""

    kind: Literal["pretraining"] = "pretraining"
    """Names this objective."""
