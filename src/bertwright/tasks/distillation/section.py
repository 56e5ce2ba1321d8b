"""The presentation of distillation: that of pre-training, with what the teacher contributed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from bertwright.page.chart import Chart
from bertwright.page.markup import Content
from bertwright.tasks.pretraining.section import PreTrainingSection
from bertwright.tasks.section import Rows, loss_chart

_TERMS = {
    "soft": (
        "Loss of the teacher's answers",
        "loss (nats)",
        "How surprised the model is by the teacher's predictions, both softened. If both agree, the loss is the "
        "teacher's own uncertainty, not 0.",
    ),
    "hidden": (
        "Angle to the teacher's hidden states",
        "1 - cosine",
        "How far the hidden states of the masked tokens point from the teacher's, a mean over the compared layers: 0 "
        "is the same direction, 1 a right angle.",
    ),
}
_DISTILLED = (
    "It learned from the predictions of another network as well as from text (distillation, Hinton et al. 2015)."
)


class DistillationSection(PreTrainingSection):
    """See `TaskSection`."""

    learnt: ClassVar[str] = ""

    def name(self, network: str, counts: Mapping[str, Any]) -> str:
        """As `TaskSection.name`."""
        return f"{network}, taught by another network"

    def loss_chart(self, term: str, rows: Rows, boundaries: Sequence[float]) -> Chart:
        """As `TaskSection.loss_chart`."""
        labels = _TERMS.get(term)
        return loss_chart(term, labels, rows, boundaries) if labels else super().loss_chart(term, rows, boundaries)

    def holds(self, architecture: str, scores: Mapping[str, Any]) -> Content:
        """As `TaskSection.holds`: users need to know whose answers a model imitates."""
        return (super().holds(architecture, scores), " ", _DISTILLED)

    def _score_rows(
        self, architecture: str, scores: Mapping[str, Any], counts: Mapping[str, Any]
    ) -> list[tuple[str, str, str]]:
        rows, heldout = super()._score_rows(architecture, scores, counts), counts.get("heldout", {})
        # The teacher's terms are measured only during training.
        if "soft_accuracy" in heldout:
            rows.append(("same best guess as the teacher", f"{heldout['soft_accuracy']:.1%}", "taken in training"))
        if "hidden_loss" in heldout:
            cosine = f"{1 - heldout['hidden_loss']:.3f}"
            rows.append(("cosine with the teacher's hidden states", cosine, "taken in training"))
        return rows
