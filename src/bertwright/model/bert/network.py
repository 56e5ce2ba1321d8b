"""The complete configuration of a BERT network (Devlin et al. 2019 §3). Does not import torch."""

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


class BertConfig(NetworkSection):
    """The complete configuration of a BERT network. Field names are those of Google's bert_config.json."""

    family: ClassVar = "bert"
    title: ClassVar[str] = "BERT"
    decoder_bias: ClassVar[bool] = True
    """Whether the decoder of the masked-token head has a bias for every vocabulary entry."""
    may_differ: ClassVar[frozenset[str]] = frozenset(
        {
            "vocab_size",
            "hidden_dropout_prob",
            "attention_probs_dropout_prob",
            "initializer_range",
            "next_sentence",
            "labels",
            "head",
        }
    )
    same_network: ClassVar[Allowed] = {
        "model_type": ("bert",),
        "position_embedding_type": ("absolute",),
        "output_all_encoded_layers": (False,),
        "directionality": ("bidi",),
        "pooler_type": ("first_token_transform",),
        # Google's multilingual release has these keys, but its code does not read them.
        "pooler_fc_size": None,
        "pooler_num_attention_heads": None,
        "pooler_num_fc_layers": None,
        "pooler_size_per_head": None,
    }

    vocab_size: int = Field(gt=0, lt=2**31)
    """Rows of the token embedding; at least the number of vocabulary entries."""
    hidden_size: int = Field(gt=0, le=2**20)
    """Width of the hidden state."""
    num_hidden_layers: int = Field(gt=0, le=1024)
    """Number of encoder layers."""
    num_attention_heads: int = Field(gt=0, le=2**16)
    """Number of attention heads per layer; must divide hidden_size."""
    intermediate_size: int = Field(gt=0, le=2**22)
    """Width of the feed-forward layer."""
    hidden_act: Literal["gelu"] = "gelu"
    """Activation of the feed-forward layer and the masked-token head: GELU with the exact erf."""
    hidden_dropout_prob: float = Field(0.1, ge=0, lt=1)
    """Dropout probability of the embeddings and of each sub-layer's output."""
    attention_probs_dropout_prob: float = Field(0.1, ge=0, lt=1)
    """Dropout probability of attention weights."""
    max_position_embeddings: int = Field(512, gt=0, le=2**22)
    """Maximum sequence length, in tokens."""
    type_vocab_size: int = Field(2, gt=0, le=2**16)
    """Number of segments (sentence A, sentence B)."""
    initializer_range: float = Field(0.02, gt=0)
    """Standard deviation of the normal distribution of the initial weights."""
    layer_norm_eps: float = Field(1e-12, gt=0)
    """Epsilon of layer norms, added to the variance."""
    next_sentence: bool = True
    """Whether the network has a pooler and a next-sentence head."""
    labels: Labels = ()
    """Class names of a classifier, which replaces the pre-training heads; a single name: the output is a number."""

    @model_validator(mode="after")
    def _heads_divide_hidden(self) -> Self:
        heads = ("num_attention_heads", self.num_attention_heads)
        check_heads(("hidden_size", self.hidden_size), heads)
        return self

    @property
    def segments(self) -> int:
        """Rows of the segment embedding; 0 in families without one."""
        return self.type_vocab_size

    @property
    def pooler(self) -> bool:
        """Whether there is a pooler, that is, a head that reads it: otherwise only weight decay would change it."""
        return self.next_sentence or (bool(self.labels) and not self.reads_tokens)

    @property
    def classifier_dropout(self) -> float:
        """Dropout probability of the classifier's input."""
        return self.hidden_dropout_prob

    @property
    def attention_output_dropout(self) -> float:
        """Dropout probability of the output of attention, before it is added to the residual."""
        return self.hidden_dropout_prob

    @property
    def activations(self) -> Activations:
        """What a layer keeps for its backward pass."""
        h, f = self.hidden_size, self.intermediate_size
        return Activations(feed_forward=2 * f, others=8 * h, masks=2 * h)

    @property
    def tensors(self) -> TensorShapes:
        """The shape of every parameter of the network and its heads, by name."""
        h, name = self.hidden_size, self.family
        rows = {"token": self.vocab_size, "position": self.max_position_embeddings, "segment": self.type_vocab_size}
        encoder = embeddings(f"{name}.embeddings", rows, h)
        encoder |= bert_layers(name, self.num_hidden_layers, h, self.intermediate_size)
        if self.pooler:
            encoder |= linear(f"{name}.pooler.dense", h, h)
        if self.gives_vectors:
            return encoder
        if self.labels:
            return encoder | linear("classification.classifier", len(self.labels), h)
        nsp = linear("nsp.classifier", 2, h) if self.next_sentence else {}
        return encoder | masked_token_head(h, self.vocab_size) | nsp
