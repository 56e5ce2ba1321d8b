"""The recipe's choice of what a network is trained for. Knows no torch."""

from __future__ import annotations

from typing import Literal

from bertwright.core.config import Section


class PreTrainingConfig(Section):
    """Masked-language modelling and, where the examples are pairs of segments, next-sentence prediction."""

    kind: Literal["pretraining"] = "pretraining"
    """Names this objective."""

    def next_sentence(self, pairs: bool) -> bool:
        """Whether the network needs a next-sentence head; `pairs` says that the examples are pairs of segments."""
        return pairs


ObjectiveConfig = PreTrainingConfig
"""What a network can be trained for; the union of the sections when there are several."""
