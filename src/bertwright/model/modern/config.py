"""The recipe section `[model]` of a ModernBERT, and its named sizes. Does not import torch, so checking stays fast."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from bertwright.core.config import UserPath, known_by_content
from bertwright.model.family import Head, Labels
from bertwright.model.modern.network import ModernConfig
from bertwright.model.section import ModelSection

SizeName = Literal["tiny", "mini", "small", "medium", "base", "large"]

# Warner et al. 2024 appendix (base, large): hidden size, layers, heads, inner size. The other sizes have the width of
# the BERT with the same name, base's ratio of inner to hidden size (1.5), and a number of layers for which the
# parameters are within a tenth of BERT's and the last layer has global attention, as in base and large.
SIZES: dict[SizeName, tuple[int, int, int, int]] = {
    "tiny": (128, 4, 2, 192),
    "mini": (256, 7, 4, 384),
    "small": (512, 7, 8, 768),
    "medium": (512, 10, 8, 768),
    "base": (768, 22, 12, 1152),
    "large": (1024, 28, 16, 2624),
}


class ModernModelConfig(ModelSection):
    """A ModernBERT (Warner et al. 2024): a named size or a configuration file."""

    sizes: ClassVar = SIZES
    size_values: ClassVar = {"max_position_embeddings": 1024}
    dropout_keys: ClassVar = ("embedding_dropout", "mlp_dropout")

    kind: Literal["modern"] = "modern"
    size: SizeName | None = None
    config: UserPath | None = known_by_content(None)
    """Path of a config.json of ModernBERT, as its authors or Hugging Face write it; give either this or `size`."""
    dropout: float | None = Field(None, ge=0, lt=1)
    """Dropout probability of embeddings and inside feed-forward layers; if unset, the file's values, or 0 for a named
    size."""
    attention_dropout: float | None = Field(None, ge=0, lt=1)
    """Dropout probability of attention weights and of the output of attention; if unset, the file's value, or 0 for a
    named size."""
    max_positions: int | None = Field(None, gt=0)
    """Maximum sequence length, in tokens; if unset, the file's value, or 1024 for a named size (the initial training
    length of the paper). No weight depends on it."""
    initializer_range: float | None = Field(None, gt=0)
    """Standard deviation of the initial weights, before truncation; smaller for matrices whose output is added to the
    residual. If unset, the file's value, or 0.02 for a named size."""

    def resolve(
        self, vocab_size: int, next_sentence: bool = False, labels: Labels = (), head: Head = "sequence"
    ) -> ModernConfig:
        """As `ModelSection.network`."""
        return self.network(ModernConfig, vocab_size, next_sentence, labels, head)
