"""The recipe section `[model]` of a BERT, and its named sizes. Does not import torch, so that checking stays fast."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from bertwright.core.config import Section, UserPath, known_by_content, runtime_only
from bertwright.model.bert.network import BertConfig
from bertwright.model.section_helpers import Labels, check_size_or_config, chosen, embedding_rows, validated

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


class BertModelConfig(Section):
    """A BERT (Devlin et al. 2019): a named size or a configuration file."""

    takes_pairs: ClassVar[bool] = True
    """Pairs are supported: it distinguishes segments and can have a next-sentence head."""

    kind: Literal["bert"] = runtime_only("bert")
    """The family of networks. Not hashed, unlike the names of other families, because earlier versions had no other
    family and no such key."""
    size: SizeName | None = None
    """Named size; give either this or `config`."""
    config: UserPath | None = known_by_content(None)
    """Path of a bert_config.json or config.json of Google, NVIDIA or Hugging Face; give either this or `size`."""
    dropout: float | None = Field(None, ge=0, lt=1)
    """Dropout probability of embeddings and sub-layer outputs; if unset, the file's value, or 0.1 for a named size."""
    attention_dropout: float | None = Field(None, ge=0, lt=1)
    """Dropout probability of attention weights; if unset, the file's value, or 0 for a named size (0.1 in the paper,
    which is slower and, on GPUs, rules out the fused kernels)."""
    max_positions: int | None = Field(None, gt=0)
    """Maximum sequence length, in tokens; if unset, the file's value, or 512 for a named size."""
    initializer_range: float | None = Field(None, gt=0)
    """Standard deviation of the initial weights; if unset, the file's value, or the paper's 0.02 for a named size.
    Narrow networks learn faster with about 0.06."""
    pad_vocab_to_multiple_of: int = Field(1, gt=0)
    """Round the number of embedding rows up to a multiple of this (8 or 64 is fast on GPUs); 1 adds no rows."""

    @model_validator(mode="after")
    def _size_or_config(self) -> Self:
        check_size_or_config(self.size, self.config, SIZES)
        return self

    def resolve(self, vocab_size: int, next_sentence: bool = True, labels: Labels = ()) -> BertConfig:
        """Return the network configuration for a vocabulary of `vocab_size` entries, with a next-sentence head if
        `next_sentence` is set, or with a classifier for `labels`.

        Raises `RecipeError` if a configuration file has fewer rows than the vocabulary; see `embedding_rows`.
        """
        own = self._of_size() if self.config is None else self._of_file(self.config)
        rows = embedding_rows(own, vocab_size, self.pad_vocab_to_multiple_of, self.config)
        wanted = chosen(
            {
                "hidden_dropout_prob": self.dropout,
                "attention_probs_dropout_prob": self.attention_dropout,
                "max_position_embeddings": self.max_positions,
                "initializer_range": self.initializer_range,
            }
        )
        values = own | wanted | {"vocab_size": rows, "next_sentence": next_sentence, "labels": labels}
        return validated(BertConfig, values, self.config or f"model.size {self.size}", BertConfig.title)

    def _of_file(self, path: Path) -> dict[str, Any]:
        # Imported lazily: most recipes do not read another program's configuration file.
        from bertwright.model.bert.stock_file import read_bert_config

        return read_bert_config(path)

    def _of_size(self) -> dict[str, Any]:
        assert self.size is not None
        hidden, layers, heads, inner = SIZES[self.size]
        return {
            "hidden_size": hidden,
            "num_hidden_layers": layers,
            "num_attention_heads": heads,
            "intermediate_size": inner,
            "attention_probs_dropout_prob": 0.0,
        }
