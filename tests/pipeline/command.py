"""Runs the command line as a separate process, in three ways.

`bertwright(...)` runs it to completion in a fresh interpreter without a network. `start(...)` leaves it running.
`forked(...)` forks it from a process that has already imported torch: the same code in a separate process, for tests
that kill it many times.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from types import MappingProxyType

ROOT = Path(__file__).parents[2]
RECIPES = ROOT / "recipes"
PROGRAM = [sys.executable, "-m", "bertwright.cli"]
ENVIRONMENT = {
    **os.environ,
    "OMP_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "COLUMNS": "200",
    "PYTHONPATH": os.pathsep.join([str(ROOT / "tests" / "pipeline" / "offline"), str(ROOT / "src")]),
}
PRELOADED = [
    "bertwright.cli.stages",
    "bertwright.corpus.run",
    "bertwright.train.run",
    "bertwright.train.engine.ddp",
    "bertwright.examples.run",
    "torch._dynamo",
]
"""torch's optimizers import the last one when constructed; that takes four fifths of the time of a small training."""


@dataclass(frozen=True)
class Done:
    """A finished command."""

    code: int
    out: str
    err: str


def bertwright(*arguments: object, folder: Path = ROOT) -> Done:
    """Run `bertwright ARGUMENTS` in `folder` to completion."""
    process = start(*arguments, folder=folder)
    out, err = process.communicate()
    return Done(process.returncode, out, err)


def start(*arguments: object, folder: Path = ROOT) -> subprocess.Popen[str]:
    """Start `bertwright ARGUMENTS` without access to a network."""
    command = [*_no_network(), *PROGRAM, *map(str, arguments)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=folder, env=ENVIRONMENT, stdout=pipe, stderr=pipe, text=True)


@cache
def _no_network() -> tuple[str, ...]:
    """Prefix that enters a namespace without network interfaces if possible; `offline/` refuses sockets everywhere."""
    prefix = ("unshare", "--map-root-user", "--net")
    try:
        allowed = subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        allowed = False
    return prefix if allowed else ()


def forked(
    log: Path,
    *arguments: object,
    environment: Mapping[str, str] = MappingProxyType({}),
    before: Callable[[], None] | None = None,
) -> ForkServerProcess:
    """Start `bertwright ARGUMENTS` after calling `before()`; its output is appended to the file `log`."""
    process = context().Process(target=_main, args=(str(log), list(map(str, arguments)), dict(environment), before))
    process.start()
    return process


def context() -> ForkServerContext:
    """A context for processes that have already imported torch."""
    made = multiprocessing.get_context("forkserver")
    made.set_forkserver_preload(PRELOADED)
    return made


def _main(log: str, arguments: list[str], environment: dict[str, str], before: Callable[[], None] | None) -> None:
    from bertwright.cli import main

    os.environ.update(environment)
    if before:
        before()
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)
    sys.argv = ["bertwright", *arguments]
    main()
