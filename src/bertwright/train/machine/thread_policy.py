"""Measures whether the CPU cores are free, and sets how OpenMP threads wait, before torch is loaded.

By default, threads that wait for the others in a matrix product spin, which is right on cores that no other process
uses. Otherwise a spinning thread takes the core from the thread that it waits for, and a step takes several times as
long; sleeping threads cost a fraction of the speed on idle cores. OpenMP reads its policy once, when it is loaded, so
the cores are measured before that, by processes that only spin. Results do not depend on the policy, but on the number
of threads, so that is chosen only if the recipe says `threads = "auto"`. Does not import torch.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from typing import Any

from bertwright.core.log import Log
from bertwright.core.resources import default_workers
from bertwright.train.config import TrainConfig

POLICY = "OMP_WAIT_POLICY"
GIVEN = (POLICY, "GOMP_SPINCOUNT", "KMP_BLOCKTIME")
"""Environment variables that set how threads wait; values set by the user are kept."""
FREE = 0.9
"""Share of the cores that this process must get for its threads to spin."""
SECONDS = 0.3
"""Seconds for which each core is measured."""
MOST = 64
"""Maximum number of cores measured: each takes a process."""
_SPIN = (
    "import time; c = time.perf_counter; u = time.process_time(); b = c()\n"
    f"while c() - b < {SECONDS}: pass\n"
    "print((time.process_time() - u) / (c() - b))"
)


@cache
def free_cores() -> float:
    """Return how many cores this process gets when it uses all that it may; measured once, in less than two seconds."""
    command = [sys.executable, "-I", "-S", "-c", _SPIN]
    spinning = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(_cores())]
    return sum(min(float(process.communicate()[0] or 0), 1.0) for process in spinning)


def set_thread_policy(config: TrainConfig, log: Log) -> None:
    """Make waiting threads sleep if the cores are not free, and log it; must be called before torch is loaded.

    Does nothing if only one thread will train, if training is on a GPU, if the environment sets how threads wait, or if
    torch is already loaded.
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
    """Return the number of threads to train with; 0: torch's own choice. `sessions` are the earlier starts of the run.

    With `auto`, as many as there are free cores. A resumed run keeps the number of its last start, because another
    number would change the order of summation.
    """
    if config.threads != "auto":
        return config.threads
    return int(sessions[-1]["threads"]) if sessions else max(1, round(free_cores()))


def threads_message(threads: int, sessions: tuple[Mapping[str, Any], ...]) -> str:
    """Return what `auto` means for a start with this number of threads, after `sessions`: the number, and why."""
    text = f"{threads} thread{'s' * (threads > 1)}"
    if sessions:
        return f"{text}, as at the last start"
    # One thread waits for no other; with the variables that only some libraries read, how threads wait is not known.
    if threads > 1 and not any(name in os.environ for name in GIVEN if name != POLICY):
        text += f", which {'sleep' if os.environ.get(POLICY, '').upper() == 'PASSIVE' else 'spin'} while they wait"
    return f"{free_cores():.1f} of {_cores()} cores are free: {text}"


def _cores() -> int:
    return min(default_workers(), MOST)
