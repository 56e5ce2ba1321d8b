"""The complete configuration of a DistilBERT network (Sanh et al. 2019 §2). Does not import torch."""

from __future__ import annotations

from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from bertwright.model.family import (
    Activations,
    Allowed,
    Labels,
    NetworkSection,
    TensorShapes,
    bert_layers,
    check_heads,
    embeddings,
    linear,
    masked_token_head,
)


class DistilBertConfig(NetworkSection):
    """The complete configuration of a DistilBERT network. Field names are those of transformers' DistilBertConfig."""

    family: ClassVar = "distilbert"
    title: ClassVar[str] = "DistilBERT"
    decoder_bias: ClassVar[bool] = True
    """Whether the decoder of the masked-token head has a bias for every vocabulary entry."""
    next_sentence: ClassVar[bool] = False
    """There is no next-sentence head."""
    classifier_dropout: ClassVar[float] = 0.2
    """Dropout probability of the classifier's input: the reference's `seq_classif_dropout`."""
    layer_norm_eps: ClassVar[float] = 1e-12
    """Epsilon of layer norms, added to the variance; the reference has no key for it."""
    attention_output_dropout: ClassVar[float] = 0.0
    """Dropout probability of the output of attention: unlike BERT, DistilBERT has no dropout there."""
    segments: ClassVar[int] = 0
    """Rows of the segment embedding: there is none."""
    may_differ: ClassVar[frozenset[str]] = frozenset(
        {"vocab_size", "dropout", "attention_dropout", "initializer_range", "labels", "head"}
    )
    same_network: ClassVar[Allowed] = {
        "model_type": ("distilbert",),
        # True means fixed sinusoidal positions; the published networks have trained ones.
        "sinusoidal_pos_embds": (False,),
        "tie_weights_": (True,),
        "qa_dropout": None,
        "seq_classif_dropout": None,
    }

    vocab_size: int = Field(gt=0, lt=2**31)
    """Rows of the token embedding; at least the number of vocabulary entries."""
    dim: int = Field(gt=0, le=2**20)
    """Width of the hidden state."""
    n_layers: int = Field(gt=0, le=1024)
    """Number of encoder layers."""
    n_heads: int = Field(gt=0, le=2**16)
    """Number of attention heads per layer; must divide dim."""
    hidden_dim: int = Field(gt=0, le=2**22)
    """Width of the feed-forward layer."""
    activation: Literal["gelu"] = "gelu"
    """Activation of the feed-forward layer and the masked-token head: GELU with the exact erf."""
    dropout: float = Field(0.1, ge=0, lt=1)
    """Dropout probability of the embeddings and of the feed-forward layer's output."""
    attention_dropout: float = Field(0.1, ge=0, lt=1)
    """Dropout probability of attention weights."""
    max_position_embeddings: int = Field(512, gt=0, le=2**22)
    """Maximum sequence length, in tokens."""
    initializer_range: float = Field(0.02, gt=0)
    """Standard deviation of the normal distribution of the initial weights."""
    labels: Labels = ()
    """Class names of a classifier, which replaces the masked-token head; a single name: the output is a number."""

    @model_validator(mode="after")
    def _heads_divide_width(self) -> Self:
        check_heads(("dim", self.dim), ("n_heads", self.n_heads))
        return self

    @property
    def hidden_size(self) -> int:
        """`dim`, under the name that other families use."""
        return self.dim

    @property
    def num_hidden_layers(self) -> int:
        """`n_layers`, under the name that other families use."""
        return self.n_layers

    @property
    def num_attention_heads(self) -> int:
        """`n_heads`, under the name that other families use."""
        return self.n_heads

    @property
    def intermediate_size(self) -> int:
        """`hidden_dim`, under the name that other families use."""
        return self.hidden_dim

    @property
    def hidden_dropout_prob(self) -> float:
        """`dropout`, under the name that other families use."""
        return self.dropout

    @property
    def attention_probs_dropout_prob(self) -> float:
        """`attention_dropout`, under the name that other families use."""
        return self.attention_dropout

    @property
    def activations(self) -> Activations:
        """What a layer keeps for its backward pass."""
        h, f = self.dim, self.hidden_dim
        return Activations(feed_forward=2 * f, others=8 * h, masks=h)

    @property
    def tensors(self) -> TensorShapes:
        """The shape of every parameter of the network and its head, by name."""
        name, rows = self.family, {"token": self.vocab_size, "position": self.max_position_embeddings}
        encoder = embeddings(f"{name}.embeddings", rows, self.dim)
        encoder |= bert_layers(name, self.n_layers, self.dim, self.hidden_dim)
        if self.gives_vectors:
            return encoder
        if self.labels:
            head = {} if self.reads_tokens else linear("classification.transform", self.dim, self.dim)
            return encoder | head | linear("classification.classifier", len(self.labels), self.dim)
        return encoder | masked_token_head(self.dim, self.vocab_size)
