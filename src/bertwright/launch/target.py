"""What a target is asked: a description that can be read first, and then to submit just that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable

from bertwright.core.log import Log
from bertwright.launch.job import Job


@dataclass(frozen=True)
class Description:
    """Exactly what would be submitted. It holds nothing of the machine that it was made on."""

    files: Mapping[str, str]
    """Texts by name. Submitting writes them to the folder `launch` of the run."""
    commands: Sequence[str]
    """What is run then, in this order, as a shell would read it."""
    note: str = ""
    """What its user has to do beside."""


@dataclass(frozen=True)
class Submitted:
    """What was submitted from a run folder, as `submission.submitted` finds it again."""

    folder: Path
    """The folder `launch` of the run."""
    jobs: Mapping[str, str] = field(default_factory=dict)
    """What the target calls each job, by our name of it; in the order in which they run."""


@runtime_checkable
class Target(Protocol):
    """A kind of place. Its settings are its fields."""

    @property
    def kind(self) -> str:
        """Its name on the command line and in the files of places."""

    @property
    def overrides(self) -> tuple[str, ...]:
        """What its machines ask of any recipe, before the overrides of the command line."""

    def describe(self, job: Job) -> Description:
        """What would be submitted. Needs no network and no package of the target."""


@runtime_checkable
class Submitter(Protocol):
    """What a target has beside where bertwright submits; where not, its user runs the commands of the description."""

    def submit(self, job: Job, folder: Path, log: Log) -> Mapping[str, str]:
        """Submit the description, whose files lie in `folder`; the jobs as in `Submitted`, empty where all is done when
        this returns. `MissingExtraError` where what the target needs is not here, `RecipeError` where it refuses."""


@runtime_checkable
class DescribedOnly(Protocol):
    """What a target has beside where its user submits, so that jobs are known to the target's own program alone."""

    def looked_after(self, job: Job) -> Mapping[str, str]:
        """The commands that tell the `status`, print the `logs`, and `stop`, as a shell would read them."""


@runtime_checkable
class Scheduler(Protocol):
    """What a target has beside where submitted jobs go on by themselves."""

    def status(self, submitted: Submitted) -> list[dict[str, str]]:
        """What is known of each job: `job`, `id`, `state`, and why."""

    def alive(self, submitted: Submitted) -> list[str]:
        """The jobs, by our names, that still wait or run."""

    def logs(self, submitted: Submitted) -> dict[str, str]:
        """The last lines of each log, by its name."""

    def stop(self, submitted: Submitted) -> None:
        """End all jobs that wait or run; training saves a checkpoint."""
