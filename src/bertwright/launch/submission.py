"""Describe and submit a job, and find submitted jobs again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from bertwright.core.errors import RecipeError
from bertwright.core.files import make_folder, read_json, write_atomic, write_json
from bertwright.core.log import Log
from bertwright.launch.job import Job
from bertwright.launch.target import Description, Scheduler, Submitted, Submitter, Target
from bertwright.launch.wheel import wheel

_NOTE = "submitted.json"


def describe(target: Target, job: Job) -> Description:
    """Return the target's description; its note also says what was not checked. Raises what `Target.describe` does."""
    description = target.describe(job)
    return replace(description, note=" ".join(filter(None, (description.note, job.unchecked))))


def submit(target: Target, job: Job, log: Log) -> Submitted:
    """Write the description's files below the run folder, submit them, and record the target's job identifiers.

    There are no identifiers if the target is no `Submitter`; `log` receives the note of one that is. Raises what
    `Submitter.submit` raises, and `RecipeError` for files of this machine that the place cannot see, and if jobs of an
    earlier submission are still waiting or running.
    """
    _refuse_second(target, job)
    described = describe(target, job)
    if described.refusal:
        raise RecipeError(described.refusal)
    folder = make_folder(Path(job.folder))
    for name, text in described.files.items():
        make_folder((folder / name).parent)
        write_atomic(folder / name, text.encode())
    if described.wheel:
        write_atomic(folder / described.wheel, wheel())
    if not isinstance(target, Submitter):
        return Submitted(folder)
    if described.note:  # before submitting, which may last as long as the run
        log.say(described.note)
    if jobs := target.submit(job, folder, log):
        write_json(folder / _NOTE, {"target": target.kind, "jobs": dict(jobs)})
    return Submitted(folder, jobs)


def _refuse_second(target: Target, job: Job) -> None:
    """Raise `RecipeError` if jobs of an earlier submission wait or run.

    Two chains would write to one run folder, and the first chain's jobs could no longer be monitored or stopped.
    """
    kept = _noted(job)
    if not isinstance(target, Scheduler) or kept.get("target") != target.kind:
        return
    if alive := target.alive(Submitted(Path(job.folder), kept["jobs"])):
        raise RecipeError(
            f"{job.out} is already submitted, and {', '.join(alive)} wait or run. Stop them (--stop), wait until "
            "they end (--status), or give another run folder (--out)."
        )


def _noted(job: Job) -> Mapping[str, Any]:
    note = Path(job.folder) / _NOTE
    kept: Mapping[str, Any] = read_json(note) if note.is_file() else {}
    return kept


def submitted(target: Target, job: Job) -> Submitted:
    """Return what `submit` recorded; raise `RecipeError` if nothing was submitted from there to this target."""
    note = Path(job.folder) / _NOTE
    kept = _noted(job)
    if kept.get("target") != target.kind:
        other = f"was submitted to {kept['target']}" if kept else "has no jobs"
        raise RecipeError(
            f"{job.out} {other}: there is no {note} of {target.kind}. Submit the run first (--submit), or give "
            "the run folder (--out)."
        )
    return Submitted(Path(job.folder), kept["jobs"])
