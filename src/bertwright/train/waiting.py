"""Whether the processor's cores are free, and how threads of OpenMP wait: settled before torch is loaded.

Threads that wait for the others of a product spin by default, which is right on cores that nobody else wants. Where
others do, a spinning thread takes the core from the one that is waited for, and a step takes several times as long;
sleeping threads cost a fraction of the speed on idle cores. OpenMP reads its policy once, when it is loaded, so the
cores are measured before, by processes that do nothing but count. Results do not depend on the policy; they do on the
number of threads, so that is chosen only where the recipe says `threads = "auto"`. Knows no torch.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from typing import Any

from bertwright.core.log import Log
from bertwright.core.processor import default_workers
from bertwright.train.config import TrainConfig

POLICY = "OMP_WAIT_POLICY"
GIVEN = (POLICY, "GOMP_SPINCOUNT", "KMP_BLOCKTIME")
"""What says in the environment how threads wait; what the user set there is left alone."""
FREE = 0.9
"""Share of the cores that this process must get for its threads to spin."""
SECONDS = 0.3
"""How long each core is measured."""
MOST = 64
"""Cores measured, at most: each takes a process."""
_SPIN = (
    "import time; c = time.perf_counter; u = time.process_time(); b = c()\n"
    f"while c() - b < {SECONDS}: pass\n"
    "print((time.process_time() - u) / (c() - b))"
)


@cache
def free_cores() -> float:
    """How many cores this process gets when it wants all that it may use; measured once, in less than two seconds."""
    command = [sys.executable, "-I", "-S", "-c", _SPIN]
    spinning = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(_cores())]
    return sum(min(float(process.communicate()[0] or 0), 1.0) for process in spinning)


def settle(config: TrainConfig, log: Log) -> None:
    """Have threads sleep while they wait where the cores are not free, and say so; called before torch is loaded.

    Nothing is done where one thread will train, where the environment says how threads wait, or where it is too late.
    """
    one = config.threads == 1 or os.environ.get("OMP_NUM_THREADS") == "1" or _cores() == 1
    if one or config.device == "cuda" or "torch" in sys.modules or any(name in os.environ for name in GIVEN):
        return
    if (free := free_cores()) < FREE * _cores():
        os.environ[POLICY] = "PASSIVE"
        log.say(
            f"train: other processes use these cores ({free:.1f} of {_cores()} are free), so threads sleep while they "
            f"wait ({POLICY}=PASSIVE)"
        )


def threads_for(config: TrainConfig, sessions: tuple[Mapping[str, Any], ...]) -> int:
    """The threads to train with; 0: torch's own choice. `sessions` are the earlier starts of the run.

    With `auto` as many as cores are free. A run that goes on keeps those of its last start, as another number would
    change the order of summation.
    """
    if config.threads != "auto":
        return config.threads
    return int(sessions[-1]["threads"]) if sessions else max(1, round(free_cores()))


def _cores() -> int:
    return min(default_workers(), MOST)
