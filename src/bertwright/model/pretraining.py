"""An encoder with its pre-training heads.

The logits of masked tokens are the product of their states with the embedding of the vocabulary. A CPU's matrix
products take up to 1.6 times as long if the rows of their result do not begin at multiples of a cache line, which those
of BERT's 30,522 entries do not (measured on an AMD EPYC of Zen 4, docs/decisions/0057). There the product is computed
in blocks of columns, which stay in the cache until they are complete. The logits are the same.

Names carry shapes: B sequences, T tokens of all sequences together, H hidden, V vocabulary, P predictions.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn.functional import gelu, linear

from bertwright.model.batch import PackedBatch
from bertwright.model.config import Kernel, NetworkConfig
from bertwright.model.encoder import Encoder, build_encoder
from bertwright.model.initial import draw_weights
from bertwright.model.norm import LayerNorm
from bertwright.model.tracing import is_traced


class PreTrainingModel(nn.Module):
    """The encoder with its pre-training heads. All weights are drawn from torch's generator (seed it first), by the
    rule of the family (`initial`).

    `kernel` selects how attention is computed; it changes the speed, not the function, and may be set at any time
    (`encoder.kernel`).
    """

    def __init__(self, config: NetworkConfig, kernel: Kernel = "sequences") -> None:
        super().__init__()
        self.config = config
        self.add_module(config.family, build_encoder(config, kernel))
        self.mlm = MaskedTokenHead(config)
        self.nsp = NextSentenceHead(config) if config.next_sentence else None
        draw_weights(self, config)

    @property
    def encoder(self) -> Encoder:
        """The encoder; its tensors are named after its family."""
        return cast(Encoder, self.get_submodule(self.config.family))

    def forward(self, batch: PackedBatch) -> tuple[Tensor, Tensor | None]:
        """Logits [P, V] of the masked tokens, and [B, 2] of the sequences (None without a next-sentence head)."""
        encoder, read_N = self.encoder, batch.prediction_positions
        if self.nsp is not None:
            # A sequence of length 0 starts at T, beyond the last token; its output has weight 0.
            first_B = batch.cu_seqlens[:-1].long().clamp(max=len(batch.token_ids) - 1)
            read_N = torch.cat([read_N, first_B])
        read_NH, masked = encoder(batch, read_N), len(batch.prediction_positions)
        masked_PH, first_BH = read_NH[:masked], read_NH[masked:]
        mlm_PV = self.mlm(masked_PH, encoder.token_weight)
        return mlm_PV, None if self.nsp is None else self.nsp(encoder.pool(first_BH))


class MaskedTokenHead(nn.Module):
    """Masked-token head: transform, layer norm, and a decoder that is tied to the token embeddings.

    Works on the P masked positions only; on all T tokens it would cost more than the encoder of a small network. The
    family determines which biases it has.
    """

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        width, biases = config.hidden_size, config.head_biases
        self.transform = nn.Linear(width, width, bias=biases)
        self.norm = LayerNorm(width, eps=config.layer_norm_eps, bias=biases)
        self.bias = nn.Parameter(torch.zeros(config.vocab_size)) if config.decoder_bias else None

    def forward(self, masked_PH: Tensor, embeddings_VH: Tensor) -> Tensor:
        """Logits [P, V]."""
        return decode(self.norm(gelu(self.transform(masked_PH))), embeddings_VH, self.bias)


class NextSentenceHead(nn.Module):
    """Next-sentence head: classifies whether B follows A (class 0) or comes from elsewhere (class 1)."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.classifier = nn.Linear(config.hidden_size, 2)

    def forward(self, pooled_BH: Tensor) -> Tensor:
        """Logits [B, 2]."""
        return self.classifier(pooled_BH)


_LINE = 64
"""Bytes of a cache line."""
_COLUMNS = 512
"""Columns of a block: with more, its rows of the embedding leave the cache closest to a core."""


def decode(states_PH: Tensor, embeddings_VH: Tensor, bias_V: Tensor | None) -> Tensor:
    """Logits [P, V]; differentiable once on a CPU."""
    # oneDNN, which multiplies in low precision, has no such difference. Autocast gives states in low precision, too.
    is_wide = states_PH.dtype in (torch.float32, torch.float64)
    is_aligned = len(embeddings_VH) * states_PH.element_size() % _LINE == 0
    if states_PH.device.type != "cpu" or not is_wide or is_aligned or is_traced():
        return linear(states_PH, embeddings_VH, bias_V)
    return _ByColumns.apply(states_PH, embeddings_VH, bias_V)  # type: ignore[no-untyped-call]


class _ByColumns(Function):
    @staticmethod
    def forward(ctx: Any, states_PH: Tensor, embeddings_VH: Tensor, bias_V: Tensor | None) -> Tensor:
        ctx.save_for_backward(states_PH, embeddings_VH)
        logits_PV = states_PH.new_empty(len(states_PH), len(embeddings_VH))
        for first in range(0, len(embeddings_VH), _COLUMNS):
            block = slice(first, first + _COLUMNS)
            rows_HC, into_PC = embeddings_VH[block].t(), logits_PV[:, block]
            if bias_V is None:
                torch.mm(states_PH, rows_HC, out=into_PC)
            else:
                torch.addmm(bias_V[block], states_PH, rows_HC, out=into_PC)
        return logits_PV

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient_PV: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        states_PH, embeddings_VH = ctx.saved_tensors
        states, embeddings, bias = ctx.needs_input_grad
        return (
            gradient_PV @ embeddings_VH if states else None,
            gradient_PV.t() @ states_PH if embeddings else None,
            gradient_PV.sum(0) if bias else None,
        )
