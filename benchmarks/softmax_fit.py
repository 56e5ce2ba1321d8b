"""A softmax on fixed states, fitted to their labels: the one optimum of a convex loss, so nothing is drawn.

Names carry shapes: N states, H their width, C classes.
"""

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

DECAY = 1e-4
"""Weight of the squared weights beside the mean loss: wide states may part all labels, and then nothing else ends."""
ITERATIONS = 200
"""Most steps of the fit."""


def guesses(own_NH: Tensor, labels_N: Tensor, asked_NH: Tensor, classes: int) -> Tensor:
    """The class guessed of each asked state, [number asked]; all are brought to the mean 0 and variance 1 of own_NH."""
    mean_H, deviation_H = own_NH.double().mean(0), own_NH.double().std(0).clamp(min=1e-6)
    weights = fitted((own_NH.double() - mean_H) / deviation_H, labels_N, classes)
    return (_with_one((asked_NH.double() - mean_H) / deviation_H) @ weights).argmax(1)


def fitted(states_NH: Tensor, labels_N: Tensor, classes: int) -> Tensor:
    """Weights [H + 1, C], the last row biases, float64: where mean cross-entropy and decay together are least."""
    inputs_NH = _with_one(states_NH.double())
    weights = torch.zeros(inputs_NH.shape[1], classes, dtype=torch.float64, requires_grad=True)
    search = torch.optim.LBFGS(
        [weights], max_iter=ITERATIONS, tolerance_grad=1e-6, tolerance_change=1e-12, line_search_fn="strong_wolfe"
    )

    def loss() -> Tensor:
        search.zero_grad()
        # Biases are free: that a label is common is no fault.
        found = cross_entropy(inputs_NH @ weights, labels_N) + DECAY * weights[:-1].square().sum()
        found.backward()  # type: ignore[no-untyped-call]
        return found

    search.step(loss)
    return weights.detach()


def _with_one(states_NH: Tensor) -> Tensor:
    return torch.cat([states_NH, torch.ones(len(states_NH), 1, dtype=states_NH.dtype)], 1)
