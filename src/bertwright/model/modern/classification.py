"""ModernBERT's classification head, as in transformers' `ModernBertForSequenceClassification`: the transform and the
norm of its masked-token head, then dropout and a classifier.

Names carry shapes: B sequences, H hidden, C classes.
"""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn.functional import gelu

from bertwright.model.dropout import Dropout
from bertwright.model.modern.network import ModernConfig


class ModernClassificationHead(nn.Module):
    """Reads the state of [CLS]."""

    def __init__(self, config: ModernConfig) -> None:
        super().__init__()
        width = config.hidden_size
        self.transform = nn.Linear(width, width, bias=False)
        self.norm = nn.LayerNorm(width, eps=config.norm_eps, bias=False)
        self.dropout = Dropout(config.classifier_dropout)
        self.classifier = nn.Linear(width, len(config.labels))

    def forward(self, first_BH: Tensor) -> Tensor:
        """Logits [B, C]."""
        transformed_BH = self.norm(gelu(self.transform(first_BH)))
        return self.classifier(self.dropout(transformed_BH))
