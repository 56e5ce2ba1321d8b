"""Slurm's commands: sbatch, squeue, sacct, scancel."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bertwright.core.errors import MissingExtraError, RecipeError
from bertwright.core.log import Log
from bertwright.launch.slurm.script import Step
from bertwright.launch.target import Submitted

_SECONDS = 60.0
"""Maximum time that one of the commands may take."""
_ENDED = (
    *("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "PREEMPTED", "REVOKED"),
    *("NODE_FAIL", "BOOT_FAIL", "LAUNCH_FAILED", "RECONFIG_FAIL", "DEADLINE", "OUT_OF_MEMORY"),
)
"""States of jobs that have ended, as the queue names them."""
_GONE = "Invalid job id"
"""The queue's message about a job that it no longer remembers."""
_LINES = 20
"""Number of lines shown from the end of each log."""


def submit_commands(steps: Sequence[Step], folder: str) -> list[str]:
    """Return the commands that submit the scripts in `folder`, quoted for a shell."""
    before = [None, *(f"${step.name}" for step in steps)]
    words = [_sbatch(shlex.quote(f"{folder}/{step.file}"), after) for step, after in zip(steps, before, strict=False)]
    # The variable of the previous job expands to its id, so it is not quoted.
    return [f"{step.name}=$({' '.join(each)})" for step, each in zip(steps, words, strict=True)]


def submit(steps: Sequence[Step], folder: str, log: Log) -> dict[str, str]:
    """Submit the scripts in `folder`, each to start when the previous one has succeeded; return the ids by name."""
    ids: dict[str, str] = {}
    for step in steps:
        before = list(ids.values())[-1] if ids else None
        try:
            # A semicolon and the cluster's name may follow the id.
            ids[step.name] = _output(_sbatch(f"{folder}/{step.file}", before)).partition(";")[0]
        except RecipeError:
            # Half a chain would waste computing time.
            if ids:
                stop(ids)
            raise
        log.say(f"{step.name}: job {ids[step.name]}")
    return ids


def status(jobs: Mapping[str, str]) -> list[dict[str, str]]:
    """Return what the queue, or else the accounting, knows of each job, with one row for each element of an array."""
    gone = {"state": "UNKNOWN", "why": "it is no longer in the queue or the accounting; only its log is left (--logs)"}
    return [
        {"job": name, "id": job, **row}
        for name, job in jobs.items()
        for row in list(_query_queue(job)) or list(_query_accounting(job)) or [gone]
    ]


def alive(jobs: Mapping[str, str]) -> list[str]:
    """Return the jobs that are in the queue and have not ended."""
    return [name for name, job in jobs.items() if any(row["state"] not in _ENDED for row in _query_queue(job))]


def logs(submitted: Submitted) -> dict[str, str]:
    """Return the last lines of each log, in the order of the jobs."""
    paths = [
        path
        for job in submitted.jobs.values()
        for pattern in (f"*-{job}.log", f"*-{job}_*.log")
        for path in sorted(submitted.folder.glob(pattern))
    ]
    return {path.name: "\n".join(_tail(path)) for path in paths}


def stop(jobs: Mapping[str, str]) -> None:
    """Cancel the jobs, the last first, so that none starts because another has ended."""
    _output(["scancel", *reversed([*jobs.values()])])


def _query_queue(job: str) -> Iterator[dict[str, str]]:
    """Query the queue, which remembers ended jobs for some minutes; raise `RecipeError` if the query fails."""
    # --array: one line for each element; --states=all: also those that have just ended.
    done = _run(["squeue", "--noheader", "--states=all", "--array", "--format=%i|%T|%r|%N", f"--jobs={job}"])
    if done.returncode and _GONE not in done.stderr:
        raise RecipeError(
            f"squeue: {_message(done)}. It is therefore unknown whether job {job} waits or runs. Try again later, or "
            "ask the administrator of the cluster."
        )
    for line in done.stdout.splitlines():
        number, state, why, nodes = line.strip().split("|")
        # A job that runs waits for no reason; its nodes are shown in that place.
        yield {"id": number, "state": state, "why": nodes if why == "None" else why}


def _query_accounting(job: str) -> Iterator[dict[str, str]]:
    """Query the accounting, if the cluster has one."""
    # Without --allocations, every srun in a job would be a row of its own.
    command = ["sacct", "--noheader", "--parsable2", "--allocations", "--format=JobID,State,ExitCode", f"--jobs={job}"]
    done = _run(command)
    for line in done.stdout.splitlines() if done.returncode == 0 else ():
        number, state, code = line.split("|")
        # "CANCELLED by 1000" here is CANCELLED in the queue.
        state, _, who = state.partition(" by ")
        yield {"id": number, "state": state, "why": f"exit code {code}" + (f", by user {who}" if who else "")}


def _tail(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8", errors="replace").splitlines()[-_LINES:]


def _sbatch(script: str, before: str | None) -> list[str]:
    """Return the command that submits a script, to start when the job `before` has succeeded."""
    # Without kill-on-invalid-dep, a job that depends on a failed one would wait forever.
    after = [f"--dependency=afterok:{before}", "--kill-on-invalid-dep=yes"] if before else []
    return ["sbatch", "--parsable", *after, script]


def _output(command: Sequence[str]) -> str:
    """Return what a command prints; raise `RecipeError` with the command's message if it fails."""
    done = _run(command)
    if done.returncode:
        raise RecipeError(
            f"{shlex.join(command)}: {_message(done)}. Change the place (--place, --set), or ask the administrator "
            "of the cluster."
        )
    return done.stdout.strip()


def _message(failed: subprocess.CompletedProcess[str]) -> str:
    """Return the command's own error message."""
    return " ".join(failed.stderr.split()) or f"exit code {failed.returncode}"


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except FileNotFoundError as error:
        raise MissingExtraError(
            f"there is no {command[0]} on this machine. Run the command on a machine with Slurm, such as a login "
            "node. Only --submit, --status, --logs and --stop need Slurm."
        ) from error
    except subprocess.TimeoutExpired as error:
        raise RecipeError(f"{command[0]} has not answered within {_SECONDS:g} seconds. Try again later.") from error
