"""Submit jobs through Azure's package azure-ai-ml. Only this module and `jobs`, which monitors them, use it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bertwright.core.errors import MissingExtraError, RecipeError
from bertwright.core.log import Log
from bertwright.launch.azureml.refusals import CHANGE, asking
from bertwright.launch.azureml.workspace import JobId, Workspace

Client = Any
"""`azure.ai.ml.MLClient`; its package has no type information."""


def submit(
    workspace: Workspace, creations: Sequence[tuple[str, str]], clusters: Sequence[str], folder: Path, log: Log
) -> dict[str, str]:
    """Create what `creations` lists as (noun, file in `folder`), the job last; return its identifier by file stem.

    `clusters` must exist when the job is created.
    """
    where = workspace.whole()
    client = connect(where, f"or run, on a machine with az: {'; '.join(commands(creations, str(folder), workspace))}")
    with asking(f"the workspace {where.name}", where):
        client.workspaces.get(where.name)
    *assets, (_, file) = creations
    for noun, asset in assets:
        log.say(f"{noun}: {_create(client, where, noun, folder / asset)}")
    # Before the job, because the package would upload its files and only then say that a cluster is missing.
    for cluster in clusters:
        _check_cluster(client, where, cluster)
    from azure.ai.ml import load_job

    with asking(f"submitting {file}", where, CHANGE):
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
    with asking("signing in", workspace):
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

    with asking(f"creating {file.name}", workspace, CHANGE):
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
                f"there is no cluster {cluster} in the workspace {workspace.name}. Add [cluster] to the place to "
                "create it, name an existing cluster (az ml compute list), or remove compute to use serverless "
                "machines."
            ) from None
