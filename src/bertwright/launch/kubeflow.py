"""Kubernetes with Kubeflow's training operator: a Job that prepares, a PyTorchJob that trains, a Job for the rest."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import Field

from bertwright.core.config import Section
from bertwright.core.errors import RecipeError
from bertwright.launch.job import RECIPE, Job, list_files, local_paths, unpersisted_outputs
from bertwright.launch.options import Environment
from bertwright.launch.target import Description
from bertwright.launch.yaml_text import yaml_text

INSIDE = "/work"
"""Where pods mount the volume."""
RECIPE_FOLDER = PurePosixPath("/launch")
"""Where pods mount the recipe: outside the volume, where missing parents of a mount would belong to root."""
USER = 10001
"""User and group ID of the image."""
_LONGEST = 50
"""Maximum length of a name in characters: Kubernetes allows 63, and the operator appends suffixes."""
Quantity = Annotated[str, Field(pattern=r"^[1-9]\d*(Ki|Mi|Gi|Ti|k|M|G|T)?$")]
"""An amount of memory in Kubernetes notation."""


class KubeflowPlace(Section):
    """A Kubernetes cluster with Kubeflow's training operator (kubeflow.org/v1). Description only: `kubectl` submits."""

    kind: Literal["kubeflow"] = "kubeflow"
    """Names this target."""
    volume: str = Field("bertwright", min_length=1)
    """PersistentVolumeClaim of the volume that holds the run folders; all pods must write to it (ReadWriteMany)."""
    image: str = Field("bertwright:cuda", min_length=1)
    """The image, built from container/Dockerfile, under the name by which the cluster pulls it."""
    nodes: int = Field(1, ge=1)
    """Number of pods that train together."""
    gpus: int = Field(0, ge=0)
    """GPUs of each pod, one rank each; 0: train on the CPU, with one rank a pod."""
    cpus: int = Field(8, ge=1)
    """CPUs of each pod."""
    memory: Quantity = "32Gi"
    """Memory of each pod, in Kubernetes notation such as "32Gi"."""
    shm_size: Quantity = "8Gi"
    """Size of shared memory (/dev/shm) of each pod; it counts towards the pod's memory."""
    restarts: int = Field(10, ge=0)
    """Maximum number of restarts of pods that failed or were evicted (times)."""
    namespace: str = Field("", pattern=r"^([a-z0-9]([a-z0-9-]*[a-z0-9])?)?$")
    """The namespace; "": that of kubectl's context."""
    overrides: tuple[str, ...] = ()
    """Overrides applied to every recipe on this cluster; those on the command line are applied after them."""
    environment: Environment = Field(default_factory=dict)
    """Environment variables of the pods."""

    def describe(self, job: Job) -> Description:
        """As `Target.describe`; raises `RecipeError` for an invalid run folder or number of ranks."""
        job.require_relative_out("run folders are stored in the volume")
        job.check_ranks({"nodes": self.nodes, "gpus": self.gpus or 1})
        name = _name(job)
        files = {
            RECIPE: job.recipe,
            "prepare.yaml": self._job(
                job, f"{name}-prepare", job.command("run", "--until", "examples", at=RECIPE_FOLDER), gpus=0
            ),
            "train.yaml": self._training_job(job, name),
            # Scores and export are computed by one process, so by one GPU at most.
            "finish.yaml": self._job(
                job, f"{name}-finish", job.command("run", at=RECIPE_FOLDER), gpus=min(self.gpus, 1)
            ),
        }
        unseen = {
            key: path
            for key, path in local_paths(job.files).items()
            if not PurePosixPath(os.path.normpath(path)).is_relative_to(INSIDE)
        }
        note = " ".join(filter(None, (self._seen(job.files), unpersisted_outputs(job, INSIDE))))
        return Description(files, list(self._commands(job, name)), note, self._seen(unseen))

    def _seen(self, files: Mapping[str, str]) -> str:
        """Return where files of the recipe must be for the pods to see them; "" if there are none."""
        if not files:
            return ""
        return (
            f"The pods see only the volume {self.volume}, as {INSIDE}: {list_files(files)} must be in it, and the "
            "recipe must give the path there."
        )

    def monitoring_commands(self, job: Job) -> Mapping[str, str]:
        """As `DescribedOnly.monitoring_commands`."""
        name = _name(job)
        every = (f"job/{name}-prepare", f"pytorchjob/{name}", f"job/{name}-finish")
        of_run = ",".join(f"{label}={value}" for label, value in _labels(job).items())
        return {
            "status": self._kubectl("get", "--ignore-not-found", *every),
            "logs": self._kubectl("logs", "--prefix", "--tail=20", "--selector", of_run),
            "stop": self._kubectl("delete", "--ignore-not-found", *every, f"configmap/{name}-recipe"),
        }

    def _kubectl(self, *words: str) -> str:
        where = ["--namespace", self.namespace] if self.namespace else []
        return shlex.join(["kubectl", *where, *words])

    def _commands(self, job: Job, name: str) -> list[str]:
        kubectl = self._kubectl
        return [
            # Not apply: what is left of another run of this name makes it fail before anything starts.
            kubectl("create", "configmap", f"{name}-recipe", f"--from-file={job.folder}/{RECIPE}"),
            kubectl("apply", "--filename", f"{job.folder}/prepare.yaml"),
            # To kubectl, -1s means a week, the longest time that it waits.
            kubectl("wait", "--for=condition=Complete", "--timeout=-1s", f"job/{name}-prepare"),
            kubectl("apply", "--filename", f"{job.folder}/train.yaml"),
            kubectl("wait", "--for=condition=Succeeded", "--timeout=-1s", f"pytorchjob/{name}"),
            kubectl("apply", "--filename", f"{job.folder}/finish.yaml"),
        ]

    def _job(self, job: Job, name: str, words: Sequence[str], gpus: int) -> str:
        spec = {"backoffLimit": self.restarts, "template": self._pod(job, words, gpus)}
        return yaml_text({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec})

    def _training_job(self, job: Job, name: str) -> str:
        # The operator passes the rendezvous address and the number of ranks to torchrun in PET_... variables.
        words = ["torchrun", "-m", "bertwright.cli", *job.command("train", at=RECIPE_FOLDER)]
        worker = {
            "replicas": self.nodes,
            "restartPolicy": "OnFailure",
            # The operator sets its variables in the container of this name only.
            "template": self._pod(job, words, self.gpus, container="pytorch"),
        }
        spec = {
            "nprocPerNode": str(self.gpus or 1),
            # Minimum and maximum are equal: nothing is elastic, but only with this section torchrun gets a rendezvous.
            "elasticPolicy": {
                "rdzvBackend": "c10d",
                "minReplicas": self.nodes,
                "maxReplicas": self.nodes,
                "maxRestarts": self.restarts,
            },
            # Pods that have ended stay, because their logs (--logs) would go with them.
            "runPolicy": {"cleanPodPolicy": "None", "backoffLimit": self.restarts},
            "pytorchReplicaSpecs": {"Worker": worker},
        }
        return yaml_text(
            {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": name}, "spec": spec}
        )

    def _pod(self, job: Job, words: Sequence[str], gpus: int, container: str = "bertwright") -> dict[str, Any]:
        """Return the template of a pod with one container."""
        amounts: dict[str, str | int] = {"cpu": self.cpus, "memory": self.memory}
        # Kubernetes takes GPUs as limits, and sets their requests to the same number.
        limits = amounts | ({"nvidia.com/gpu": gpus} if gpus else {})
        inside = {
            "name": container,
            "image": self.image,
            "args": list(words),
            "workingDir": INSIDE,
            "env": [{"name": name, "value": value} for name, value in self.environment.items()],
            "resources": {"requests": amounts, "limits": limits},
            "volumeMounts": [
                {"name": "work", "mountPath": INSIDE},
                {"name": "recipe", "mountPath": str(RECIPE_FOLDER), "readOnly": True},
                {"name": "shared-memory", "mountPath": "/dev/shm"},
            ],
        }
        spec = {
            "restartPolicy": "OnFailure",
            # fsGroup lets the user of the image write to the volume.
            "securityContext": {"runAsNonRoot": True, "runAsUser": USER, "fsGroup": USER},
            "containers": [inside],
            "volumes": [
                {"name": "work", "persistentVolumeClaim": {"claimName": self.volume}},
                {"name": "recipe", "configMap": {"name": f"{_name(job)}-recipe"}},
                {"name": "shared-memory", "emptyDir": {"medium": "Memory", "sizeLimit": self.shm_size}},
            ],
        }
        return {"metadata": {"labels": _labels(job)}, "spec": spec}


def _labels(job: Job) -> dict[str, str]:
    """Return the labels that all pods of this run have and no other pods."""
    return {"app.kubernetes.io/name": "bertwright", "app.kubernetes.io/instance": _name(job)}


def _name(job: Job) -> str:
    """Return a valid Kubernetes name for the run's jobs: lower-case letters, digits and hyphens."""
    name = re.sub(r"[^a-z0-9]+", "-", job.name.lower()).strip("-")[:_LONGEST].rstrip("-")
    if not name or not name[0].isalpha():
        raise RecipeError(f"--out {job.out}: Kubernetes needs a name that begins with a letter a to z. Rename the run.")
    return name
