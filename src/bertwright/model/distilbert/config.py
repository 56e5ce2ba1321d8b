"""The recipe section `[model]` of a DistilBERT, and its named sizes. Knows no torch, so that checking stays quick."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from bertwright.core.config import Section, UserPath, known_by_content
from bertwright.model.choice import (
    Labels,
    check_size_or_config,
    chosen,
    embedding_rows,
    refuse_pairs,
    validated,
)
from bertwright.model.distilbert.network import DistilBertConfig

SizeName = Literal["tiny", "mini", "small", "medium", "base"]

# Sanh et al. 2019 §2 (base), and BERT's small sizes halved in the same way: hidden size, layers, heads, inner size.
SIZES: dict[SizeName, tuple[int, int, int, int]] = {
    "tiny": (128, 1, 2, 512),
    "mini": (256, 2, 4, 1024),
    "small": (512, 2, 8, 2048),
    "medium": (512, 4, 8, 2048),
    "base": (768, 6, 12, 3072),
}


class DistilBertModelConfig(Section):
    """A DistilBERT (Sanh et al. 2019): a named size or a configuration file. `train.objective` says what it learns."""

    takes_pairs: ClassVar[bool] = False
    """It has no segment embeddings and no next-sentence head."""

    kind: Literal["distilbert"] = "distilbert"
    """Names this family of networks."""
    size: SizeName | None = None
    """A named size: the paper's base, or a small BERT with half its layers; give this or `config`."""
    config: UserPath | None = known_by_content(None)
    """A config.json of Hugging Face's DistilBERT; give this or `size`."""
    dropout: float | None = Field(None, ge=0, lt=1)
    """Dropout of embeddings and feed-forward outputs (a probability); unset: the file's value, 0.1 for a named size."""
    attention_dropout: float | None = Field(None, ge=0, lt=1)
    """Dropout of attention weights (a probability); unset: the file's value, 0 for a named size (the paper has 0.1)."""
    max_positions: int | None = Field(None, gt=0)
    """Longest sequence the network can read, in tokens; unset: the file's value, 512 for a named size."""
    initializer_range: float | None = Field(None, gt=0)
    """Standard deviation that weights start from; unset: the file's value, 0.02 for a named size."""
    pad_vocab_to_multiple_of: int = Field(1, gt=0)
    """Round the rows of the embedding up to a multiple of this (8 or 64 suits GPUs); 1 adds none."""

    @model_validator(mode="after")
    def _size_or_config(self) -> Self:
        check_size_or_config(self.size, self.config, SIZES)
        return self

    def resolve(self, vocab_size: int, next_sentence: bool = False, labels: Labels = ()) -> DistilBertConfig:
        """As `BertModelConfig.resolve`; a `RecipeError` where a next-sentence head is asked for."""
        refuse_pairs(self.kind, next_sentence)
        own = self._of_size() if self.config is None else self._of_file(self.config)
        rows = embedding_rows(own, vocab_size, self.pad_vocab_to_multiple_of, self.config)
        wanted = chosen(
            {
                "dropout": self.dropout,
                "attention_dropout": self.attention_dropout,
                "max_position_embeddings": self.max_positions,
                "initializer_range": self.initializer_range,
            }
        )
        source = self.config or f"model.size {self.size}"
        values = own | wanted | {"vocab_size": rows, "labels": labels}
        return validated(DistilBertConfig, values, source, DistilBertConfig.title)

    def _of_file(self, path: Path) -> dict[str, Any]:
        # What other programs say about it is needed where they wrote it, not by every recipe.
        from bertwright.model.distilbert.stock_file import read_distilbert_config

        return read_distilbert_config(path)

    def _of_size(self) -> dict[str, Any]:
        assert self.size is not None
        dim, layers, heads, inner = SIZES[self.size]
        return {"dim": dim, "n_layers": layers, "n_heads": heads, "hidden_dim": inner, "attention_dropout": 0.0}
