"""An encoder that gives a vector of each sequence: the mean of its tokens' last hidden states, of length 1.

Names carry shapes: B sequences, T tokens of all sequences together, H hidden.
"""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from bertwright.model.batch import PackedBatch
from bertwright.model.config import Kernel, NetworkConfig
from bertwright.model.encoder import Encoder, build_encoder
from bertwright.model.initial import draw_weights


class VectorModel(nn.Module):
    """The encoder, without a head; weights and `kernel` as for `PreTrainingModel`."""

    def __init__(self, config: NetworkConfig, kernel: Kernel = "sequences") -> None:
        super().__init__()
        self.config = config
        self.add_module(config.family, build_encoder(config, kernel))
        draw_weights(self, config)

    @property
    def encoder(self) -> Encoder:
        """The encoder; its tensors are named after its family."""
        return cast(Encoder, self.get_submodule(self.config.family))

    def forward(self, batch: PackedBatch) -> Tensor:
        """The vectors [B, H] of the sequences, each of length 1, in float32 or wider; 0 for a sequence without
        tokens."""
        return normalize(mean_states(self.encoder(batch), batch.cu_seqlens), dim=-1)


def mean_states(hidden_TH: Tensor, cu_seqlens: Tensor) -> Tensor:
    """The mean [B, H] of the hidden states of each sequence's tokens, [CLS] and [SEP] included, in float32 or wider;
    `cu_seqlens` [B + 1] are the boundaries of the sequences."""
    wide_TH = hidden_TH.to(torch.promote_types(hidden_TH.dtype, torch.float32))
    tokens_T = torch.arange(len(hidden_TH), device=hidden_TH.device, dtype=cu_seqlens.dtype)
    # Searched, because repeating by counts would make the host wait for a GPU.
    owner_T = torch.searchsorted(cu_seqlens[1:].contiguous(), tokens_T, right=True)
    counts_B1 = cu_seqlens.diff()[:, None].clamp(min=1)
    sums_BH = wide_TH.new_zeros(len(cu_seqlens) - 1, hidden_TH.shape[1]).index_add(0, owner_T, wide_TH)
    return sums_BH / counts_B1
