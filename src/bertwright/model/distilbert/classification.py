"""DistilBERT's classification head, as in transformers' `DistilBertForSequenceClassification`: a linear map with ReLU
instead of a pooler, then dropout and a classifier.

Names carry shapes: B sequences, H hidden, C classes.
"""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn.functional import relu

from bertwright.model.distilbert.network import DistilBertConfig
from bertwright.model.dropout import Dropout


class DistilBertClassificationHead(nn.Module):
    """Reads the state of [CLS]."""

    def __init__(self, config: DistilBertConfig) -> None:
        super().__init__()
        self.transform = nn.Linear(config.dim, config.dim)
        self.dropout = Dropout(config.classifier_dropout)
        self.classifier = nn.Linear(config.dim, len(config.labels))

    def forward(self, first_BH: Tensor) -> Tensor:
        """Logits [B, C]."""
        return self.classifier(self.dropout(relu(self.transform(first_BH))))
