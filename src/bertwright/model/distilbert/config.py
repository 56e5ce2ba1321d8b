"""The architecture of a DistilBERT, the named sizes, and the recipe section `[model]` that chooses one.

Knows no torch, so that checking a recipe stays quick.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from bertwright.core.config import Section, UserPath, known_by_content
from bertwright.model.choice import (
    Labels,
    check_heads,
    check_size_or_config,
    chosen,
    embedding_rows,
    refuse_pairs,
    validated,
)
from bertwright.model.config_file import Allowed, own_values, read_config_file
from bertwright.model.tensor_shapes import TensorShapes, bert_layers, elements, embeddings, linear, masked_token_head

SizeName = Literal["tiny", "mini", "small", "medium", "base"]

# Sanh et al. 2019 §2 (base), and BERT's small sizes halved in the same way: hidden size, layers, heads, inner size.
SIZES: dict[SizeName, tuple[int, int, int, int]] = {
    "tiny": (128, 1, 2, 512),
    "mini": (256, 2, 4, 1024),
    "small": (512, 2, 8, 2048),
    "medium": (512, 4, 8, 2048),
    "base": (768, 6, 12, 3072),
}

SAME_NETWORK: Allowed = {
    "model_type": ("distilbert",),
    # Positions that are sines and are not trained; the published networks have trained ones.
    "sinusoidal_pos_embds": (False,),
    "tie_weights_": (True,),
    "qa_dropout": None,
    "seq_classif_dropout": None,
}
"""Keys of other programs' files beside those of every family, with the values that mean this network."""


class DistilBertConfig(Section):
    """One DistilBERT network, to the last number. Field names are those of transformers' DistilBertConfig."""

    family: ClassVar = "distilbert"
    """The name of its encoder among the tensors."""
    title: ClassVar[str] = "DistilBERT"
    """The name of the family in sentences."""
    initializer: ClassVar[Literal["normal", "truncated"]] = "normal"
    """The rule by which weights are drawn: see `model/initial.py`."""
    head_biases: ClassVar[bool] = True
    """Whether the transform and the norm of the masked-token head have biases."""
    decoder_bias: ClassVar[bool] = True
    """Whether the decoder of the masked-token head has a bias for every entry."""
    next_sentence: ClassVar[bool] = False
    """There is no next-sentence head."""
    classifier_dropout: ClassVar[float] = 0.2
    """Probability of dropping an element of what the classifier reads: the reference's `seq_classif_dropout`."""
    layer_norm_eps: ClassVar[float] = 1e-12
    """Added to the variance in layer normalisation; the reference has no key for it."""
    attention_output_dropout: ClassVar[float] = 0.0
    """What attention gives to its residual is not dropped here, as it is in BERT."""

    vocab_size: int = Field(gt=0, lt=2**31)
    """Rows of the token embedding; at least the number of vocabulary entries."""
    dim: int = Field(gt=0, le=2**20)
    """Width of the hidden state."""
    n_layers: int = Field(gt=0, le=1024)
    """Number of encoder layers."""
    n_heads: int = Field(gt=0, le=2**16)
    """Attention heads per layer; divides dim."""
    hidden_dim: int = Field(gt=0, le=2**22)
    """Width of the feed-forward layer."""
    activation: Literal["gelu"] = "gelu"
    """Activation of the feed-forward layer and the masked-token head: GELU with the exact erf."""
    dropout: float = Field(0.1, ge=0, lt=1)
    """Probability of dropping an element of the embeddings and of the feed-forward layer's output."""
    attention_dropout: float = Field(0.1, ge=0, lt=1)
    """Probability of dropping an attention weight."""
    max_position_embeddings: int = Field(512, gt=0, le=2**22)
    """Longest sequence, in tokens."""
    initializer_range: float = Field(0.02, gt=0)
    """Standard deviation of the normal distribution that weights start from."""
    labels: Labels = ()
    """Names of the classes that it tells apart, in place of the masked-token head; one: it gives a number."""

    @model_validator(mode="after")
    def _heads_divide_width(self) -> Self:
        check_heads(("dim", self.dim), ("n_heads", self.n_heads))
        return self

    @property
    def hidden_size(self) -> int:
        """`dim`, by the name of the other families."""
        return self.dim

    @property
    def num_hidden_layers(self) -> int:
        """`n_layers`, by the name of the other families."""
        return self.n_layers

    @property
    def num_attention_heads(self) -> int:
        """`n_heads`, by the name of the other families."""
        return self.n_heads

    @property
    def intermediate_size(self) -> int:
        """`hidden_dim`, by the name of the other families."""
        return self.hidden_dim

    @property
    def hidden_dropout_prob(self) -> float:
        """`dropout`, by the name of the other families."""
        return self.dropout

    @property
    def attention_probs_dropout_prob(self) -> float:
        """`attention_dropout`, by the name of the other families."""
        return self.attention_dropout

    @property
    def layer_products(self) -> tuple[int, int]:
        """Weights that every token is multiplied with in a layer: up to attention, and after it."""
        h, f = self.dim, self.hidden_dim
        return 3 * h * h, h * h + 2 * h * f

    @property
    def windows(self) -> tuple[int | None, ...]:
        """The window of attention of each layer, in tokens; None: it sees the whole sequence."""
        return (None,) * self.n_layers

    @property
    def tensors(self) -> TensorShapes:
        """The shape of every parameter of the network with its head, by its name."""
        name, rows = self.family, {"token": self.vocab_size, "position": self.max_position_embeddings}
        encoder = embeddings(f"{name}.embeddings", rows, self.dim)
        encoder |= bert_layers(name, self.n_layers, self.dim, self.hidden_dim)
        if self.labels:
            head = linear("classification.transform", self.dim, self.dim)
            return encoder | head | linear("classification.classifier", len(self.labels), self.dim)
        return encoder | masked_token_head(self.dim, self.vocab_size)

    @property
    def parameters(self) -> int:
        """Weights of the network with its head; the tied decoder is counted once."""
        return elements(self.tensors)


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
        own = self._of_size() if self.config is None else read_distilbert_config(self.config)
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

    def _of_size(self) -> dict[str, Any]:
        assert self.size is not None
        dim, layers, heads, inner = SIZES[self.size]
        return {"dim": dim, "n_layers": layers, "n_heads": heads, "hidden_dim": inner, "attention_dropout": 0.0}


def read_distilbert_config(path: Path) -> dict[str, Any]:
    """The `DistilBertConfig` values of a configuration file by Hugging Face or this project.

    A `RecipeError` as for `own_values`, and where the values describe no network.
    """
    title = DistilBertConfig.title
    own = own_values(path, read_config_file(path), DistilBertConfig.model_fields, SAME_NETWORK, title)
    validated(DistilBertConfig, own, path, title)
    return own
