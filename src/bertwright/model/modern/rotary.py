"""Positions as rotations of queries and keys: RoPE, Su et al. 2021 (RoFormer) §3.2.2.

The D elements of a head form D/2 pairs, the i-th with the (i + D/2)-th. At position m the i-th pair is rotated by
m·θ^(-2i/D) radians, so the product of a query and a key depends on their distance. As in transformers, the elements of
a pair are half a width apart; in the paper they are adjacent, which is the same network with its rows in another order.

On a CPU pairs are rotated as complex numbers, in one pass instead of seven. To that end the elements of a pair are
adjacent in queries and in keys, so that their products are the same (`Projection`).

Names carry shapes: T tokens, H hidden, A heads, D head width (H = A·D).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn.functional import linear

from bertwright.model.tracing import is_traced


class Rotation(NamedTuple):
    """Cosines and sines of the angles of every token, the same for all heads."""

    cos: Tensor
    """[T, 1, D/2], float32."""
    sin: Tensor
    """[T, 1, D/2], float32."""


def rotation(position_ids: Tensor, width: int, theta: float) -> Rotation:
    """Return the rotation of tokens at `position_ids` [T] for heads of `width` D; `theta` is the base of wavelengths.

    Always in float32, as in transformers: in bfloat16, distant positions would be indistinguishable.
    """
    exponents = torch.arange(0, width, 2, dtype=torch.float32, device=position_ids.device) / width
    # Not a buffer: it is only D/2 numbers per batch, and networks are also built on the meta device (`saved`).
    angles = position_ids[:, None, None].float() * (1.0 / theta**exponents)
    return Rotation(angles.cos(), angles.sin())


def rotate(x_TAD: Tensor, turned: Rotation) -> Tensor:
    """Rotate queries or keys [T, A, D] by the angles of their positions; returns [T, A, D]."""
    first, second = x_TAD.chunk(2, dim=-1)
    cos, sin = turned
    halves = (first * cos - second * sin, second * cos + first * sin)
    # Products with float32 are at least float32, so cast them back to the input's dtype; before they are put together,
    # or the compiler would write them in float32 first.
    return torch.cat([half.to(x_TAD.dtype) for half in halves], dim=-1)


class Projection(nn.Linear):
    """Queries and keys, rotated, and values of all heads, by one product."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__(width, 3 * width, bias=False)
        self.heads = (heads, width // heads)

    def rotated(self, x_TH: Tensor, turned: Rotation) -> tuple[Tensor, Tensor, Tensor]:
        """[T, H] -> queries, keys and values, each [T, A, D]; differentiable once on a CPU."""
        if x_TH.device.type == "cpu" and not is_traced():
            qkv_T3AD = linear(x_TH, self._with_adjacent_pairs()).view(-1, 3, *self.heads)
            return _RotatedAsComplex.apply(qkv_T3AD, torch.complex(*turned))  # type: ignore[no-untyped-call]
        q_TAD, k_TAD, v_TAD = self(x_TH).view(-1, 3, *self.heads).unbind(-3)
        return rotate(q_TAD, turned), rotate(k_TAD, turned), v_TAD

    def _with_adjacent_pairs(self) -> Tensor:
        """The weight, in which the rows of queries and keys that give the elements of a pair are adjacent."""
        heads, width = self.heads
        queries_and_keys, values = self.weight.view(3, heads * width, -1).split_with_sizes((2, 1))
        halves = queries_and_keys.reshape(2 * heads, 2, width // 2, -1)
        return torch.cat((halves.transpose(1, 2).reshape(2 * heads * width, -1), values[0]))


class _RotatedAsComplex(Function):
    """The parts of queries, keys and values [T, 3, A, D] whose pairs are adjacent, the first two multiplied by factors
    cos + i·sin [T, 1, D/2]."""

    @staticmethod
    def forward(ctx: Any, qkv_T3AD: Tensor, factors: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        ctx.save_for_backward(factors)
        rotated = _multiply_pairs(qkv_T3AD[:, :2], factors[:, None])
        return rotated[:, 0], rotated[:, 1], qkv_T3AD[:, 2]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients_TAD: Tensor) -> tuple[Tensor, None]:
        (factors,) = ctx.saved_tensors
        *rotated, of_values = gradients_TAD
        # Contiguous, because the gradient of a sum, for example, is one number for all elements.
        turned_back = (_multiply_pairs(gradient_TAD.contiguous(), factors.conj()) for gradient_TAD in rotated)
        return torch.stack((*turned_back, of_values), 1), None


def _multiply_pairs(x: Tensor, factors: Tensor) -> Tensor:
    """The pairs in the last dimension of `x` as complex numbers times `factors`, in the dtype of `x`."""
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    pairs = torch.view_as_complex(wide.reshape(*x.shape[:-1], x.shape[-1] // 2, 2))
    return torch.view_as_real(pairs * factors).flatten(-2).to(x.dtype)
