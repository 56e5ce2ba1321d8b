"""The rank of this process and the world size, from the environment that torchrun or another launcher sets.

No other module reads or writes RANK and WORLD_SIZE. Independent of torch.
"""

from __future__ import annotations

import os

from bertwright.core.errors import RecipeError


def rank_and_world() -> tuple[int, int]:
    """The rank of this process, from 0, and the world size; (0, 1) without a launcher.

    Raises `RecipeError` if the two variables contradict each other.
    """
    rank, world = os.environ.get("RANK", "0"), os.environ.get("WORLD_SIZE", "1")
    if rank.isdecimal() and world.isdecimal() and int(rank) < int(world):
        return int(rank), int(world)
    if "RANK" in os.environ and "WORLD_SIZE" not in os.environ and rank.isdecimal():
        return 0, 1  # set by a scheduler, without a launcher
    raise RecipeError(
        f"RANK={rank} and WORLD_SIZE={world} in the environment are not the rank of a training process: RANK must be "
        "from 0 to WORLD_SIZE minus 1. Start the ranks with torchrun, or unset both."
    )


def launcher_variable() -> str:
    """The variable that shows that a launcher started this process as a rank, such as "RANK=0"; "" if there is none."""
    return next((f"{name}={os.environ[name]}" for name in ("RANK", "WORLD_SIZE") if name in os.environ), "")


def rank_environment(rank: int, world: int, port: int) -> dict[str, str]:
    """The environment variables of a rank whose `world` ranks all run on this machine and rendezvous at `port`."""
    return {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(world),
        "LOCAL_WORLD_SIZE": str(world),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }


def rank_here() -> int:
    """The local rank of this process on its machine, from 0: set by the launcher, else its rank."""
    here = os.environ.get("LOCAL_RANK", "")
    return int(here) if here.isdecimal() else rank_and_world()[0]


def ranks_here() -> int:
    """The number of ranks on this machine: set by the launcher, else the world size."""
    here = os.environ.get("LOCAL_WORLD_SIZE", "")
    return int(here) if here.isdecimal() and int(here) > 0 else rank_and_world()[1]
