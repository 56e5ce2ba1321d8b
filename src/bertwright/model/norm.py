"""Layer norm computed in float32, whose output has the dtype of the residual stream.

Every residual stream begins with a norm, after the embeddings, and what is added to it is the output of a linear map.
So the dtype that norms return is that of the stream. Under autocast to bfloat16 it is bfloat16: layers read and write
half the bytes, and linear maps read their input without conversion. Gradients are then off by about 1 %, twice as much
as by bfloat16 products alone and a hundredth of what batches differ by (docs/decisions/0068). Under autocast to float16
the stream stays float32: sums over many layers, and their gradients, may leave the range of float16; bfloat16 has that
of float32.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import layer_norm


class LayerNorm(nn.LayerNorm):
    """Layer norm over the last dimension (Ba et al. 2016)."""

    def forward(self, x: Tensor) -> Tensor:
        """Takes a tensor [..., H]; returns one of the same shape, in the dtype of the residual stream."""
        # Given 16 bits, torch on a CPU would also sum the gradients of weight and bias in 16 bits, over all tokens.
        wide = torch.promote_types(x.dtype, torch.float32)
        weight_H, bias_H = self.weight.to(wide), None if self.bias is None else self.bias.to(wide)
        return layer_norm(x.to(wide), self.normalized_shape, weight_H, bias_H, self.eps).to(stream_dtype(x))


def stream_dtype(x: Tensor) -> torch.dtype:
    """Return the dtype of a residual stream that is computed here from `x`, of any shape: bfloat16 under autocast to
    it, else that of `x`."""
    kind = x.device.type
    # torch 2.3, with which ONNX Runtime trains in float32, cannot report the autocast of a kind of device.
    if not hasattr(torch, "get_autocast_dtype") or not torch.is_autocast_enabled(kind):
        return x.dtype
    return torch.bfloat16 if torch.get_autocast_dtype(kind) == torch.bfloat16 else x.dtype
