"""The recipe section `[model]` of a ModernBERT, and its named sizes. Does not import torch, so checking stays fast."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from bertwright.core.config import Section, UserPath, known_by_content
from bertwright.model.modern.network import ModernConfig
from bertwright.model.section_helpers import (
    Labels,
    check_size_or_config,
    chosen,
    embedding_rows,
    refuse_pairs,
    validated,
)

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


class ModernModelConfig(Section):
    """A ModernBERT (Warner et al. 2024): a named size or a configuration file."""

    takes_pairs: ClassVar[bool] = False
    """Pairs are not supported: it has no segment embeddings and no next-sentence head."""

    kind: Literal["modern"] = "modern"
    """The family of networks."""
    size: SizeName | None = None
    """Named size; give either this or `config`."""
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
    pad_vocab_to_multiple_of: int = Field(1, gt=0)
    """Round the number of embedding rows up to a multiple of this (8 or 64 is fast on GPUs); 1 adds no rows."""

    @model_validator(mode="after")
    def _size_or_config(self) -> Self:
        check_size_or_config(self.size, self.config, SIZES)
        return self

    def resolve(self, vocab_size: int, next_sentence: bool = False, labels: Labels = ()) -> ModernConfig:
        """As `BertModelConfig.resolve`. Raises `RecipeError` if a next-sentence head is requested."""
        refuse_pairs(self.kind, next_sentence)
        own = self._of_size() if self.config is None else self._of_file(self.config)
        rows = embedding_rows(own, vocab_size, self.pad_vocab_to_multiple_of, self.config)
        wanted = chosen(
            {
                "embedding_dropout": self.dropout,
                "mlp_dropout": self.dropout,
                "attention_dropout": self.attention_dropout,
                "max_position_embeddings": self.max_positions,
                "initializer_range": self.initializer_range,
            }
        )
        source = self.config or f"model.size {self.size}"
        values = own | wanted | {"vocab_size": rows, "labels": labels}
        return validated(ModernConfig, values, source, ModernConfig.title)

    def _of_file(self, path: Path) -> dict[str, Any]:
        # Imported lazily: most recipes do not read another program's configuration file.
        from bertwright.model.modern.stock_file import read_modern_config

        return read_modern_config(path)

    def _of_size(self) -> dict[str, Any]:
        assert self.size is not None
        hidden, layers, heads, inner = SIZES[self.size]
        return {
            "hidden_size": hidden,
            "num_hidden_layers": layers,
            "num_attention_heads": heads,
            "intermediate_size": inner,
            "max_position_embeddings": 1024,
        }
