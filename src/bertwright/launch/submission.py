"""Submitting a description, and finding again what was submitted."""

from __future__ import annotations

from pathlib import Path

from bertwright.core.errors import RecipeError
from bertwright.core.files import make_folder, read_json, write_atomic, write_json
from bertwright.core.log import Log
from bertwright.launch.job import Job
from bertwright.launch.target import Submitted, Submitter, Target

_NOTE = "submitted.json"


def submit(target: Target, job: Job, log: Log) -> Submitted:
    """Write the files of the description below the run folder, submit them, and note what the target calls the jobs:
    none where the target is no `Submitter`.

    Raises what `Submitter.submit` raises.
    """
    folder = make_folder(Path(job.folder))
    for name, text in target.describe(job).files.items():
        write_atomic(folder / name, text.encode())
    jobs = target.submit(job, folder, log) if isinstance(target, Submitter) else {}
    if jobs:
        write_json(folder / _NOTE, {"target": target.kind, "jobs": dict(jobs)})
    return Submitted(folder, jobs)


def submitted(target: Target, job: Job) -> Submitted:
    """What `submit` noted; `RecipeError` where nothing was submitted to this target from the run folder."""
    note = Path(job.folder) / _NOTE
    kept = read_json(note) if note.is_file() else {}
    if kept.get("target") != target.kind:
        other = f"was submitted to {kept['target']}" if kept else "has no job"
        raise RecipeError(
            f"{job.out} {other}: there is no {note} of {target.kind}. Submit first (--submit), or name the run (--out)."
        )
    return Submitted(Path(job.folder), kept["jobs"])
