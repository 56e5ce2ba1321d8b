"""BERT's classification head, as in transformers' `BertForSequenceClassification`: dropout and a classifier.

Names carry shapes: B sequences, H hidden, C classes.
"""

from __future__ import annotations

from torch import Tensor, nn

from bertwright.model.bert.network import BertConfig
from bertwright.model.dropout import Dropout


class BertClassificationHead(nn.Module):
    """Reads the pooler's output."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.dropout = Dropout(config.classifier_dropout)
        self.classifier = nn.Linear(config.hidden_size, len(config.labels))

    def forward(self, pooled_BH: Tensor) -> Tensor:
        """Logits [B, C]."""
        return self.classifier(self.dropout(pooled_BH))
