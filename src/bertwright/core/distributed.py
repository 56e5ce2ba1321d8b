"""Which of how many training processes this one is, as torchrun or another launcher says in the environment.

Nothing else reads or writes RANK and WORLD_SIZE. Knows no torch.
"""

from __future__ import annotations

import os

from bertwright.core.errors import RecipeError


def rank_and_world() -> tuple[int, int]:
    """The rank of this process, from 0, and how many train together; (0, 1) where no launcher speaks.

    Raises `RecipeError` where the two say what cannot be.
    """
    rank, world = os.environ.get("RANK", "0"), os.environ.get("WORLD_SIZE", "1")
    if rank.isdecimal() and world.isdecimal() and int(rank) < int(world):
        return int(rank), int(world)
    if "RANK" in os.environ and "WORLD_SIZE" not in os.environ and rank.isdecimal():
        return 0, 1  # a scheduler's own variable, without a launcher
    raise RecipeError(
        f"RANK={rank} and WORLD_SIZE={world} in the environment name no rank of a training: RANK goes from 0 to one "
        "less than WORLD_SIZE. Start the ranks with torchrun, or unset both."
    )


def launched() -> str:
    """What in the environment says that a launcher has started this process as a rank, such as "RANK=0"; "" if none."""
    return next((f"{name}={os.environ[name]}" for name in ("RANK", "WORLD_SIZE") if name in os.environ), "")


def told(rank: int, world: int, port: int) -> dict[str, str]:
    """What the environment of each of `world` ranks on this machine alone says, that meet at a port of it."""
    return {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(world),
        "LOCAL_WORLD_SIZE": str(world),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }


def rank_here() -> int:
    """The place of this process among those that share its machine, from 0: as the launcher says, else its rank."""
    here = os.environ.get("LOCAL_RANK", "")
    return int(here) if here.isdecimal() else rank_and_world()[0]


def ranks_here() -> int:
    """How many of the processes share this machine: as the launcher says, else all of them."""
    here = os.environ.get("LOCAL_WORLD_SIZE", "")
    return int(here) if here.isdecimal() and int(here) > 0 else rank_and_world()[1]
