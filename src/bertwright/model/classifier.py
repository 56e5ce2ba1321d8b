"""An encoder with a classifier, like transformers' `BertForSequenceClassification`, `BertForTokenClassification`,
`BertForQuestionAnswering` and `BertForMultipleChoice`.

Names carry shapes: B sequences, T tokens of all sequences together, P predictions, C classes.
"""

from __future__ import annotations

from typing import cast

from torch import Tensor, nn

from bertwright.model.batch import PackedBatch
from bertwright.model.config import Kernel, NetworkConfig
from bertwright.model.encoder import Encoder, build_classification_head, build_encoder
from bertwright.model.initial import draw_weights


class Classifier(nn.Module):
    """The encoder with a logit for each of `config.labels`; weights and `kernel` as for `PreTrainingModel`."""

    def __init__(self, config: NetworkConfig, kernel: Kernel = "sequences") -> None:
        super().__init__()
        self.config = config
        self.add_module(config.family, build_encoder(config, kernel))
        self.classification = build_classification_head(config)
        draw_weights(self, config)

    @property
    def encoder(self) -> Encoder:
        """The encoder; its tensors are named after its family."""
        return cast(Encoder, self.get_submodule(self.config.family))

    def forward(self, batch: PackedBatch) -> Tensor:
        """Logits [B, C] of the sequences; with the head `token` [P, C] of the predicted tokens; with the head `span`
        [T, C] of all tokens."""
        encoder = self.encoder
        match self.config.head:
            case "token":
                return self.classification(encoder(batch, batch.prediction_positions))
            case "span":
                return self.classification(encoder(batch))
        # A sequence of length 0 starts at T, beyond the last token; its output has weight 0.
        first_B = batch.cu_seqlens[:-1].long().clamp(max=len(batch.token_ids) - 1)
        return self.classification(encoder.pool(encoder(batch, first_B)))
