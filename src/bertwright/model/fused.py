"""What follows a product in a layer of BERT: as torch computes it, or as one kernel of our own each way.

The kernels add the bias of the product themselves, so the sum of its gradient over all tokens takes no pass of its own,
and they compute the mask of a dropout again instead of storing it (`model.kernels`, docs/decisions/0068).

Names carry shapes: N tokens, H hidden, F inner.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, linear

from bertwright.model.config import LayerKernels
from bertwright.model.dropout import Dropout
from bertwright.model.norm import LayerNorm


def product_gelu(x_NH: Tensor, product: nn.Linear, kernels: LayerKernels) -> Tensor:
    """GELU of a linear map, [N, H] -> [N, F]."""
    if kernels == "torch":
        return gelu(product(x_NH))
    from bertwright.model.kernels.gelu import bias_gelu

    return bias_gelu(linear(x_NH, product.weight), product.bias)


def product_add_norm(
    x_NF: Tensor, residual_NH: Tensor, product: nn.Linear, dropout: Dropout, norm: LayerNorm, kernels: LayerKernels
) -> Tensor:
    """Layer norm of the residual [N, H] plus the dropout of a linear map of x [N, F]: [N, H]."""
    if kernels == "torch":
        return norm(residual_NH + dropout(product(x_NF)))
    from bertwright.model.kernels.counter import draw_mask
    from bertwright.model.kernels.norm import Norm, add_norm

    mask = draw_mask(dropout.p if dropout.training else 0.0, x_NF.device)
    without_bias_NH = linear(x_NF, product.weight)
    return add_norm(without_bias_NH, product.bias, residual_NH, Norm(norm.weight, norm.bias, norm.eps), mask)


def refusal(device: torch.device) -> str:
    """Return why `train.kernels = triton` cannot be used on a device, and what to do; "" if it can.

    Raises `MissingExtraError` if there is no Triton.
    """
    from bertwright.model.kernels.needs import missing_for

    return missing_for("train.kernels", device, on_a_cpu="torch", instead="torch")
