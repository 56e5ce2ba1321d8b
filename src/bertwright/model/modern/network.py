"""The complete configuration of a ModernBERT network (Warner et al. 2024 §2.1). Does not import torch."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from bertwright.model.family import (
    Activations,
    Allowed,
    Labels,
    NetworkSection,
    TensorShapes,
    TruncatedNormal,
    check_heads,
    embeddings,
    linear,
    masked_token_head,
    norm,
)


class ModernConfig(NetworkSection):
    """The complete configuration of a ModernBERT network. Field names are those of its authors' config.json."""

    family: ClassVar = "modern"
    title: ClassVar[str] = "ModernBERT"
    head_biases: ClassVar[bool] = False
    next_sentence: ClassVar[bool] = False
    """There is no next-sentence head."""
    classifier_dropout: ClassVar[float] = 0.0
    """Dropout probability of the classifier's input, as in the published files."""
    segments: ClassVar[int] = 0
    """Rows of the segment embedding: there is none."""
    shares_transform: ClassVar[bool] = True
    fused: ClassVar[Mapping[str, int]] = MappingProxyType({"attention.qkv.weight": 3, "feed_forward.inner.weight": 2})
    may_differ: ClassVar[frozenset[str]] = frozenset(
        {
            "vocab_size",
            "max_position_embeddings",
            "initializer_range",
            "initializer_cutoff_factor",
            "embedding_dropout",
            "mlp_dropout",
            "attention_dropout",
            "decoder_bias",
            "labels",
            "head",
        }
    )
    """As in `NetworkSection`. Rotary positions are not learnt."""
    same_network: ClassVar[Allowed] = {
        # The second is the value in a model folder of this project.
        "model_type": ("modernbert", "modern"),
        "attention_bias": (False,),
        "mlp_bias": (False,),
        "norm_bias": (False,),
        "classifier_bias": (False,),
        "classifier_activation": ("gelu",),
        "rope_scaling": (None,),
        "cls_token_id": None,
        "sep_token_id": None,
        "classifier_pooling": None,
        "deterministic_flash_attn": None,
        "reference_compile": None,
        "repad_logits_with_grad": None,
        "sparse_prediction": None,
        "sparse_pred_ignore_index": None,
        # The published files have these keys, but the authors' code does not read them.
        "layer_norm_eps": None,
        "position_embedding_type": None,
    }

    @classmethod
    def in_our_words(cls, path: Path, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """As `NetworkSection.in_our_words`: with the keys of transformers before version 5."""
        # Imported lazily: most recipes do not read another program's configuration file.
        from bertwright.model.modern.stock_file import with_older_keys

        return with_older_keys(path, values, cls.title)

    vocab_size: int = Field(gt=0, lt=2**31)
    """Rows of the token embedding; at least the number of vocabulary entries."""
    hidden_size: int = Field(gt=0, le=2**20)
    """Width of the hidden state."""
    num_hidden_layers: int = Field(gt=0, le=1024)
    """Number of encoder layers."""
    num_attention_heads: int = Field(gt=0, le=2**16)
    """Number of attention heads per layer; must divide hidden_size into heads of even width."""
    intermediate_size: int = Field(gt=0, le=2**22)
    """Width of each of the two halves of the feed-forward layer: the values and their gates."""
    hidden_activation: Literal["gelu"] = "gelu"
    """Activation of the feed-forward layer and the masked-token head: GELU with the exact erf."""
    max_position_embeddings: int = Field(8192, gt=0, le=2**22)
    """Maximum sequence length, in tokens; no weight depends on it."""
    initializer_range: float = Field(0.02, gt=0)
    """Standard deviation of the normal distribution of the initial weights, before truncation."""
    initializer_cutoff_factor: float = Field(2.0, gt=0)
    """Number of standard deviations at which that distribution is truncated."""
    norm_eps: float = Field(1e-5, gt=0)
    """Epsilon of layer norms, added to the variance."""
    local_attention: int = Field(128, gt=0, le=2**22)
    """Window of local attention, in tokens: a token sees the tokens at most half of it away on either side."""
    global_attn_every_n_layers: int = Field(3, gt=0, le=1024)
    """Every n-th layer, starting with the first, has global attention; the others have local attention."""
    global_rope_theta: float = Field(160_000.0, gt=1)
    """RoPE base of global layers: base of the wavelengths (tokens) by which queries and keys are rotated."""
    local_rope_theta: float = Field(10_000.0, gt=1)
    """RoPE base of local layers: base of the wavelengths (tokens) by which queries and keys are rotated."""
    embedding_dropout: float = Field(0.0, ge=0, lt=1)
    """Dropout probability of the embeddings."""
    mlp_dropout: float = Field(0.0, ge=0, lt=1)
    """Dropout probability between the two linear maps of the feed-forward layer."""
    attention_dropout: float = Field(0.0, ge=0, lt=1)
    """Dropout probability of attention weights, and of the output of attention before it is added to the residual."""
    decoder_bias: bool = True
    """Whether the decoder of the masked-token head has a bias for every vocabulary entry."""
    labels: Labels = ()
    """Class names of a classifier, which replaces the masked-token head; a single name: the output is a number."""

    @model_validator(mode="after")
    def _heads_divide_hidden(self) -> Self:
        heads = ("num_attention_heads", self.num_attention_heads)
        check_heads(("hidden_size", self.hidden_size), heads)
        if (width := self.hidden_size // self.num_attention_heads) % 2:
            raise ValueError(
                f"hidden_size {self.hidden_size} and num_attention_heads {self.num_attention_heads} give heads of "
                f"width {width}, which RoPE cannot rotate in pairs; choose an even width"
            )
        return self

    def is_global(self, layer: int) -> bool:
        """Whether layer number `layer`, counted from 0, has global attention."""
        return layer % self.global_attn_every_n_layers == 0

    @property
    def layer_norm_eps(self) -> float:
        """`norm_eps`, under the name that other families use."""
        return self.norm_eps

    @property
    def hidden_dropout_prob(self) -> float:
        """`mlp_dropout`, under the name that other families use for dropout in their layers."""
        return self.mlp_dropout

    @property
    def attention_probs_dropout_prob(self) -> float:
        """`attention_dropout`, under the name that other families use."""
        return self.attention_dropout

    @property
    def initializer(self) -> TruncatedNormal:
        """The rule by which initial weights are drawn."""
        return TruncatedNormal(self.initializer_range, self.initializer_cutoff_factor)

    @property
    def activations(self) -> Activations:
        """What a layer keeps for its backward pass."""
        h, f = self.hidden_size, self.intermediate_size
        return Activations(feed_forward=4 * f, others=10 * h, masks=f)

    @property
    def layer_products(self) -> tuple[int, int]:
        """Number of weights in a layer that every token is multiplied with: before attention, and after it."""
        h, f = self.hidden_size, self.intermediate_size
        return 3 * h * h, h * h + 3 * h * f

    @property
    def windows(self) -> tuple[int | None, ...]:
        """The attention window of each layer, in tokens; None: global attention."""
        layers = range(self.num_hidden_layers)
        return tuple(None if self.is_global(layer) else self.local_attention for layer in layers)

    @property
    def tensors(self) -> TensorShapes:
        """The shape of every parameter of the network and its head, by name."""
        h, f, v, name = self.hidden_size, self.intermediate_size, self.vocab_size, self.family
        shapes = embeddings(f"{name}.embeddings", {"token": v}, h, bias=False)
        for index in range(self.num_hidden_layers):
            layer = f"{name}.layers.{index}"
            if index:  # the first layer reads the already normalised embeddings
                shapes |= norm(f"{layer}.attention.norm", h, bias=False)
            shapes |= linear(f"{layer}.attention.qkv", 3 * h, h, bias=False)
            shapes |= linear(f"{layer}.attention.output", h, h, bias=False)
            shapes |= norm(f"{layer}.feed_forward.norm", h, bias=False)
            shapes |= linear(f"{layer}.feed_forward.inner", 2 * f, h, bias=False)
            shapes |= linear(f"{layer}.feed_forward.output", h, f, bias=False)
        shapes |= norm(f"{name}.norm", h, bias=False)
        if self.gives_vectors:
            return shapes
        if self.labels:
            head = "classification"
            shapes |= linear(f"{head}.transform", h, h, bias=False) | norm(f"{head}.norm", h, bias=False)
            return shapes | linear(f"{head}.classifier", len(self.labels), h)
        return shapes | masked_token_head(h, v, biases=False, decoder_bias=self.decoder_bias)
