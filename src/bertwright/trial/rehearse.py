"""Rehearse a run: try each part at full size in a separate process, and remove everything afterwards.

Each part is the command that a user would type, so failures are those of the real run: a part killed for its memory
does not end the others, and training resumes from its checkpoint as it would after a crash.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from bertwright.check.check_recipe import check_recipe
from bertwright.core.child_process import run_child
from bertwright.core.distributed import rank_and_world
from bertwright.core.errors import ArtifactError, RecipeError
from bertwright.core.files import make_folder, remove
from bertwright.core.log import SILENT, Log
from bertwright.core.numbers import size_of
from bertwright.core.subprocess_group import shell_code
from bertwright.core.work_split import LOCK, FolderLock
from bertwright.pipeline.lineage import refuse_other_training
from bertwright.pipeline.stage import STAGES
from bertwright.recipe import Recipe
from bertwright.train.monitor.metrics import read_rows
from bertwright.trial.shortened_recipe import PREPARED, Rehearsal, alone, link, rehearsal


@dataclass(frozen=True)
class Outcome:
    """The result of one part of the run."""

    name: str
    outcome: str
    """ok, warning, error, or "not reached" after an earlier error."""
    text: str
    code: int = 0
    """The exit code that the run would have ended with."""


@dataclass(frozen=True)
class Scratch:
    """The folder in which the parts work."""

    path: Path
    lock: int
    """Descriptor of its lock file, inherited by each part, so that the next start detects a part that outlives this
    one."""
    log: Log = SILENT
    ranks: int = 1
    """Number of processes that train."""

    def folder(self, name: str) -> Path:
        """Create and return an empty folder inside it."""
        return make_folder(self.path / name)


def rehearse(recipe: Recipe, folder: Path, log: Log = SILENT) -> tuple[Rehearsal, list[Outcome]]:
    """Rehearse the recipe next to its run folder; returns what was run in its place, and the outcome of each part.

    Raises whatever opening a source raises, and `ArtifactError` while another rehearsal works there.
    """
    if rank_and_world()[1] > 1:
        raise RecipeError("--rehearse starts its own processes, one after another. Run it once, without torchrun.")
    with _scratch(folder.absolute().with_name(f".{folder.name}.rehearsal")) as scratch:
        parts = list(_check(recipe, folder))
        planned = rehearsal(recipe, folder, scratch.folder("sources"))
        shared = f", with {planned.ranks} ranks that train" if planned.ranks > 1 else ""
        log.say(f"rehearsal: {planned.text}{shared}; in {scratch.path}, which is removed at the end")
        for part in _run_parts(planned, folder, replace(scratch, log=log, ranks=planned.ranks)):
            log.say(f"rehearsal: {part.name}: {part.outcome}")
            parts.append(part)
    return planned, parts


def _check(recipe: Recipe, folder: Path) -> Iterator[Outcome]:
    """The problems that `check` finds in the real run."""
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


def _run_parts(planned: Rehearsal, folder: Path, scratch: Scratch) -> Iterator[Outcome]:
    """The parts in run order; after a failure, the remaining parts are not reached."""
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
            yield from _phases(recipe, run, scratch.ranks)


def _phases(recipe: Recipe, run: Path, ranks: int) -> Iterator[Outcome]:
    """The time and memory of each phase's steps."""
    rows = read_rows(run / "train" / "metrics.jsonl")
    for index, phase in enumerate(recipe.train.phases):
        own = [row for row in rows if row.get("phase") == index and "seconds" in row]
        seconds = own[-1]["seconds"] - (own[-2]["seconds"] if len(own) > 1 else 0)
        memory = size_of(max(row["memory_bytes"] for row in own))
        text = f"length {phase.length}, batch {phase.batch:,}: {seconds:.1f} s for the last step, {memory}"
        text += f" on each of {ranks} ranks" if ranks > 1 else ""
        yield Outcome(f"phase {index}", "ok", text)


def _each_alone(recipe: Recipe, run: Path, scratch: Scratch) -> Iterator[Outcome]:
    """After a failed training, run each phase separately, so that one failure does not hide problems of later
    phases."""
    for index in range(len(recipe.train.phases) if len(recipe.train.phases) > 1 else 0):
        place, file = scratch.folder(f"phase-{index}"), scratch.path / f"phase-{index}.toml"
        link(tuple(name for name in PREPARED if (run / name).exists()), run, place)
        alone(recipe, index, scratch.ranks).write(file)
        yield _run(f"phase {index} alone", ["train", str(file), "--out", str(place), "--json"], scratch)


def _run(name: str, arguments: Sequence[str], scratch: Scratch) -> Outcome:
    """Run one command to completion; the outcome has its error message if it failed."""
    scratch.log.say(f"rehearsal: {name} ...")  # a part at full size may take a while
    started, log = time.monotonic(), scratch.path / f"{name}.log"
    ranks = scratch.ranks if arguments[0] == "train" else 1
    ended = run_child(arguments, log, ranks, pass_fds=(scratch.lock,))
    if not ended.code:
        return Outcome(name, "ok", f"{time.monotonic() - started:.1f} s")
    # The shell's convention: 137 for a part that was killed for its memory.
    return Outcome(name, "error", ended.reason, shell_code(ended.code))


@contextmanager
def _scratch(path: Path) -> Iterator[Scratch]:
    """An empty folder inside the `with` block, even if an earlier rehearsal was killed."""
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
                with suppress(OSError):  # the folder is no longer empty
                    path.parent.rmdir()
