"""The recipe section `[model]` of a DistilBERT, and its named sizes. Does not import torch, so checking stays fast."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from bertwright.core.config import UserPath, known_by_content
from bertwright.model.distilbert.network import DistilBertConfig
from bertwright.model.family import Head, Labels
from bertwright.model.section import ModelSection

SizeName = Literal["tiny", "mini", "small", "medium", "base"]

# Sanh et al. 2019 §2 (base), and BERT's small sizes halved in the same way: hidden size, layers, heads, inner size.
SIZES: dict[SizeName, tuple[int, int, int, int]] = {
    "tiny": (128, 1, 2, 512),
    "mini": (256, 2, 4, 1024),
    "small": (512, 2, 8, 2048),
    "medium": (512, 4, 8, 2048),
    "base": (768, 6, 12, 3072),
}


class DistilBertModelConfig(ModelSection):
    """A DistilBERT (Sanh et al. 2019): a named size or a configuration file. `train.objective` says what it learns."""

    sizes: ClassVar = SIZES
    size_keys: ClassVar = ("dim", "n_layers", "n_heads", "hidden_dim")
    size_values: ClassVar = {"attention_dropout": 0.0}
    dropout_keys: ClassVar = ("dropout",)

    kind: Literal["distilbert"] = "distilbert"
    size: SizeName | None = None
    """Named size: the paper's base, or a small BERT with half its layers; give either this or `config`."""
    config: UserPath | None = known_by_content(None)
    """Path of a config.json of Hugging Face's DistilBERT; give either this or `size`."""
    dropout: float | None = Field(None, ge=0, lt=1)
    """Dropout probability of embeddings and feed-forward outputs; if unset, the file's value, 0.1 for a named size."""

    def resolve(
        self, vocab_size: int, next_sentence: bool = False, labels: Labels = (), head: Head = "sequence"
    ) -> DistilBertConfig:
        """As `ModelSection.network`."""
        return self.network(DistilBertConfig, vocab_size, next_sentence, labels, head)
