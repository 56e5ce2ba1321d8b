"""A DistilBERT to the last number (Sanh et al. 2019 §2). Knows no torch."""

from __future__ import annotations

from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from bertwright.core.config import Section
from bertwright.model.choice import (
    Labels,
    check_heads,
)
from bertwright.model.tensor_shapes import TensorShapes, bert_layers, elements, embeddings, linear, masked_token_head


class DistilBertConfig(Section):
    """One DistilBERT network, to the last number. Field names are those of transformers' DistilBertConfig."""

    family: ClassVar = "distilbert"
    """The name of its encoder among the tensors."""
    title: ClassVar[str] = "DistilBERT"
    """The name of the family in sentences."""
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
