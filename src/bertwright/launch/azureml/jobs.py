"""Jobs that were submitted: how they stand, what they have printed, and their end, by `client`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bertwright.core.errors import RecipeError
from bertwright.launch.azureml.client import Client, connect_to
from bertwright.launch.azureml.refusals import asking
from bertwright.launch.azureml.workspace import JobId

_GONE = "gone"
_DELETED = "it has been deleted, or its workspace has"
_ENDED = ("Completed", "Failed", "Canceled", _GONE)
"""States of jobs that do not go on."""
_ORDER = ("data", "train", "evaluate")
_LINES = 20
"""Of each log, from its end."""
_BYTES = 65536
"""Of each log, from its end, that these lines are looked for in."""
_SECONDS = 30.0
"""Most that is waited for a job to be cancelled; the service goes on with it."""


def status(jobs: Mapping[str, str]) -> list[dict[str, str]]:
    """What the service knows of each job; of a pipeline also of each step that has begun."""
    return [row for name, text in jobs.items() for row in _status(name, JobId.of(text))]


def alive(jobs: Mapping[str, str]) -> list[str]:
    """The jobs that have not ended."""
    return [name for name, text in jobs.items() if _state(JobId.of(text)) not in _ENDED]


def logs(jobs: Mapping[str, str]) -> dict[str, str]:
    """The last lines of what each process of each job has printed, by job and file."""
    return dict(line for name, text in jobs.items() for line in _logs(name, JobId.of(text)))


def stop(jobs: Mapping[str, str]) -> None:
    """Cancel the jobs that have not ended; a pipeline with its steps."""
    for job in map(JobId.of, jobs.values()):
        if _state(job) not in _ENDED:
            with asking(f"stopping {job.name}", job.workspace):
                connect_to(job).jobs.begin_cancel(job.name).wait(_SECONDS)


def _state(job: JobId) -> str:
    """What the service says of a job."""
    found = _found(connect_to(job), job)
    return _word(found.status) if found else _GONE


def _found(client: Client, job: JobId) -> Any:
    """The job; None where there is none of this name any more."""
    from azure.core.exceptions import ResourceNotFoundError

    with asking(f"the job {job.name}", job.workspace):
        try:
            return client.jobs.get(job.name)
        except ResourceNotFoundError:
            return None


def _word(state: Any) -> str:
    """A state as the service writes it; the package gives it as a member of an enumeration, or as text."""
    return str(getattr(state, "value", state))


def _status(name: str, job: JobId) -> Iterator[dict[str, str]]:
    client = connect_to(job)
    found = _found(client, job)
    if found is None:
        yield {"job": name, "id": job.name, "state": _GONE, "why": _DELETED}
        return
    yield {"job": name, "id": job.name, "state": _word(found.status), "why": str(found.studio_url)}
    for step, run in _steps(client, job, found):
        with asking(f"the job {run.name}", job.workspace):
            why = _reason(client, run)
        yield {"job": step, "id": run.name, "state": _word(run.status), "why": why}


def _steps(client: Client, job: JobId, found: Any) -> list[tuple[str, Any]]:
    """The runs of a pipeline that have begun, by the names of their steps, in order."""
    if found.type != "pipeline":
        return []
    with asking(f"the steps of {job.name}", job.workspace):
        runs = {str(run.display_name): run for run in client.jobs.list(parent_job_name=job.name) if run}
    return sorted(runs.items(), key=lambda step: _ORDER.index(step[0]) if step[0] in _ORDER else len(_ORDER))


def _details(client: Client, name: str) -> Any:
    # The package's public way to logs waits for the end of the job.
    return client.jobs._runs_operations.get_run_details(name)


def _reason(client: Client, run: Any) -> str:
    """Why a run has failed, in one line."""
    if _word(run.status) != "Failed":
        return ""
    error = _details(client, run.name).error
    return " ".join(str(error.error.message).split()) if error and error.error else "no reason is given: see its log"


def _logs(name: str, job: JobId) -> Iterator[tuple[str, str]]:
    client = connect_to(job)
    found = _found(client, job)
    if found is None:
        raise RecipeError(f"the job {job.name} is gone, and its logs with it: {_DELETED}. Submit it again.")
    for step, run in _steps(client, job, found) or [(name, found)]:
        with asking(f"the logs of {run.name}", job.workspace):
            files = _details(client, run.name).log_files or {}
            printed = {f"{step}/{file}": files[file] for file in sorted(files) if file.startswith("user_logs/")}
        for file, address in printed.items():
            try:
                with asking(file, job.workspace):
                    tail = _tail(address)
            except RecipeError as error:  # one that cannot be read costs none of the others
                tail = str(error)
            yield file, tail


def _tail(address: str) -> str:
    """The last lines of a file of the storage, whose address is signed."""
    from azure.core.exceptions import ResourceNotFoundError
    from azure.storage.blob import BlobClient

    with BlobClient.from_blob_url(address) as blob:
        try:
            size = blob.get_blob_properties().size
        except ResourceNotFoundError:
            return "(this file is not in the storage any more)"
        start = max(0, size - _BYTES)
        # Nothing can be asked for of an empty file.
        data = blob.download_blob(offset=start).readall() if size else b""
    return "\n".join(data.decode("utf-8", "replace").splitlines()[-_LINES:])
