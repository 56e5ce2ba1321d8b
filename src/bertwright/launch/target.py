"""The interface of a target: return a description that can be inspected first, then submit exactly that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable

from bertwright.core.log import Log
from bertwright.launch.job import Job


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
    """What was submitted from a run folder, as returned by `submission.submitted`."""

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

    def looked_after(self, job: Job) -> Mapping[str, str]:
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
