"""An Azure Machine Learning workspace: a pipeline of jobs on one of its clusters, or on serverless machines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from bertwright.core.config import Section
from bertwright.core.errors import RecipeError
from bertwright.core.log import Log
from bertwright.launch.azureml import client
from bertwright.launch.azureml.assets import (
    DOCKERFILE,
    IMAGE,
    Cluster,
    Data,
    Datastore,
    DatastoreFolder,
    Input,
    JobEnvironment,
    Name,
)
from bertwright.launch.azureml.sizes import between_machines, check_size, has_infiniband, ranks_of
from bertwright.launch.azureml.steps import (
    IGNORE,
    RUN,
    Service,
    Shared,
    Step,
    events_folder,
    files_no_job_sees,
    job,
    pipeline,
    services,
    upload_note,
    with_inputs,
)
from bertwright.launch.azureml.workspace import Workspace
from bertwright.launch.job import RECIPE, Job, local_paths, unpersisted_outputs
from bertwright.launch.options import Environment, SharedMemory
from bertwright.launch.target import Description, Submitted
from bertwright.launch.wheel import WHEEL
from bertwright.launch.yaml_text import yaml_text


class AzuremlPlace(Section):
    """An Azure Machine Learning workspace. Only submitting needs Azure's package, the extra azureml."""

    kind: Literal["azureml"] = "azureml"
    """Names this target."""
    workspace: Workspace = Workspace()
    """The workspace that the jobs are submitted to."""
    compute: ComputeName = ""
    """Name of the cluster that trains; "": serverless machines of `vm_size`."""
    vm_size: VmSize = ""
    """Size of the training machines, such as "Standard_ND96asr_v4"; an existing cluster has its own size."""
    nodes: int = Field(1, ge=1)
    """Number of machines that train together."""
    ranks: int | None = Field(None, ge=1)
    """Ranks on each machine; left out: one for each GPU of `vm_size`, or one if it has none."""
    spot: bool = False
    """Whether to use spot machines, at a lower price. A preempted job starts again and resumes from its checkpoint;
    training saves one when it receives the notice (`train.spot_notice`)."""
    infiniband: bool | None = None
    """Whether ranks of several machines communicate over InfiniBand; left out: if `vm_size` has it."""
    shm_size: SharedMemory = "2g"
    """Size of shared memory (/dev/shm) of each machine: a number and b, k, m or g."""
    timeout: int | None = Field(None, ge=60)
    """Seconds after which a job is stopped; left out: Azure's default limit."""
    runs: Literal["pipeline", "training"] = "pipeline"
    """Whether three jobs prepare, train and evaluate (pipeline.yml), or one trains on existing data (job.yml)."""
    output: DatastoreFolder = "azureml://datastores/workspaceblobstore/paths/bertwright"
    """Folder of a datastore that holds the run folders."""
    experiment: str = Field("bertwright", pattern=r"^[\w-]+$")
    """Name of the experiment that lists the jobs."""
    identity: Literal["managed", "user_identity"] | None = None
    """Identity that reads and writes data in the jobs: the submitting user's, or the cluster's, which for serverless
    machines is a user-assigned identity of the workspace; left out: the datastore's keys."""
    image: JobEnvironment = JobEnvironment()
    """The environment of the jobs, in Azure's sense: an image with packages."""
    setup: tuple[str, ...] = ()
    """Lines of shell that each rank runs before the command."""
    services: tuple[Service, ...] = ()
    """Services that can be opened while training runs."""
    service_nodes: Literal["first", "all"] = "first"
    """Machines that the services run on: the first one of the training, or all, each of which can then be opened."""
    inputs: dict[Name, Input] = Field(default_factory=dict)
    """Data that the jobs see, by name: the recipe key is set to the path where the data is mounted."""
    data: dict[Name, Data] = Field(default_factory=dict)
    """Data assets to create before the job, by name."""
    datastore: Datastore | None = None
    """A datastore to create before the job."""
    cluster: Cluster | None = None
    """Creates the cluster `compute` before the job, with machines of `vm_size`."""
    prepare: PreparingMachine | None = None
    """Machine for the stages before training; left out: one machine like those that train."""
    environment: Environment = Field(default_factory=dict)
    """Environment variables of the jobs."""
    overrides: tuple[str, ...] = ()
    """Overrides applied to every recipe on these machines; those on the command line are applied after them."""

    def describe(self, job: Job) -> Description:
        """As `Target.describe`; raises `RecipeError` for what Azure would accept and then fail on."""
        self._check(job)
        job = with_inputs(job, self.inputs)
        made: dict[str, dict[str, Any]] = {file: document for _, file, document in self._assets()}
        if not self.image.registered:
            made["environment.yml"] = self.image.document()
        made[self._file] = self._pipeline(job) if self.runs == "pipeline" else self._job(job)
        files = {RECIPE: job.recipe, ".amlignore": IGNORE}
        if self.image.built:
            files[f"{IMAGE}/{DOCKERFILE}"] = self.image.dockerfile(job.extras)
        files |= {file: yaml_text(document) for file, document in made.items()}
        lines = client.commands(self._creations(), str(job.folder), self.workspace)
        missing = files_no_job_sees(job, self.inputs)
        note = " ".join(filter(None, (upload_note(missing), unpersisted_outputs(job, RUN))))
        packed = f"{IMAGE}/{WHEEL}" if self.image.built else ""
        return Description(files, lines, note, upload_note(local_paths(missing)), packed)

    def submit(self, job: Job, folder: Path, log: Log) -> Mapping[str, str]:
        """As `Submitter.submit`; job identifiers include the workspace."""
        # Each once; serverless machines have no name that could be missing.
        # One job of training alone has no machine that prepares.
        prepare = self.prepare.compute if self.prepare and self.runs == "pipeline" else ""
        clusters = dict.fromkeys(filter(None, (self.compute, prepare)))
        return client.submit(self.workspace, self._creations(), list(clusters), folder, log)

    def status(self, submitted: Submitted) -> list[dict[str, str]]:
        """As `Scheduler.status`."""
        return client.status(submitted.jobs)

    def alive(self, submitted: Submitted) -> list[str]:
        """As `Scheduler.alive`."""
        return client.alive(submitted.jobs)

    def logs(self, submitted: Submitted) -> dict[str, str]:
        """As `Scheduler.logs`."""
        return client.logs(submitted.jobs)

    def stop(self, submitted: Submitted) -> None:
        """As `Scheduler.stop`."""
        client.stop(submitted.jobs)

    def _check(self, job: Job) -> None:
        job.require_relative_out("run folders are stored below `output`")
        if not self.compute and not self.vm_size:
            raise RecipeError(
                "neither compute nor vm_size is set, so there is no machine to train on. Set compute to a cluster, "
                "or set vm_size. Both are keys of a place (--set KEY=VALUE, or --place FILE)."
            )
        if self.prepare and not self.prepare.compute and not self.prepare.vm_size:
            raise RecipeError("[prepare] needs compute or vm_size. Set one of them, or remove the section.")
        if self.cluster and not (self.compute and self.vm_size):
            raise RecipeError("[cluster] needs vm_size (the size of its machines) and compute (its name). Set both.")
        if self.cluster and self.cluster.max_nodes < self.nodes:
            raise RecipeError(
                f"cluster.max_nodes = {self.cluster.max_nodes}: {self.nodes} nodes would wait forever. Raise "
                "cluster.max_nodes."
            )
        if self.spot and self.compute and not self.cluster:
            raise RecipeError(
                f"spot = true: an existing cluster such as {self.compute} already has its own spot setting. Add "
                "[cluster] to create a cluster, or remove compute to use serverless machines, or remove spot."
            )
        if self.infiniband and not has_infiniband(self.vm_size):
            raise RecipeError(
                f"infiniband = true: vm_size {self.vm_size!r} is not known to have InfiniBand. Remove infiniband, "
                "or choose another size, such as Standard_ND96asr_v4."
            )
        if "tensorboard" in self.services and not events_folder(job):
            raise RecipeError(
                "services has tensorboard, but the recipe writes no data for it. Add "
                'train.observers=["tensorboard"], or remove the service.'
            )
        if self.service_nodes == "all" and not self.services:
            raise RecipeError(
                'service_nodes = "all", but services names none. Add services=["jupyter"], or remove service_nodes.'
            )
        job.check_ranks({"nodes": self.nodes, "ranks" if self.ranks else "GPUs of vm_size": self._ranks()})

    @property
    def _file(self) -> str:
        return "pipeline.yml" if self.runs == "pipeline" else "job.yml"

    def _creations(self) -> list[tuple[str, str]]:
        """Return what to create, in order, as (Azure's noun, file); the job comes last."""
        return [*((noun, file) for noun, file, _ in self._assets()), ("job", self._file)]

    def _assets(self) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Yield what to create before the job, as (Azure's noun, file, document)."""
        if self.datastore:
            yield "datastore", "datastore.yml", self.datastore.document()
        for name, asset in self.data.items():
            yield "data", f"data-{name}.yml", asset.document(name)
        if self.cluster:
            managed = self.identity == "managed"
            yield "compute", "compute.yml", self.cluster.document(self.compute, self.vm_size, self.spot, managed)

    def _job(self, run: Job) -> dict[str, Any]:
        return job(run.name, self.experiment, self._shared(run).document(self._train(run)))

    def _pipeline(self, job: Job) -> dict[str, Any]:
        prepare = self.prepare or PreparingMachine(compute=self.compute, vm_size=self.vm_size)
        before = Step("data", ("run", "--until", "examples"), self._machine(prepare.compute, prepare.vm_size, 1))
        after = Step("evaluate", ("run",), self._machine(self.compute, self.vm_size, 1))
        return pipeline(job.name, self.experiment, [before, self._train(job), after], self._shared(job))

    def _shared(self, job: Job) -> Shared:
        environment = self.image.registered or "file:environment.yml"
        output = f"{self.output}/{job.out}"
        return Shared(environment, output, self.inputs, self.setup, self.environment)

    def _train(self, run: Job) -> Step:
        machine = self._machine(self.compute, self.vm_size, self.nodes)
        # A recipe that sets spot_notice, even to none, takes precedence.
        notices = self.spot and "spot_notice" not in run.values.get("train", {})
        words = ("train", "train.spot_notice=azure") if notices else ("train",)
        shown = services(self.services, events_folder(run), self.service_nodes == "all")
        return Step("train", words, machine, self._ranks(), shown, self._between_machines())

    def _ranks(self) -> int:
        """Return the number of ranks on each machine."""
        return self.ranks or ranks_of(self.vm_size)

    def _machine(self, compute: str, size: str, nodes: int) -> dict[str, Any]:
        resources: dict[str, Any] = {"instance_count": nodes, "shm_size": self.shm_size}
        machine: dict[str, Any] = {"compute": f"azureml:{compute}"} if compute else {}
        machine |= {"resources": resources}
        if not compute:
            resources["instance_type"] = size
            machine |= {"queue_settings": {"job_tier": "spot"}} if self.spot else {}
        machine |= {"limits": {"timeout": self.timeout}} if self.timeout else {}
        machine |= {"identity": {"type": self.identity}} if self.identity else {}
        return machine

    def _between_machines(self) -> dict[str, str]:
        infiniband = has_infiniband(self.vm_size) if self.infiniband is None else self.infiniband
        return between_machines(infiniband) if self.nodes > 1 else {}


def _compute(name: str) -> str:
    if name and not re.fullmatch(r"[A-Za-z][A-Za-z0-9-]{1,30}[A-Za-z0-9]", name):
        raise ValueError(
            "the name of a cluster has 3 to 32 letters, digits and hyphens, begins with a letter and does not end with "
            "a hyphen, such as gpu-cluster"
        )
    return name


VmSize = Annotated[str, AfterValidator(check_size)]
ComputeName = Annotated[str, AfterValidator(_compute)]


class PreparingMachine(Section):
    """The machine that builds the corpus, the vocabulary and the examples."""

    compute: ComputeName = ""
    """Name of the cluster; "": serverless."""
    vm_size: VmSize = ""
    """Size of the serverless machine; a cluster has its own size."""
