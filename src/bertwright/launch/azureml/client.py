"""Azure's package azure-ai-ml, which submits jobs and looks after them. Nothing else here imports it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bertwright.core.errors import MissingExtraError, RecipeError
from bertwright.core.log import Log
from bertwright.launch.azureml.refusals import asking
from bertwright.launch.azureml.workspace import JobId, Workspace

Client = Any
"""`azure.ai.ml.MLClient`, whose package has no types of its own."""
_ENDED = ("Completed", "Failed", "Canceled")
"""States of jobs that do not go on."""
_ORDER = ("data", "train", "evaluate")
_LINES = 20
"""Of each log, from its end."""
_BYTES = 65536
"""Of each log, from its end, that these lines are looked for in."""
_SECONDS = 30.0
"""Most that is waited for a job to be cancelled; the service goes on with it."""


def submit(
    workspace: Workspace, creations: Sequence[tuple[str, str]], clusters: Sequence[str], folder: Path, log: Log
) -> dict[str, str]:
    """Create what `creations` names, (noun, file) in `folder`, the job last; its identifier, by its noun's file.

    `clusters` have to be there when the job is created.
    """
    where = workspace.whole()
    client = _connect(where, f"or run, where az is: {'; '.join(commands(creations, str(folder), workspace))}")
    with asking(f"the workspace {where.name}", where):
        client.workspaces.get(where.name)
    *assets, (_, file) = creations
    for noun, asset in assets:
        log.say(f"{noun}: {_create(client, where, noun, folder / asset)}")
    for cluster in clusters:
        _check_cluster(client, where, cluster)
    from azure.ai.ml import load_job

    with asking(f"submitting {file}", where):
        job = client.jobs.create_or_update(load_job(folder / file))
    name = file.removesuffix(".yml")
    log.say(f"{name}: job {job.name}, {job.studio_url}")
    return {name: job.id}


def commands(creations: Sequence[tuple[str, str]], folder: str, workspace: Workspace) -> list[str]:
    """The same by the Azure CLI, as a shell reads it."""
    options = workspace.options()
    return [
        shlex.join(["az", "ml", noun, "create", "--file", f"{folder}/{file}", *options]) for noun, file in creations
    ]


def status(jobs: Mapping[str, str]) -> list[dict[str, str]]:
    """What the service knows of each job; of a pipeline also of each step that has begun."""
    return [row for name, text in jobs.items() for row in _status(name, JobId.of(text))]


def alive(jobs: Mapping[str, str]) -> list[str]:
    """The jobs that have not ended."""
    return [name for name, text in jobs.items() if _state(JobId.of(text)) not in ("", *_ENDED)]


def logs(jobs: Mapping[str, str]) -> dict[str, str]:
    """The last lines of what each process of each job has printed, by job and file."""
    return dict(line for name, text in jobs.items() for line in _logs(name, JobId.of(text)))


def stop(jobs: Mapping[str, str]) -> None:
    """Cancel the jobs that have not ended; a pipeline with its steps."""
    for job in map(JobId.of, jobs.values()):
        if _state(job) not in ("", *_ENDED):
            with asking(f"stopping {job.name}", job.workspace):
                _connect_to(job).jobs.begin_cancel(job.name).wait(_SECONDS)


def _connect(workspace: Workspace, otherwise: str) -> Client:
    """A client that asks with the credentials of who is signed in; none of them is kept anywhere."""
    try:
        from azure.ai.ml import MLClient
        from azure.identity import DefaultAzureCredential
    except ImportError as error:
        raise MissingExtraError(
            f"Azure's package azure-ai-ml is not installed: pip install 'bertwright[azureml]'; {otherwise}"
        ) from error
    with asking("signing in", workspace):
        return MLClient(
            DefaultAzureCredential(),
            workspace.subscription,
            workspace.resource_group,
            workspace.name,
            enable_telemetry=False,
            show_progress=False,
        )


def _connect_to(job: JobId) -> Client:
    words = ["az", "ml", "job", "show", "--name", job.name, *job.workspace.options()]
    return _connect(job.workspace, f"or run, where az is: {shlex.join(words)}")


def _create(client: Client, workspace: Workspace, noun: str, file: Path) -> str:
    """Create what a file describes; its name."""
    from azure.ai.ml import load_compute, load_data, load_datastore

    with asking(f"creating {file.name}", workspace):
        match noun:
            case "datastore":
                return str(client.datastores.create_or_update(load_datastore(file)).name)
            case "data":
                return str(client.data.create_or_update(load_data(file)).name)
            case _:
                return str(client.compute.begin_create_or_update(load_compute(file)).result().name)


def _check_cluster(client: Client, workspace: Workspace, cluster: str) -> None:
    from azure.core.exceptions import ResourceNotFoundError

    with asking(f"the cluster {cluster}", workspace):
        try:
            client.compute.get(cluster)
        except ResourceNotFoundError:
            raise RecipeError(
                f"there is no cluster {cluster} in the workspace {workspace.name}. Add [cluster] to the place to make "
                "it, name one that is there (az ml compute list), or leave compute out for serverless machines."
            ) from None


def _state(job: JobId) -> str:
    """What the service says of a job; "" where there is none of this name any more."""
    client = _connect_to(job)
    from azure.core.exceptions import ResourceNotFoundError

    with asking(f"the job {job.name}", job.workspace):
        try:
            return _word(client.jobs.get(job.name).status)
        except ResourceNotFoundError:
            return ""


def _word(state: Any) -> str:
    """A state as the service writes it; the package gives it as a member of an enumeration, or as text."""
    return str(getattr(state, "value", state))


def _status(name: str, job: JobId) -> Iterator[dict[str, str]]:
    client = _connect_to(job)
    with asking(f"the job {job.name}", job.workspace):
        found = client.jobs.get(job.name)
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
    client = _connect_to(job)
    with asking(f"the job {job.name}", job.workspace):
        found = client.jobs.get(job.name)
    for step, run in _steps(client, job, found) or [(name, found)]:
        with asking(f"the logs of {run.name}", job.workspace):
            files = _details(client, run.name).log_files or {}
            printed = {f"{step}/{file}": files[file] for file in sorted(files) if file.startswith("user_logs/")}
            tails = {file: _tail(address) for file, address in printed.items()}
        yield from tails.items()


def _tail(address: str) -> str:
    """The last lines of a file of the storage, whose address is signed."""
    from azure.storage.blob import BlobClient

    with BlobClient.from_blob_url(address) as blob:
        size = blob.get_blob_properties().size
        start = max(0, size - _BYTES)
        # Nothing can be asked for of an empty file.
        data = blob.download_blob(offset=start).readall() if size else b""
    return "\n".join(data.decode("utf-8", "replace").splitlines()[-_LINES:])
