"""The recipe section `[model]` of a BERT, and its named sizes. Does not import torch, so that checking stays fast."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from bertwright.core.config import UserPath, known_by_content, runtime_only
from bertwright.model.bert.network import BertConfig
from bertwright.model.family import Head, Labels
from bertwright.model.section import ModelSection

SizeName = Literal["tiny", "mini", "small", "medium", "base", "large"]

# Devlin et al. 2019 §3 (base, large) and Turc et al. 2019 (the others): hidden size, layers, heads, inner size.
SIZES: dict[SizeName, tuple[int, int, int, int]] = {
    "tiny": (128, 2, 2, 512),
    "mini": (256, 4, 4, 1024),
    "small": (512, 4, 8, 2048),
    "medium": (512, 8, 8, 2048),
    "base": (768, 12, 12, 3072),
    "large": (1024, 24, 16, 4096),
}


class BertModelConfig(ModelSection):
    """A BERT (Devlin et al. 2019): a named size or a configuration file."""

    takes_pairs: ClassVar = True
    sizes: ClassVar = SIZES
    size_values: ClassVar = {"attention_probs_dropout_prob": 0.0}
    attention_dropout_key: ClassVar = "attention_probs_dropout_prob"

    kind: Literal["bert"] = runtime_only("bert")
    """The family of networks. Not hashed, unlike the names of other families."""
    size: SizeName | None = None
    config: UserPath | None = known_by_content(None)
    """Path of a bert_config.json or config.json of Google, NVIDIA or Hugging Face; give either this or `size`."""
    dropout: float | None = Field(None, ge=0, lt=1)
    """Dropout probability of embeddings and sub-layer outputs; if unset, the file's value, or 0.1 for a named size."""
    attention_dropout: float | None = Field(None, ge=0, lt=1)
    """Dropout probability of attention weights; if unset, the file's value, or 0 for a named size (0.1 in the paper,
    which is slower and, on GPUs, rules out the fused kernels)."""
    initializer_range: float | None = Field(None, gt=0)
    """Standard deviation of the initial weights; if unset, the file's value, or the paper's 0.02 for a named size.
    Narrow networks learn faster with about 0.06."""

    def resolve(
        self, vocab_size: int, next_sentence: bool = True, labels: Labels = (), head: Head = "sequence"
    ) -> BertConfig:
        """As `ModelSection.network`."""
        return self.network(BertConfig, vocab_size, next_sentence, labels, head)
