"""Muon and the AdamW beside it in float64 numpy: the rule that the fast one must follow.

A matrix: M = mu M + (1 - mu) G; N = mu M + (1 - mu) G; N is divided by its Frobenius norm and goes five times through
X -> a X + b X X' X + c X X' X X' X; W = W - rate * decay * W - rate * 0.2 * sqrt(max(rows, columns)) * X.

A tensor of several matrices, stacked along its rows, is that many matrices, with the rows of all in the root.

Everything else: Adam with bias correction, and the decay taken off the weights apart from it.
"""

import numpy as np


def newton_schulz(matrix: np.ndarray) -> np.ndarray:
    """By the singular values alone, which is what the polynomial of matrices does to them."""
    a, b, c = 3.4445, -4.7750, 2.0315
    left, values, right = np.linalg.svd(matrix.astype(np.float64), full_matrices=False)
    values = values / (np.linalg.norm(values) + 1e-7)
    for _ in range(5):
        values = a * values + b * values**3 + c * values**5
    return (left * values) @ right


class ReferenceMuon:
    def __init__(self, weights: dict[str, np.ndarray], momentum: float = 0.95, **stacked: int) -> None:
        """`stacked`: the number of matrices in a tensor that has several, by the tensor's last name but one."""
        self.weights, self.momentum, self.step, self.stacked = weights, momentum, 0, stacked
        self.m = {name: np.zeros_like(w) for name, w in weights.items()}
        self.v = {name: np.zeros_like(w) for name, w in weights.items()}

    def update(self, gradients: dict[str, np.ndarray], rate: float, decay: dict[str, float]) -> None:
        """`decay` of each tensor; those whose name has "layers" in it are matrices of layers."""
        self.step += 1
        for name, gradient in gradients.items():
            g, w = gradient.astype(np.float64), self.weights[name]
            change = self._matrix(name, g) if "layers" in name and g.ndim == 2 else self._adam(name, g)
            self.weights[name] = w - rate * decay[name] * w - rate * change

    def _matrix(self, name: str, g: np.ndarray) -> np.ndarray:
        mu = self.momentum
        self.m[name] = mu * self.m[name] + (1 - mu) * g
        nesterov = mu * self.m[name] + (1 - mu) * g
        matrices = np.split(nesterov, self.stacked.get(name.split(".")[-2], 1))
        return 0.2 * np.sqrt(max(matrices[0].shape)) * np.concatenate([newton_schulz(each) for each in matrices])

    def _adam(self, name: str, g: np.ndarray) -> np.ndarray:
        self.m[name] = 0.9 * self.m[name] + 0.1 * g
        self.v[name] = 0.999 * self.v[name] + 0.001 * g * g
        m, v = self.m[name] / (1 - 0.9**self.step), self.v[name] / (1 - 0.999**self.step)
        return m / (np.sqrt(v) + 1e-6)
