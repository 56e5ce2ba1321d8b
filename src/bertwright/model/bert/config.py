"""The recipe section `[model]` of a BERT, and its named sizes. Knows no torch, so that checking stays quick."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from bertwright.core.config import Section, UserPath, known_by_content, runtime_only
from bertwright.model.bert.network import BertConfig
from bertwright.model.choice import Labels, check_size_or_config, chosen, embedding_rows, validated

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
    """Whether it tells the segments of a pair apart, and may have a next-sentence head."""

    kind: Literal["bert"] = runtime_only("bert")
    """Names this family of networks. Not hashed: networks were trained before there could be another family, whose
    name is."""
    size: SizeName | None = None
    """A named size; give this or `config`."""
    config: UserPath | None = known_by_content(None)
    """A bert_config.json or config.json of Google, NVIDIA or Hugging Face; give this or `size`."""
    dropout: float | None = Field(None, ge=0, lt=1)
    """Dropout of embeddings and sub-layer outputs (a probability); unset: the file's value, 0.1 for a named size."""
    attention_dropout: float | None = Field(None, ge=0, lt=1)
    """Dropout of attention weights (a probability); unset: the file's value, 0 for a named size (the paper has 0.1,
    which takes time and, on GPUs, the fused kernels)."""
    max_positions: int | None = Field(None, gt=0)
    """Longest sequence the network can read, in tokens; unset: the file's value, 512 for a named size."""
    initializer_range: float | None = Field(None, gt=0)
    """Standard deviation that weights start from; unset: the file's value, the paper's 0.02 for a named size. Narrow
    networks learn sooner from about 0.06."""
    pad_vocab_to_multiple_of: int = Field(1, gt=0)
    """Round the rows of the embedding up to a multiple of this (8 or 64 suits GPUs); 1 adds none."""

    @model_validator(mode="after")
    def _size_or_config(self) -> Self:
        check_size_or_config(self.size, self.config, SIZES)
        return self

    def resolve(self, vocab_size: int, next_sentence: bool = True, labels: Labels = ()) -> BertConfig:
        """The architecture for a vocabulary of `vocab_size` entries, with a next-sentence head if the data has pairs,
        or with a classifier of `labels`.

        A configuration file with fewer rows than the vocabulary is a `RecipeError`; see `embedding_rows`.
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
        # What other programs say about it is needed where they wrote it, not by every recipe.
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
