"""The engines of several ranks that share a suite of tests, and how a test asks for one."""

import pytest

TORCH = ("ddp", "zero", "fsdp")
STAGES = ("deepspeed-1", "deepspeed-2", "deepspeed-3")
"""DeepSpeed's, by the stage of ZeRO."""
DEEPSPEED = tuple(pytest.param(name, marks=(pytest.mark.slow, pytest.mark.deepspeed)) for name in STAGES)
"""The same as parameters: `make test-deepspeed` runs them."""


def section(engine: str) -> dict[str, object]:
    """What `train.engine` is for an engine by its name above, or `single`."""
    kind, _, stage = engine.partition("-")
    return {"kind": kind, "stage": int(stage)} if stage else {"kind": kind}


def overrides(engine: str) -> tuple[str, ...]:
    """The keys of a command that choose an engine; DeepSpeed also needs an optimizer that it takes."""
    kind, _, stage = engine.partition("-")
    if not stage:
        return (f"train.engine={kind}",)
    return (f'train.engine={{kind="{kind}", stage={stage}}}', 'optim={kind="adamw"}')
