"""The ranks of a rehearsal: several, if the recipe's engine is for several and this machine has room for them."""

from __future__ import annotations

import re
import sys

from bertwright.check.device import training_gpus
from bertwright.core.errors import RecipeError
from bertwright.core.processor import default_workers
from bertwright.recipe import Recipe

_ON_A_PROCESSOR = 2
"""Ranks on a CPU: as many as it takes to exchange something."""
_ENDED = re.compile(rb"exitcode\s*:\s*(-?\d+)")
"""A rank that failed, in torchrun's report, where the first one comes last."""


def ranks_for(recipe: Recipe) -> int:
    """Return how many ranks rehearse the training: with an engine of several ranks one for each GPU of this machine, or
    two on a CPU; one if the machine or the recipe has no room for more."""
    if recipe.train.engine.kind in ("auto", "single"):
        return 1
    ranks = len(training_gpus(recipe)) or min(_ON_A_PROCESSOR, default_workers())
    try:
        recipe.check(ranks=ranks, given=False)
    except RecipeError:
        return 1
    return ranks


def program(ranks: int) -> tuple[str, ...]:
    """Return the words that start bertwright in so many processes."""
    several = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)) if ranks > 1 else ()
    return (sys.executable, *several, "-m", "bertwright.cli")


def code_of(returned: int, log: bytes, ranks: int) -> int:
    """Return the exit code of the first rank that failed: torchrun itself `returned` 1 and tells it in its `log`."""
    found = _ENDED.findall(log) if ranks > 1 else []
    return int(found[-1]) if found else returned
