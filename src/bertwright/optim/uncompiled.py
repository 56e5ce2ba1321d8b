"""torch's optimizers without their compiler hooks, which import torch's compiler even if nothing is compiled: one
second of processor time, and the memory, at each start of each rank.
"""

from __future__ import annotations

import inspect

import torch
from torch.optim import AdamW, Optimizer

add_group = inspect.unwrap(Optimizer.add_param_group)
"""`Optimizer.add_param_group` without the decorator that excludes it from compilation."""


class PlainAdamW(AdamW):
    """torch's AdamW without compiler hooks."""

    add_param_group = add_group
    # torch's decorator on `step` adds graph breaks for the compiler; `no_grad` is equivalent otherwise.
    step = torch.no_grad()(inspect.unwrap(AdamW.step))
