"""The two tasks of Devlin et al. 2019 §3.1: masked-language modelling (MLM) and next-sentence prediction (NSP), or
instead of NSP sentence order (SOP, Lan et al. 2020 §3.1), which differs only in the examples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torch import nn

from bertwright.model.batch import PackedBatch
from bertwright.tasks.terms import Counted, Term


@dataclass(frozen=True)
class PreTraining:
    """MLM over all predictions and, if the network has the head for it, NSP or SOP over all pairs of segments."""

    next_sentence: bool
    pair_task: str = "nsp"
    """The name of the second term, the task of the pair labels: "nsp" or "sop"."""

    @property
    def counted(self) -> Mapping[str, Counted]:
        """As `Objective.counted`."""
        return {"mlm": "predictions", self.pair_task: "pairs"} if self.next_sentence else {"mlm": "predictions"}

    def terms(self, model: nn.Module, batch: PackedBatch) -> Mapping[str, Term]:
        """As `Objective.terms`; the model returns logits [P, V] for the masked tokens and [B, 2] for the sequences."""
        mlm_PV, nsp_B2 = model(batch)
        terms = {"mlm": Term(mlm_PV, batch.labels, batch.weights)}
        # A model without the head returns None; the term is omitted instead of reported as a loss of 0.
        if self.next_sentence:
            terms[self.pair_task] = Term(nsp_B2, batch.sequence_labels, batch.sequence_weights)
        return terms
