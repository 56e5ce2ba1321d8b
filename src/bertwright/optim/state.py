"""Optimizer state as named tensors, for checkpoints without pickle and for the hand-over between phases.

The names are `MOMENT.NAME` for each state tensor of each parameter (`exp_avg`, `exp_avg_sq` of LAMB and AdamW), and
`step`, the number of updates since the start or the last `reset_steps`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor
from torch.nn import Parameter
from torch.optim import Optimizer

from bertwright.core.errors import CheckpointError


def named_state(optimizer: Optimizer, parameters: Mapping[str, Parameter]) -> dict[str, Tensor]:
    """The moments (the tensors themselves, not copies) and the step counter (int64); before any update, only `step`."""
    stepped = {name: optimizer.state[p] for name, p in _held(optimizer, parameters).items() if p in optimizer.state}
    steps = {int(state["step"]) for state in stepped.values()} or {0}
    # A single counter is saved: the schedule and the bias correction use one number of updates.
    if len(steps) > 1:
        raise CheckpointError(
            f"parameters have had different numbers of updates ({sorted(steps)}); all must have the same number"
        )
    kept = ((name, moment, value) for name, state in stepped.items() for moment, value in state.items())
    moments = {f"{moment}.{name}": value for name, moment, value in kept if moment != "step"}
    return moments | {"step": torch.tensor(steps.pop(), dtype=torch.int64)}


def load_named_state(
    optimizer: Optimizer,
    parameters: Mapping[str, Parameter],
    state: Mapping[str, Tensor],
    moments: Mapping[str, Sequence[str]],
) -> None:
    """Copy the result of `named_state` into `optimizer`, so that the next updates are bit-identical.

    `moments` are the state tensors of each parameter (see `moment_names`). Raises the same errors as `check_state`.
    """
    parameters = _held(optimizer, parameters)
    check_state(parameters, state, moments)
    optimizer.state.clear()
    if not _begun(state):
        return
    for name, p in parameters.items():
        own = {moment: torch.empty_like(p).copy_(state[f"{moment}.{name}"]) for moment in moments[name]}
        step = torch.tensor(float(state["step"]), dtype=torch.float32, device=p.device)
        optimizer.state[p] = {"step": step, **own}


def check_state(
    parameters: Mapping[str, Tensor], state: Mapping[str, Tensor], moments: Mapping[str, Sequence[str]]
) -> None:
    """Raise `CheckpointError`, naming tensors of `state` that are missing, unexpected, complex or of a wrong shape."""
    if not _begun(state):
        return
    expected = {"step": torch.Size([])}
    expected |= {f"{moment}.{name}": p.shape for name, p in parameters.items() for moment in moments[name]}
    faults = [f"{name} is missing" for name in expected if name not in state]
    faults += [f"{name} is unexpected" for name in state if name not in expected]
    faults += [
        f"{name} has shape {list(state[name].shape)}, not {list(shape)}"
        for name, shape in expected.items()
        if name in state and state[name].shape != shape
    ]
    faults += [f"{name} is of {state[name].dtype}" for name in expected if name in state and state[name].is_complex()]
    if faults:
        raise CheckpointError(
            f"this optimizer state does not belong to this model: {'; '.join(faults[:5])}. Use the state saved with "
            "the model"
        )


def reset_steps(optimizer: Optimizer) -> None:
    """Count updates from 0 again and keep the moments: NVIDIA's hand-over from phase 1 to phase 2."""
    for state in optimizer.state.values():
        state["step"].zero_()


def _begun(state: Mapping[str, Tensor]) -> bool:
    """Whether there has been an update: before the first one, an optimizer has no moments."""
    return set(state) != {"step"} or state["step"].numel() != 1 or int(state["step"]) != 0


def _held(optimizer: Optimizer, parameters: Mapping[str, Parameter]) -> dict[str, Parameter]:
    held = {id(p) for group in optimizer.param_groups for p in group["params"]}
    return {name: p for name, p in parameters.items() if id(p) in held}
