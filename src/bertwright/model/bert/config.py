"""The architecture of a BERT, the named sizes, and the recipe section `[model]` that chooses one.

Knows no torch, so that checking a recipe stays quick.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from bertwright.core.config import Section, UserPath, known_by_content, runtime_only
from bertwright.model.choice import Labels, check_heads, check_size_or_config, chosen, embedding_rows, validated
from bertwright.model.config_file import Allowed, own_values, read_config_file
from bertwright.model.tensor_shapes import TensorShapes, bert_layers, elements, embeddings, linear, masked_token_head

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

SAME_NETWORK: Allowed = {
    "model_type": ("bert",),
    "position_embedding_type": ("absolute",),
    "output_all_encoded_layers": (False,),
    "directionality": ("bidi",),
    "pooler_type": ("first_token_transform",),
    # Written by Google's multilingual release; no code of theirs reads them.
    "pooler_fc_size": None,
    "pooler_num_attention_heads": None,
    "pooler_num_fc_layers": None,
    "pooler_size_per_head": None,
}
"""Keys of other programs' files beside those of every family, with the values that mean a BERT."""


class BertConfig(Section):
    """One BERT network, to the last number. Field names are those of Google's bert_config.json."""

    family: ClassVar = "bert"
    """The name of its encoder among the tensors."""
    title: ClassVar[str] = "BERT"
    """The name of the family in sentences."""
    initializer: ClassVar[Literal["normal", "truncated"]] = "normal"
    """The rule by which weights are drawn: see `model/initial.py`."""
    head_biases: ClassVar[bool] = True
    """Whether the transform and the norm of the masked-token head have biases."""
    decoder_bias: ClassVar[bool] = True
    """Whether the decoder of the masked-token head has a bias for every entry."""

    vocab_size: int = Field(gt=0, lt=2**31)
    """Rows of the token embedding; at least the number of vocabulary entries."""
    hidden_size: int = Field(gt=0, le=2**20)
    """Width of the hidden state."""
    num_hidden_layers: int = Field(gt=0, le=1024)
    """Number of encoder layers."""
    num_attention_heads: int = Field(gt=0, le=2**16)
    """Attention heads per layer; divides hidden_size."""
    intermediate_size: int = Field(gt=0, le=2**22)
    """Width of the feed-forward layer."""
    hidden_act: Literal["gelu"] = "gelu"
    """Activation of the feed-forward layer and the MLM head: GELU with the exact erf."""
    hidden_dropout_prob: float = Field(0.1, ge=0, lt=1)
    """Probability of dropping an element of the embeddings and of each sub-layer's output."""
    attention_probs_dropout_prob: float = Field(0.1, ge=0, lt=1)
    """Probability of dropping an attention weight."""
    max_position_embeddings: int = Field(512, gt=0, le=2**22)
    """Longest sequence, in tokens."""
    type_vocab_size: int = Field(2, gt=0, le=2**16)
    """Number of segments (sentence A, sentence B)."""
    initializer_range: float = Field(0.02, gt=0)
    """Standard deviation of the normal distribution that weights start from."""
    layer_norm_eps: float = Field(1e-12, gt=0)
    """Added to the variance in layer normalisation."""
    next_sentence: bool = True
    """Whether the network has a pooler and a next-sentence head."""
    labels: Labels = ()
    """Names of the classes that it tells apart, in place of the pre-training heads; one: it gives a number."""

    @model_validator(mode="after")
    def _heads_divide_hidden(self) -> Self:
        heads = ("num_attention_heads", self.num_attention_heads)
        check_heads(("hidden_size", self.hidden_size), heads)
        return self

    @property
    def pooler(self) -> bool:
        """Whether a head reads the pooled state of [CLS]: else nothing would train the pooler but weight decay."""
        return self.next_sentence or bool(self.labels)

    @property
    def classifier_dropout(self) -> float:
        """Probability of dropping an element of what the classifier reads."""
        return self.hidden_dropout_prob

    @property
    def attention_output_dropout(self) -> float:
        """Probability of dropping an element of what attention gives to its residual."""
        return self.hidden_dropout_prob

    @property
    def layer_products(self) -> tuple[int, int]:
        """Weights that every token is multiplied with in a layer: up to attention, and after it."""
        h, f = self.hidden_size, self.intermediate_size
        return 3 * h * h, h * h + 2 * h * f

    @property
    def windows(self) -> tuple[int | None, ...]:
        """The window of attention of each layer, in tokens; None: it sees the whole sequence."""
        return (None,) * self.num_hidden_layers

    @property
    def tensors(self) -> TensorShapes:
        """The shape of every parameter of the network with its heads, by its name."""
        h, name = self.hidden_size, self.family
        rows = {"token": self.vocab_size, "position": self.max_position_embeddings, "segment": self.type_vocab_size}
        encoder = embeddings(f"{name}.embeddings", rows, h)
        encoder |= bert_layers(name, self.num_hidden_layers, h, self.intermediate_size)
        if self.pooler:
            encoder |= linear(f"{name}.pooler.dense", h, h)
        if self.labels:
            return encoder | linear("classification.classifier", len(self.labels), h)
        nsp = linear("nsp.classifier", 2, h) if self.next_sentence else {}
        return encoder | masked_token_head(h, self.vocab_size) | nsp

    @property
    def parameters(self) -> int:
        """Weights of the network with its heads; the tied decoder is counted once."""
        return elements(self.tensors)


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
        own = self._of_size() if self.config is None else read_bert_config(self.config)
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


def read_bert_config(path: Path) -> dict[str, Any]:
    """The `BertConfig` values of a configuration file by Google, NVIDIA, Hugging Face or this project.

    A `RecipeError` as for `own_values`, and where the values describe no network.
    """
    own = own_values(path, read_config_file(path), BertConfig.model_fields, SAME_NETWORK, BertConfig.title)
    validated(BertConfig, own, path, BertConfig.title)
    return own
