"""torch's optimizers without what they do for its compiler: where nothing is compiled, they would load it to do so, a
second of a processor and its memory at each start of each rank.
"""

from __future__ import annotations

import inspect

import torch
from torch.optim import AdamW, Optimizer

add_group = inspect.unwrap(Optimizer.add_param_group)
"""`Optimizer.add_param_group`, which torch hides from its compiler."""


class PlainAdamW(AdamW):
    """torch's AdamW."""

    add_param_group = add_group
    # torch breaks a graph that would be compiled before and after it; without gradients it is the same.
    step = torch.no_grad()(inspect.unwrap(AdamW.step))
