"""The recipe section `[model]` of a ModernBERT, and its named sizes. Knows no torch, so that checking stays quick."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from bertwright.core.config import Section, UserPath, known_by_content
from bertwright.model.choice import Labels, check_size_or_config, chosen, embedding_rows, refuse_pairs, validated
from bertwright.model.modern.network import ModernConfig

SizeName = Literal["tiny", "mini", "small", "medium", "base", "large"]

# Warner et al. 2024 appendix (base, large): hidden size, layers, heads, inner size. The others have the widths of the
# BERT of the same name, base's inner size (1.5 times the hidden size) and as many layers as bring their parameters
# within a tenth of BERT's, the last with global attention as in base and large.
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
    """It has no segment embeddings and no next-sentence head."""

    kind: Literal["modern"] = "modern"
    """Names this family of networks."""
    size: SizeName | None = None
    """A named size; give this or `config`."""
    config: UserPath | None = known_by_content(None)
    """A config.json of ModernBERT, as its authors or Hugging Face write it; give this or `size`."""
    dropout: float | None = Field(None, ge=0, lt=1)
    """Dropout of embeddings and inside feed-forward layers (a probability); unset: the file's values, 0 for a named
    size."""
    attention_dropout: float | None = Field(None, ge=0, lt=1)
    """Dropout of attention weights and of what attention gives out (a probability); unset: the file's value, 0 for a
    named size."""
    max_positions: int | None = Field(None, gt=0)
    """Longest sequence the network can read, in tokens; unset: the file's value, 1024 for a named size (the length that
    the paper trains with at first). No weight depends on it."""
    initializer_range: float | None = Field(None, gt=0)
    """Standard deviation that weights start from, truncated and made smaller where layers add to the residual; unset:
    the file's value, 0.02 for a named size."""
    pad_vocab_to_multiple_of: int = Field(1, gt=0)
    """Round the rows of the embedding up to a multiple of this (8 or 64 suits GPUs); 1 adds none."""

    @model_validator(mode="after")
    def _size_or_config(self) -> Self:
        check_size_or_config(self.size, self.config, SIZES)
        return self

    def resolve(self, vocab_size: int, next_sentence: bool = False, labels: Labels = ()) -> ModernConfig:
        """As `BertModelConfig.resolve`; a `RecipeError` where a next-sentence head is asked for."""
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
        # What other programs say about it is needed where they wrote it, not by every recipe.
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
