"""Positions as rotations of queries and keys: RoPE, Su et al. 2021 (RoFormer) §3.2.2.

The D elements of a head form D/2 pairs, the i-th with the (i + D/2)-th. At position m the i-th pair is rotated by
m·θ^(-2i/D) radians, so the product of a query and a key depends on their distance. As in transformers, the elements of
a pair are half a width apart; in the paper they are adjacent, which is the same network with its rows in another order.

On a CPU pairs are rotated as complex numbers, in one pass instead of seven. The elements of a pair are adjacent
afterwards, in queries as in keys, so that their products are the same.

Names carry shapes: T tokens, A heads, D head width.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

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
    # Products with float32 are at least float32, so cast the result back to the input's dtype.
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1).to(x_TAD.dtype)


def rotate_queries_and_keys(qkv_T3AD: Tensor, turned: Rotation) -> tuple[Tensor, Tensor, Tensor]:
    """Return queries and keys, rotated, and values, each [T, A, D]; differentiable once on a CPU."""
    if qkv_T3AD.device.type == "cpu" and not is_traced():
        return _AsComplex.apply(qkv_T3AD, torch.complex(*turned))  # type: ignore[no-untyped-call]
    q_TAD, k_TAD, v_TAD = qkv_T3AD.unbind(-3)
    return rotate(q_TAD, turned), rotate(k_TAD, turned), v_TAD


class _AsComplex(Function):
    """As `rotate_queries_and_keys`, with factors cos + i·sin [T, 1, D/2]."""

    @staticmethod
    def forward(ctx: Any, qkv_T3AD: Tensor, factors: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        ctx.save_for_backward(factors)
        first, second = _at_least_float32(qkv_T3AD[:, :2]).chunk(2, dim=-1)
        pairs = torch.complex(first, second).mul_(factors[:, None])
        q_TAD, k_TAD = torch.view_as_real(pairs).flatten(-2).to(qkv_T3AD.dtype).unbind(1)
        return q_TAD, k_TAD, qkv_T3AD[:, 2]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients_TAD: Tensor) -> tuple[Tensor, None]:
        (factors,) = ctx.saved_tensors
        *rotated, of_values = gradients_TAD
        # Written where the gradient of the product reads it: torch would concatenate halves, and stack all three.
        result = of_values.new_empty(len(of_values), 3, *of_values.shape[1:])
        for number, gradient_TAD in enumerate(rotated):
            tokens, heads, width = gradient_TAD.shape
            pairs = _at_least_float32(gradient_TAD).reshape(tokens, heads, width // 2, 2).contiguous()
            turned_back = torch.view_as_complex(pairs) * factors.conj()
            halves = result[:, number].view(tokens, heads, 2, width // 2)
            halves.copy_(torch.view_as_real(turned_back).mT)
        result[:, 2] = of_values
        return result, None


def _at_least_float32(x: Tensor) -> Tensor:
    return x.to(torch.promote_types(x.dtype, torch.float32))
