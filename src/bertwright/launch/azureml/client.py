"""Submit jobs through Azure's package azure-ai-ml, query their state, read their logs, and stop them. Nothing else uses
that package."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bertwright.core.errors import MissingExtraError, RecipeError
from bertwright.core.log import Log
from bertwright.launch.azureml.refusals import CHANGE, explain_errors
from bertwright.launch.azureml.workspace import JobId, Workspace

Client = Any
"""`azure.ai.ml.MLClient`; its package has no type information."""


def submit(
    workspace: Workspace, creations: Sequence[tuple[str, str]], clusters: Sequence[str], folder: Path, log: Log
) -> dict[str, str]:
    """Create what `creations` lists as (noun, file in `folder`), the job last; return its identifier by file stem.

    `clusters` must exist when the job is created.
    """
    where = workspace.complete()
    client = connect(where, f"or run, on a machine with az: {'; '.join(commands(creations, str(folder), workspace))}")
    with explain_errors(f"the workspace {where.name}", where):
        client.workspaces.get(where.name)
    *assets, (_, file) = creations
    for noun, asset in assets:
        log.say(f"{noun}: {_create(client, where, noun, folder / asset)}")
    # Before the job, because the package would upload its files and only then report that a cluster is missing.
    for cluster in clusters:
        _check_cluster(client, where, cluster)
    from azure.ai.ml import load_job

    with explain_errors(f"submitting {file}", where, CHANGE):
        job = client.jobs.create_or_update(load_job(folder / file))
    name = file.removesuffix(".yml")
    log.say(f"{name}: job {job.name}, {job.studio_url}")
    return {name: job.id}


def commands(creations: Sequence[tuple[str, str]], folder: str, workspace: Workspace) -> list[str]:
    """Return the equivalent commands of the Azure CLI, quoted for a shell."""
    options = workspace.options()
    return [
        shlex.join(["az", "ml", noun, "create", "--file", f"{folder}/{file}", *options]) for noun, file in creations
    ]


def connect(workspace: Workspace, otherwise: str) -> Client:
    """Return a client that uses the credentials of the signed-in user; credentials are never stored."""
    try:
        from azure.ai.ml import MLClient
        from azure.identity import DefaultAzureCredential
    except ImportError as error:
        raise MissingExtraError(
            f"Azure's package azure-ai-ml is not installed: pip install 'bertwright[azureml]'; {otherwise}"
        ) from error
    with explain_errors("signing in", workspace):
        return MLClient(
            DefaultAzureCredential(),
            workspace.subscription,
            workspace.resource_group,
            workspace.name,
            # Nothing is sent that no description shows (decision 0048).
            enable_telemetry=False,
            show_progress=False,
        )


def connect_to(job: JobId) -> Client:
    """Return a client of the workspace in which the job was created."""
    words = ["az", "ml", "job", "show", "--name", job.name, *job.workspace.options()]
    return connect(job.workspace, f"or run, on a machine with az: {shlex.join(words)}")


def _create(client: Client, workspace: Workspace, noun: str, file: Path) -> str:
    """Create what a file describes, and return its name."""
    from azure.ai.ml import load_compute, load_data, load_datastore

    with explain_errors(f"creating {file.name}", workspace, CHANGE):
        match noun:
            case "datastore":
                return str(client.datastores.create_or_update(load_datastore(file)).name)
            case "data":
                return str(client.data.create_or_update(load_data(file)).name)
            case _:
                return str(client.compute.begin_create_or_update(load_compute(file)).result().name)


def _check_cluster(client: Client, workspace: Workspace, cluster: str) -> None:
    from azure.core.exceptions import ResourceNotFoundError

    with explain_errors(f"the cluster {cluster}", workspace):
        try:
            client.compute.get(cluster)
        except ResourceNotFoundError:
            raise RecipeError(
                f"there is no cluster {cluster} in the workspace {workspace.name}. Add [cluster] to the place to "
                "create it, name an existing cluster (az ml compute list), or remove compute to use serverless "
                "machines."
            ) from None


_GONE = "gone"
_DELETED = "it was deleted, or its workspace was"
_ENDED = ("Completed", "Failed", "Canceled", _GONE)
"""States of jobs that have ended."""
_ORDER = ("data", "train", "evaluate")
_LINES = 20
"""Number of lines shown from the end of each log."""
_BYTES = 65536
"""Number of bytes read from the end of each log to find these lines."""
_SECONDS = 30.0
"""Maximum wait for a job to be cancelled; the service continues to cancel it afterwards."""


def status(jobs: Mapping[str, str]) -> list[dict[str, str]]:
    """Return what the service knows of each job; for a pipeline, also of each step that has started."""
    return [row for name, text in jobs.items() for row in _status(name, JobId.of(text))]


def alive(jobs: Mapping[str, str]) -> list[str]:
    """Return the jobs that have not ended."""
    return [name for name, text in jobs.items() if _state(JobId.of(text)) not in _ENDED]


def logs(jobs: Mapping[str, str]) -> dict[str, str]:
    """Return the last lines that each process of each job printed, by job and file."""
    return dict(line for name, text in jobs.items() for line in _logs(name, JobId.of(text)))


def stop(jobs: Mapping[str, str]) -> None:
    """Cancel the jobs that have not ended; a pipeline together with its steps."""
    for job in map(JobId.of, jobs.values()):
        if _state(job) not in _ENDED:
            with explain_errors(f"stopping {job.name}", job.workspace):
                connect_to(job).jobs.begin_cancel(job.name).wait(_SECONDS)


def _state(job: JobId) -> str:
    """Return the state of a job according to the service."""
    found = _find_job(connect_to(job), job)
    return _word(found.status) if found else _GONE


def _find_job(client: Client, job: JobId) -> Any:
    """Return the job, or None if no job of this name exists any more."""
    from azure.core.exceptions import ResourceNotFoundError

    with explain_errors(f"the job {job.name}", job.workspace):
        try:
            return client.jobs.get(job.name)
        except ResourceNotFoundError:
            return None


def _word(state: Any) -> str:
    """Return a state as the service writes it; the package returns it as an enumeration member or as text."""
    return str(getattr(state, "value", state))


def _status(name: str, job: JobId) -> Iterator[dict[str, str]]:
    client = connect_to(job)
    found = _find_job(client, job)
    if found is None:
        yield {"job": name, "id": job.name, "state": _GONE, "why": _DELETED}
        return
    yield {"job": name, "id": job.name, "state": _word(found.status), "why": str(found.studio_url)}
    for step, run in _steps(client, job, found):
        with explain_errors(f"the job {run.name}", job.workspace):
            why = _reason(client, run)
        yield {"job": step, "id": run.name, "state": _word(run.status), "why": why}


def _steps(client: Client, job: JobId, found: Any) -> list[tuple[str, Any]]:
    """Return the started runs of a pipeline with the names of their steps, in order; an empty list for other jobs."""
    if found.type != "pipeline":
        return []
    with explain_errors(f"the steps of {job.name}", job.workspace):
        runs = {str(run.display_name): run for run in client.jobs.list(parent_job_name=job.name) if run}
    return sorted(runs.items(), key=lambda step: _ORDER.index(step[0]) if step[0] in _ORDER else len(_ORDER))


def _details(client: Client, name: str) -> Any:
    # The package's public method for logs waits for the job to end.
    return client.jobs._runs_operations.get_run_details(name)


def _reason(client: Client, run: Any) -> str:
    """Return why a run failed, in one line."""
    if _word(run.status) != "Failed":
        return ""
    error = _details(client, run.name).error
    return " ".join(str(error.error.message).split()) if error and error.error else "no reason is given; see its log"


def _logs(name: str, job: JobId) -> Iterator[tuple[str, str]]:
    client = connect_to(job)
    found = _find_job(client, job)
    if found is None:
        raise RecipeError(f"the job {job.name} and its logs no longer exist: {_DELETED}. Submit it again.")
    for step, run in _steps(client, job, found) or [(name, found)]:
        with explain_errors(f"the logs of {run.name}", job.workspace):
            files = _details(client, run.name).log_files or {}
            printed = {f"{step}/{file}": files[file] for file in sorted(files) if file.startswith("user_logs/")}
        for file, address in printed.items():
            try:
                with explain_errors(file, job.workspace):
                    tail = _tail(address)
            except RecipeError as error:  # an unreadable log must not hide the others
                tail = str(error)
            yield file, tail


def _tail(address: str) -> str:
    """Return the last lines of a file in the storage, given its signed URL."""
    from azure.core.exceptions import ResourceNotFoundError
    from azure.storage.blob import BlobClient

    with BlobClient.from_blob_url(address) as blob:
        try:
            size = blob.get_blob_properties().size
        except ResourceNotFoundError:
            return "(this file is no longer in the storage)"
        start = max(0, size - _BYTES)
        # An empty file has no range to download.
        data = blob.download_blob(offset=start).readall() if size else b""
    return "\n".join(data.decode("utf-8", "replace").splitlines()[-_LINES:])
