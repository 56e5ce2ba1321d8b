"""Cross-entropy of predictions from their logits, whose memory becomes the gradient's.

The forward pass reads the logits once: a program keeps the largest logit of its row and the sum of exponentials
relative to it (Milakov and Gimelshein 2018), and writes the loss and the log-sum-exp. The backward pass
reads them once more and writes the gradient over them, already times the weight and the gradient of the loss.

Its floor is memory: three times the logits. 10,000 predictions of 30,522 tokens in bfloat16 are 0.61 GB, so 0.55 ms on
an H100 (3.35 TB/s), of which the forward pass is a third. A gradient written in the forward pass would save a third,
but its factor, the gradient of the loss, is not known then.

Names carry shapes: N predictions, C classes.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

_BLOCK = 4096
_WARPS = 8


@triton.jit
def _losses(logits_ptr, labels_ptr, loss_ptr, lse_ptr, stride, classes, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    # Finite, so that logits of minus infinity subtract no infinities.
    highest = tl.full([BLOCK], -1e30, tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    # Each lane keeps its own maximum: they are combined once, after the loop.
    for first in range(0, classes, BLOCK):
        columns = first + tl.arange(0, BLOCK)
        x = tl.load(logits_ptr + row * stride + columns, mask=columns < classes, other=float("-inf")).to(tl.float32)
        higher = tl.maximum(highest, x)
        total = total * tl.exp(highest - higher) + tl.exp(x - higher)
        highest = higher
    top = tl.max(highest, 0)
    log_sum = tl.log(tl.sum(total * tl.exp(highest - top), 0))
    right = tl.load(logits_ptr + row * stride + tl.load(labels_ptr + row)).to(tl.float32)
    tl.store(loss_ptr + row, top - right + log_sum)
    tl.store(lse_ptr + row, top + log_sum)


@triton.jit
def _gradients(logits_ptr, labels_ptr, lse_ptr, factor_ptr, stride, classes, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    at = logits_ptr + row * stride + columns
    x = tl.load(at, mask=columns < classes, other=0.0).to(tl.float32)
    p = tl.exp(x - tl.load(lse_ptr + row))
    p = tl.where(columns == tl.load(labels_ptr + row), p - 1.0, p)
    tl.store(at, (p * tl.load(factor_ptr + row)).to(logits_ptr.dtype.element_ty), mask=columns < classes)


@torch.library.custom_op("bertwright::cross_entropy", mutates_args=())
def losses(logits_NC: Tensor, labels_N: Tensor) -> tuple[Tensor, Tensor]:
    """Return the cross-entropy [N] and the log-sum-exp [N] of each row, in float32."""
    loss_N, lse_N = (logits_NC.new_empty(len(logits_NC), dtype=torch.float32) for _ in range(2))
    if len(logits_NC):
        numbers = (logits_NC.stride(0), logits_NC.shape[1])
        _losses[(len(logits_NC),)](logits_NC, labels_N, loss_N, lse_N, *numbers, BLOCK=_BLOCK, num_warps=_WARPS)
    return loss_N, lse_N


@losses.register_fake
def _(logits_NC, labels_N):
    return tuple(logits_NC.new_empty(len(logits_NC), dtype=torch.float32) for _ in range(2))


@torch.library.custom_op("bertwright::cross_entropy_backward", mutates_args=("logits_NC",))
def overwrite_with_gradients(logits_NC: Tensor, labels_N: Tensor, lse_N: Tensor, factor_N: Tensor) -> None:
    """Overwrite the logits with (softmax - one hot) · `factor_N` [N]."""
    number, classes = logits_NC.shape
    if number:
        grid = (number, triton.cdiv(classes, _BLOCK))
        numbers = (logits_NC.stride(0), classes)
        _gradients[grid](logits_NC, labels_N, lse_N, factor_N, *numbers, BLOCK=_BLOCK, num_warps=_WARPS)


@overwrite_with_gradients.register_fake
def _(logits_NC, labels_N, lse_N, factor_N):
    pass


def _keep(ctx: Any, inputs: tuple[Tensor, Tensor], output: tuple[Tensor, Tensor]) -> None:
    ctx.save_for_backward(*inputs, output[1])


def _differentiate(ctx: Any, d_N: Tensor, _: Tensor) -> tuple[Tensor, None]:
    logits_NC, labels_N, lse_N = ctx.saved_tensors  # overwritten, so torch rejects a second backward pass
    overwrite_with_gradients(logits_NC, labels_N, lse_N, d_N.float().contiguous())
    return logits_NC, None


losses.register_autograd(_differentiate, setup_context=_keep)


def cross_entropy_sum(logits_NC: Tensor, labels_N: Tensor, weights_N: Tensor) -> Tensor:
    """Σ weight · cross-entropy over N predictions of C classes: a scalar, differentiable once.

    Backward overwrites the logits, so nothing else may read them after it. Labels are valid classes.
    """
    loss_N, _ = losses(logits_NC if logits_NC.stride(-1) == 1 else logits_NC.contiguous(), labels_N)
    return torch.dot(loss_N, weights_N.float())


def plain_cross_entropy_sum(logits_NC: Tensor, labels_N: Tensor, weights_N: Tensor) -> Tensor:
    """The same in plain torch: a scalar."""
    log_p_NC = logits_NC.log_softmax(-1)
    return -(log_p_NC.gather(-1, labels_N[:, None])[:, 0] * weights_N).sum()
