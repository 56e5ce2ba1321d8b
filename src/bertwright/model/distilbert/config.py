"""The recipe section `[model]` of a DistilBERT, and its named sizes. Does not import torch, so checking stays fast."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from bertwright.core.config import Section, UserPath, known_by_content
from bertwright.model.distilbert.network import DistilBertConfig
from bertwright.model.section_helpers import (
    Labels,
    check_size_or_config,
    chosen,
    embedding_rows,
    refuse_pairs,
    validated,
)

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
    """Pairs are not supported: it has no segment embeddings and no next-sentence head."""

    kind: Literal["distilbert"] = "distilbert"
    """The family of networks."""
    size: SizeName | None = None
    """Named size: the paper's base, or a small BERT with half its layers; give either this or `config`."""
    config: UserPath | None = known_by_content(None)
    """Path of a config.json of Hugging Face's DistilBERT; give either this or `size`."""
    dropout: float | None = Field(None, ge=0, lt=1)
    """Dropout probability of embeddings and feed-forward outputs; if unset, the file's value, 0.1 for a named size."""
    attention_dropout: float | None = Field(None, ge=0, lt=1)
    """Dropout probability of attention weights; if unset, the file's value, 0 for a named size (0.1 in the paper)."""
    max_positions: int | None = Field(None, gt=0)
    """Maximum sequence length, in tokens; if unset, the file's value, or 512 for a named size."""
    initializer_range: float | None = Field(None, gt=0)
    """Standard deviation of the initial weights; if unset, the file's value, or 0.02 for a named size."""
    pad_vocab_to_multiple_of: int = Field(1, gt=0)
    """Round the number of embedding rows up to a multiple of this (8 or 64 is fast on GPUs); 1 adds no rows."""

    @model_validator(mode="after")
    def _size_or_config(self) -> Self:
        check_size_or_config(self.size, self.config, SIZES)
        return self

    def resolve(self, vocab_size: int, next_sentence: bool = False, labels: Labels = ()) -> DistilBertConfig:
        """As `BertModelConfig.resolve`. Raises `RecipeError` if a next-sentence head is requested."""
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
        # Imported lazily: most recipes do not read another program's configuration file.
        from bertwright.model.distilbert.stock_file import read_distilbert_config

        return read_distilbert_config(path)

    def _of_size(self) -> dict[str, Any]:
        assert self.size is not None
        dim, layers, heads, inner = SIZES[self.size]
        return {"dim": dim, "n_layers": layers, "n_heads": heads, "hidden_dim": inner, "attention_dropout": 0.0}
