"""Finds the finished parts of a run folder, for copying to another place."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from bertwright.core.artifact import MANIFEST, Artifact, open_artifact
from bertwright.core.errors import ArtifactError, RecipeError
from bertwright.core.log import SILENT, Log
from bertwright.core.validation_messages import nearest
from bertwright.pipeline.lineage import command_in
from bertwright.pipeline.run_folder import RunFolder
from bertwright.train.monitor.metrics import rows_beside
from bertwright.train.state import State, best_of, state_of
from bertwright.transfer.parts import CHECKPOINTS, PARTS, REPORT, STEPS, Part, RunParts


def check_parts(parts: Sequence[str]) -> None:
    """Raise `RecipeError` for a name that is not in `PARTS`."""
    for name in parts:
        if name not in PARTS:
            hint = nearest(name, list(PARTS)) or f"the parts are {', '.join(PARTS)}."
            raise RecipeError(f"a run has no part {name!r}; {hint}")


def finished_parts(run: Path, parts: Sequence[str], log: Log) -> RunParts:
    """The artifacts of `parts` (of `PARTS`), or all finished ones if `parts` is empty; of checkpoints, the newest and
    the best.

    Raises `ArtifactError` if a named part is not finished, or if none is. Unfinished parts are logged.
    """
    check_parts(parts)
    found, missing = list[Part](), list[str]()
    for name in (name for name in PARTS if name != "report"):
        if name == CHECKPOINTS:
            found += checkpoints(run, log) if not parts or name in parts else []
            if name in parts and not any(part.is_checkpoint for part in found):
                raise ArtifactError(f"{run / 'train'} has no complete checkpoint. Train first.")
        elif name in parts or (not parts and (run / name / MANIFEST).is_file()):
            found.append(Part(RunFolder(run).artifact(name), name))
        elif not parts:
            missing.append(name)
    reported = all((run / name).is_file() for name in REPORT)
    if not reported and "report" in parts:
        raise ArtifactError(f"{run} has no {REPORT[1]}. Make it first: {command_in(run, 'report RECIPE')}")
    if not found and not parts:
        raise ArtifactError(f"{run} has no finished stage to copy. Give a run folder, or finish a stage first.")
    if missing:
        log.say(f"{run} has no finished {', '.join(missing)}, which is not copied")
    return RunParts(run, found, "report" in (parts or PARTS), partial(checkpoints, run, SILENT))


def checkpoints(run: Path, log: Log) -> list[Part]:
    """The best and the newest checkpoint of a training at this moment, newest last; damaged checkpoints are logged."""
    readable, states = dict[Path, Artifact](), dict[Path, State]()
    for path in sorted((run / STEPS).glob("step-*")):
        try:
            artifact = open_artifact(path, "checkpoint")
            readable[path], states[path] = artifact, state_of(artifact)
        except (ArtifactError, FileNotFoundError) as error:
            if path.is_dir():  # otherwise a running training has pruned it
                log.say(f"skipping the damaged checkpoint {path.name}: {error}")
    newest = list(states)[-1:]
    best = [path for path in (best_of(states),) if path and path not in newest]
    return [
        Part(readable[path], f"{STEPS}/{path.name}", rows_beside(run / "train", states[path].total_steps))
        for path in [*best, *newest]
    ]
