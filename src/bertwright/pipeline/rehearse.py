"""Rehearsing a run: each part tried out at full size, in a process of its own, and everything removed.

Each part is the command that a user would type. So what goes wrong is what would go wrong, a part that the system kills
for its memory ends nothing else, and training goes on from its checkpoint as it would after a crash.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bertwright.check.recipe import check_recipe
from bertwright.core.distributed import rank_and_world
from bertwright.core.end_group import end_group
from bertwright.core.errors import ArtifactError, RecipeError
from bertwright.core.files import make_folder
from bertwright.core.lock import LOCK, FolderLock
from bertwright.core.log import SILENT, Log
from bertwright.pipeline.failure import why_failed
from bertwright.pipeline.lineage import refuse_other_training
from bertwright.pipeline.rehearsal import PREPARED, Rehearsal, alone, link, rehearsal, remove
from bertwright.pipeline.stage import STAGES
from bertwright.recipe import Recipe
from bertwright.train.metrics import read_rows

PROGRAM = (sys.executable, "-m", "bertwright.cli")
PATIENCE = 20.0
"""Seconds that a part has to end after it was asked to."""


@dataclass(frozen=True)
class Outcome:
    """What became of one part of the run."""

    name: str
    outcome: str
    """ok, warning, error, or "not reached" after an error before it."""
    text: str
    code: int = 0
    """Exit code that the run would have ended with."""


@dataclass(frozen=True)
class Scratch:
    """Where the parts work."""

    path: Path
    lock: int
    """Its locked file, which each part is given too: of one that outlives this process the next start is told."""
    log: Log = SILENT

    def folder(self, name: str) -> Path:
        """An empty folder in it."""
        return make_folder(self.path / name)


def rehearse(recipe: Recipe, folder: Path, log: Log = SILENT) -> tuple[Rehearsal, list[Outcome]]:
    """Rehearse the recipe beside its run folder; what was run in its place, and what became of each part.

    Raises what opening a source raises, and `ArtifactError` while another rehearsal works there.
    """
    if rank_and_world()[1] > 1:
        raise RecipeError("--rehearse starts its own processes, one after another. Start it once, without torchrun.")
    with _scratch(folder.absolute().with_name(f".{folder.name}.rehearsal")) as scratch:
        parts = list(_checked(recipe, folder))
        planned = rehearsal(recipe, folder, scratch.folder("sources"))
        log.say(f"rehearsal: {planned.text}; in {scratch.path}, which is removed afterwards")
        for part in _rehearsed(planned, folder, replace(scratch, log=log)):
            log.say(f"rehearsal: {part.name}: {part.outcome}")
            parts.append(part)
    return planned, parts


def _checked(recipe: Recipe, folder: Path) -> Iterator[Outcome]:
    """What `check` finds of the real run, apart from what is well."""
    found = [verdict for verdict in check_recipe(recipe, folder, list(STAGES)) if verdict.level != "ok"]
    for verdict in found:
        code = verdict.kind.exit_code if verdict.level == "error" else 0
        yield Outcome(f"check: {verdict.about}", verdict.level, verdict.sentence, code)
    if not found:
        yield Outcome("check", "ok", "no problems found")
    try:
        if (folder / "train").exists():
            refuse_other_training(recipe, folder.absolute())
    except ArtifactError as error:
        yield Outcome("check: train", "error", str(error), error.exit_code)


def _rehearsed(planned: Rehearsal, folder: Path, scratch: Scratch) -> Iterator[Outcome]:
    """The parts in the order of a run; after one that failed, those that need its result are not reached."""
    recipe, run, file = planned.recipe, scratch.folder(folder.name), scratch.path / "rehearsal.toml"
    link(planned.made, folder, run)
    recipe.write(file)
    last = len(recipe.train.phases) - 1
    stages = [name for name in STAGES if name not in planned.made and (name != "corpus" or recipe.corpus)]
    commands = [(name, [name, str(file)]) for name in stages if name in PREPARED]
    first_half = [] if recipe.train.phases[last].end_after == 1 else [f"train.phases.{last}.end_after=1"]
    commands += [("train", ["train", str(file), *first_half]), ("resume", ["train", str(file)])]
    commands += [(name, [name, str(file)]) for name in stages[stages.index("train") + 1 :]]
    failed = ""
    for name, command in commands:
        if failed:
            yield Outcome(name, "not reached", f"needs {failed}")
            continue
        part = _run(name, [*command, "--out", str(run), "--json"], scratch)
        yield part
        failed = name if part.code else ""
        if name == "train" and failed:
            yield from _each_alone(recipe, run, scratch)
        if name == "resume" and not failed:
            yield from _phases(recipe, run)


def _phases(recipe: Recipe, run: Path) -> Iterator[Outcome]:
    """What the steps of each phase took."""
    rows = read_rows(run / "train" / "metrics.jsonl")
    for index, phase in enumerate(recipe.train.phases):
        own = [row for row in rows if row.get("phase") == index and "seconds" in row]
        seconds = own[-1]["seconds"] - (own[-2]["seconds"] if len(own) > 1 else 0)
        memory = max(row["memory_bytes"] for row in own) / 2**30
        text = f"length {phase.length}, batch {phase.batch:,}: {seconds:.1f} s for the last step, {memory:.1f} GB"
        yield Outcome(f"phase {index}", "ok", text)


def _each_alone(recipe: Recipe, run: Path, scratch: Scratch) -> Iterator[Outcome]:
    """After training failed: each phase by itself, so that one that fails does not hide what is wrong with the next."""
    for index in range(len(recipe.train.phases) if len(recipe.train.phases) > 1 else 0):
        place, file = scratch.folder(f"phase-{index}"), scratch.path / f"phase-{index}.toml"
        link(tuple(name for name in PREPARED if (run / name).exists()), run, place)
        alone(recipe, index).write(file)
        yield _run(f"phase {index} alone", ["train", str(file), "--out", str(place), "--json"], scratch)


def _run(name: str, arguments: Sequence[str], scratch: Scratch) -> Outcome:
    """One command to its end, and what it said where it failed."""
    scratch.log.say(f"rehearsal: {name} ...")  # at full size a part may take a while
    started, log = time.monotonic(), scratch.path / f"{name}.log"
    with log.open("wb") as errors, _ended(_start(arguments, errors, scratch.lock)) as process:
        out, _ = process.communicate()
    if not process.returncode:
        return Outcome(name, "ok", f"{time.monotonic() - started:.1f} s")
    # As a shell says it: 137 of a part that was killed for its memory.
    code = process.returncode if process.returncode > 0 else 128 - process.returncode
    return Outcome(name, "error", why_failed(out, log.read_bytes(), process.returncode), code)


def _start(arguments: Sequence[str], errors: Any, lock: int) -> subprocess.Popen[bytes]:
    command = [*PROGRAM, *arguments]
    # A group of its own: Ctrl-C reaches this process alone, which ends the part and everything that it started.
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, process_group=0, pass_fds=(lock,))


@contextmanager
def _ended(process: subprocess.Popen[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """The process, ended when the block is left before it."""
    try:
        yield process
    finally:
        end_group(process, PATIENCE)


@contextmanager
def _scratch(path: Path) -> Iterator[Scratch]:
    """An empty folder for the length of the block, also where a rehearsal before was killed."""
    busy = f"another rehearsal, or the last part of one that was killed, is working in {path}. Wait for it to end."
    first = not path.parent.exists()
    with FolderLock(make_folder(path), busy=busy) as lock:
        try:
            for leftover in path.iterdir():
                if leftover.name != LOCK:
                    remove(leftover)
            yield Scratch(path, lock.descriptor)
        finally:
            remove(path)
            if first:
                with suppress(OSError):  # something else has come into it
                    path.parent.rmdir()
