"""The interface of a target: return a description that can be inspected first, then submit exactly that.

A job is described, submitted, and found again once it is submitted, in the same way for all targets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from bertwright.core.errors import RecipeError
from bertwright.core.files import make_folder, read_json, write_atomic, write_json
from bertwright.core.log import Log
from bertwright.launch.job import Job
from bertwright.launch.wheel import build_wheel


@dataclass(frozen=True)
class Description:
    """Exactly what would be submitted. It contains nothing specific to the machine that created it."""

    files: Mapping[str, str]
    """File contents by name. Submitting writes them to the folder `launch` of the run."""
    commands: Sequence[str]
    """Commands to run then, in this order, quoted for a shell."""
    note: str = ""
    """What the user has to do in addition."""
    refusal: str = ""
    """Why submitting is refused: the run could not read a file that the recipe names; "": it is not."""
    wheel: str = ""
    """Path, below that folder, of a wheel of this bertwright, which submitting writes too; "": none."""


@dataclass(frozen=True)
class Submitted:
    """What was submitted from a run folder, as returned by `read_submission`."""

    folder: Path
    """The run's folder `launch`."""
    jobs: Mapping[str, str] = field(default_factory=dict)
    """The target's identifier of each job, keyed by our name for it, in the order in which the jobs run."""


@runtime_checkable
class Target(Protocol):
    """A kind of place. Its fields are its settings."""

    @property
    def kind(self) -> str:
        """Its name on the command line and in place files."""

    @property
    def overrides(self) -> tuple[str, ...]:
        """Overrides for every recipe, applied before those of the command line."""

    def describe(self, job: Job) -> Description:
        """Return what would be submitted. Needs neither the network nor any package of the target."""


@runtime_checkable
class Submitter(Protocol):
    """Additional interface of a target to which bertwright submits; otherwise users run the description's commands."""

    def submit(self, job: Job, folder: Path, log: Log) -> Mapping[str, str]:
        """Submit the description, whose files are in `folder`. Return the jobs as in `Submitted`; empty if all work is
        done on return. Raises `MissingExtraError` if a dependency is missing, `RecipeError` if the target refuses."""


@runtime_checkable
class DescribedOnly(Protocol):
    """Additional interface of a target to which users submit, so that only the target's own program knows the jobs."""

    def monitoring_commands(self, job: Job) -> Mapping[str, str]:
        """Return the commands that show the `status`, print the `logs`, and `stop` the jobs, quoted for a shell."""


@runtime_checkable
class Scheduler(Protocol):
    """Additional interface of a target whose submitted jobs run unattended."""

    def status(self, submitted: Submitted) -> list[dict[str, str]]:
        """Return `job`, `id`, `state` and `why` (the reason) of each job."""

    def alive(self, submitted: Submitted) -> list[str]:
        """Return our names of the jobs that still wait or run."""

    def logs(self, submitted: Submitted) -> dict[str, str]:
        """Return the last lines of each log, by the log's name."""

    def stop(self, submitted: Submitted) -> None:
        """End all jobs that wait or run; training saves a checkpoint."""


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
        write_atomic(folder / described.wheel, build_wheel())
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
    kept = _read_note(job)
    if not isinstance(target, Scheduler) or kept.get("target") != target.kind:
        return
    if alive := target.alive(Submitted(Path(job.folder), kept["jobs"])):
        raise RecipeError(
            f"{job.out} is already submitted, and {', '.join(alive)} wait or run. Stop them (--stop), wait until "
            "they end (--status), or give another run folder (--out)."
        )


def _read_note(job: Job) -> Mapping[str, Any]:
    note = Path(job.folder) / _NOTE
    kept: Mapping[str, Any] = read_json(note) if note.is_file() else {}
    return kept


def read_submission(target: Target, job: Job) -> Submitted:
    """Return what `submit` recorded; raise `RecipeError` if nothing was submitted from there to this target."""
    note = Path(job.folder) / _NOTE
    kept = _read_note(job)
    if kept.get("target") != target.kind:
        other = f"was submitted to {kept['target']}" if kept else "has no jobs"
        raise RecipeError(
            f"{job.out} {other}: there is no {note} of {target.kind}. Submit the run first (--submit), or give "
            "the run folder (--out)."
        )
    return Submitted(Path(job.folder), kept["jobs"])
