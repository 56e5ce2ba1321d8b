"""A softmax classifier on fixed states, fitted to their labels: a convex problem, so the result is deterministic.

Names carry shapes: N states, H their width, C classes.
"""

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

DECAY = 1e-4
"""Factor of the squared weights added to the mean loss: wide states may separate all labels, and the fit would not end
without it."""
ITERATIONS = 200
"""Maximum number of steps of the fit."""


def guesses(own_NH: Tensor, labels_N: Tensor, asked_NH: Tensor, classes: int) -> Tensor:
    """The predicted class of each asked state, [number asked]; all states are standardized by mean and deviation of
    own_NH."""
    mean_H, deviation_H = own_NH.double().mean(0), own_NH.double().std(0).clamp(min=1e-6)
    weights = fitted((own_NH.double() - mean_H) / deviation_H, labels_N, classes)
    return (_with_one((asked_NH.double() - mean_H) / deviation_H) @ weights).argmax(1)


def fitted(states_NH: Tensor, labels_N: Tensor, classes: int) -> Tensor:
    """Weights [H + 1, C], float64, that minimize mean cross-entropy plus decay; the last row holds the biases."""
    inputs_NH = _with_one(states_NH.double())
    weights = torch.zeros(inputs_NH.shape[1], classes, dtype=torch.float64, requires_grad=True)
    search = torch.optim.LBFGS(
        [weights], max_iter=ITERATIONS, tolerance_grad=1e-6, tolerance_change=1e-12, line_search_fn="strong_wolfe"
    )

    def loss() -> Tensor:
        search.zero_grad()
        # Biases have no decay: that a label is common needs no penalty.
        found = cross_entropy(inputs_NH @ weights, labels_N) + DECAY * weights[:-1].square().sum()
        found.backward()  # type: ignore[no-untyped-call]
        return found

    search.step(loss)
    return weights.detach()


def _with_one(states_NH: Tensor) -> Tensor:
    return torch.cat([states_NH, torch.ones(len(states_NH), 1, dtype=states_NH.dtype)], 1)
