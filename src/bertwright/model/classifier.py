"""An encoder with a sequence classifier, like transformers' `BertForSequenceClassification`.

Names carry shapes: B sequences, T tokens of all sequences together, H hidden, C classes.
"""

from __future__ import annotations

from typing import assert_never, cast

from torch import Tensor, nn
from torch.nn.functional import gelu, relu

from bertwright.model.batch import PackedBatch
from bertwright.model.bert.network import BertConfig
from bertwright.model.config import Kernel, NetworkConfig
from bertwright.model.distilbert.network import DistilBertConfig
from bertwright.model.dropout import Dropout
from bertwright.model.encoder import Encoder, build_encoder
from bertwright.model.initial import draw_weights
from bertwright.model.modern.network import ModernConfig


class SequenceClassifier(nn.Module):
    """The encoder with one logit for each of `config.labels`; weights and `kernel` as for `PreTrainingModel`."""

    def __init__(self, config: NetworkConfig, kernel: Kernel = "sequences") -> None:
        super().__init__()
        self.config = config
        self.add_module(config.family, build_encoder(config, kernel))
        self.classification = ClassificationHead(config)
        draw_weights(self, config)

    @property
    def encoder(self) -> Encoder:
        """The encoder; its tensors are named after its family."""
        return cast(Encoder, self.get_submodule(self.config.family))

    def forward(self, batch: PackedBatch) -> Tensor:
        """Logits [B, C]."""
        # A sequence of length 0 starts at T, beyond the last token; its output has weight 0.
        first_B = batch.cu_seqlens[:-1].long().clamp(max=len(batch.token_ids) - 1)
        encoder = self.encoder
        return self.classification(encoder.pool(encoder(batch, first_B)))  # type: ignore[no-any-return]


class ClassificationHead(nn.Module):
    """The classification head between the state of [CLS] and the logits. All families apply dropout and a classifier;
    BERT nothing else (after its pooler), DistilBERT a linear map with ReLU before them, ModernBERT a linear map with
    GELU and a norm."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        width, self.family = config.hidden_size, config.family
        match config:
            case BertConfig():
                pass
            case DistilBertConfig():
                self.transform = nn.Linear(width, width)
            case ModernConfig():
                self.transform = nn.Linear(width, width, bias=False)
                self.norm = nn.LayerNorm(width, eps=config.norm_eps, bias=False)
            case _:
                assert_never(config)
        self.dropout = Dropout(config.classifier_dropout)
        self.classifier = nn.Linear(width, len(config.labels))

    def forward(self, pooled_BH: Tensor) -> Tensor:
        """Logits [B, C]."""
        if self.family == "distilbert":
            pooled_BH = relu(self.transform(pooled_BH))
        elif self.family == "modern":
            pooled_BH = self.norm(gelu(self.transform(pooled_BH)))
        return self.classifier(self.dropout(pooled_BH))  # type: ignore[no-any-return]
