"""Runs the command line as a separate process, in four ways.

`bertwright(...)` runs it to completion, `forked(...)` leaves it running; both fork it from a process that has already
imported torch, which takes longer than most of what tests run. `fresh(...)` and `start(...)` do the same in a new
interpreter, for tests of what happens before or while modules are imported. All but `forked` have no network.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import chdir
from dataclasses import dataclass
from functools import cache
from multiprocessing.context import ForkServerContext, ForkServerProcess
from multiprocessing.forkserver import ensure_running
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType

from tests.disk import fsync

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


@dataclass(frozen=True)
class Done:
    """A finished command."""

    code: int
    out: str
    err: str


def bertwright(*arguments: object, folder: Path = ROOT, environment: Mapping[str, str] = MappingProxyType({})) -> Done:
    """Run `bertwright ARGUMENTS` in `folder` to completion, without a network."""
    with TemporaryDirectory() as logs:
        out, err = Path(logs, "out"), Path(logs, "err")
        variables = {**ENVIRONMENT, **environment}
        process = context().Process(target=_without_network, args=(out, err, str(folder), arguments, variables))
        process.start()
        process.join()
        return Done(process.exitcode or 0, out.read_text("utf-8"), err.read_text("utf-8"))


def fresh(*arguments: object, folder: Path = ROOT) -> Done:
    """Run `bertwright ARGUMENTS` in `folder` to completion, in a new interpreter."""
    process = start(*arguments, folder=folder)
    out, err = process.communicate()
    return Done(process.returncode, out, err)


def start(*arguments: object, folder: Path = ROOT) -> subprocess.Popen[str]:
    """Start `bertwright ARGUMENTS` in a new interpreter, without access to a network."""
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
    made.set_forkserver_preload(["tests.pipeline.preloaded"])
    with chdir(ROOT):  # where the server, when it starts, looks for what it imports
        ensure_running()
    return made


def _without_network(
    out: Path, err: Path, folder: str, arguments: tuple[object, ...], environment: dict[str, str]
) -> None:
    os.chdir(folder)
    sys.path[:0] = environment["PYTHONPATH"].split(os.pathsep)
    importlib.import_module("tests.pipeline.offline.sitecustomize")
    _main(str(out), list(map(str, arguments)), environment, None, str(err))


def _main(
    log: str,
    arguments: list[str],
    environment: dict[str, str],
    before: Callable[[], None] | None,
    errors: str = "",
) -> None:
    from bertwright.cli import main

    os.environ.update(environment)
    if before:
        before()
    os.fsync = fsync
    for number, file in ((1, log), (2, errors or log)):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND), number)
    sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)
    sys.argv = ["bertwright", *arguments]
    main()
