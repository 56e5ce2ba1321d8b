"""The nearest half-orthogonal matrix, approximately, by five Newton-Schulz iterations (Jordan 2024).

Each iteration multiplies X [m, n], m ≤ n, by aI + bG + cG² with the Gram matrix G = XXᵀ [m, m], which applies
a·s + b·s³ + c·s⁵ to each singular value s. After five of them singular values are between 0.7 and 1.2, not at 1.

The factors of all iterations are polynomials of the first G and commute, so they can be multiplied with each other
before they are multiplied with X (Gram Newton-Schulz, Dao et al. 2026): for n = 4m in 1.8 times fewer operations. In
float32 both ways agree to 1e-3 of the result at worst, when most singular values are zero. In bfloat16 the second is
unstable without restarts, so a GPU, where the iteration runs in bfloat16 as in Jordan's code, multiplies X each time. A
CPU, which rarely has bfloat16 units, computes in float32.
"""

from __future__ import annotations

import torch
from torch import Tensor

COEFFICIENTS = (3.4445, -4.7750, 2.0315)
"""a, b and c (Jordan 2024)."""
ITERATIONS = 5
_ASPECT = 1.5
"""The n / m above which multiplying the factors first takes fewer operations."""


def orthogonalized(matrix: Tensor) -> Tensor:
    """The matrix [rows, columns] with all singular values moved close to 1, in the same dtype; zero stays zero."""
    x: Tensor = matrix.to(torch.bfloat16) if matrix.is_cuda else matrix
    # Transposed so that products have the size of the shorter side; dividing by the norm bounds singular values by 1.
    x = x.mT if x.shape[0] > x.shape[1] else x
    x = x / (torch.linalg.matrix_norm(x) + 1e-7)
    short, long = x.shape
    x = _by_factors(x) if long > _ASPECT * short and not matrix.is_cuda else _by_matrix(x)
    whole: Tensor = x.mT if matrix.shape[0] > matrix.shape[1] else x
    return whole.to(matrix.dtype)


def _by_matrix(x: Tensor) -> Tensor:
    """All iterations, each multiplied with X [m, n]."""
    for _ in range(ITERATIONS):
        x = _times_factor(x, _polynomial(x @ x.mT))
    return x


def _by_factors(x: Tensor) -> Tensor:
    """All iterations, multiplied with X [m, n] once."""
    gram = x @ x.mT
    polynomial = _polynomial(gram)
    factors = polynomial + COEFFICIENTS[0] * torch.eye(len(x), dtype=x.dtype, device=x.device)
    for _ in range(ITERATIONS - 1):
        for _ in range(2):  # the Gram matrix of X multiplied by a factor F is F·G·F, which is F·F·G
            gram = _times_factor(gram, polynomial)
        polynomial = _polynomial(gram)
        factors = _times_factor(factors, polynomial)
    return factors @ x


def _polynomial(gram: Tensor) -> Tensor:
    """bG + cG², [m, m]."""
    _, b, c = COEFFICIENTS
    return torch.addmm(gram, gram, gram, beta=b, alpha=c)


def _times_factor(x: Tensor, polynomial: Tensor) -> Tensor:
    """(aI + `polynomial`) · X, [m, n]."""
    return torch.addmm(x, polynomial, x, beta=COEFFICIENTS[0])
