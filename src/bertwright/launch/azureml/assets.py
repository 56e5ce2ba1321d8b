"""What a workspace has besides jobs: data, a datastore, a cluster, an environment; each as the document of its file."""

from __future__ import annotations

import re
from collections.abc import Set
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from bertwright.core.addresses import has_credentials, redact_credentials
from bertwright.core.config import Section
from bertwright.launch.wheel import WHEEL, requirement

Document = dict[str, Any]
"""The content of a YAML file."""
SCHEMAS = "https://azuremlschemas.azureedge.net/latest"
_ASSET = r"azureml:[\w.-]+(:[\w.-]+|@latest)"
_EXTRAS = frozenset({"azure", "formats", "hf", "tensorboard"})
"""Extras that every environment installs."""
_COMPILED = frozenset({"deepspeed"})
"""Extras whose package is compiled for the torch that is installed."""
IMAGE, DOCKERFILE = "environment", "Dockerfile"
"""The folder that Azure builds the image from, and the file in it that says how."""
_PREFIX, _COPIED = "/opt/bertwright", "/tmp"
"""Where the image has Python with its packages, and the wheel."""
_LONG = r"azureml://[^\s?#]+"
_WEB = r"(https|wasbs|abfss)://[^\s]+"
_IDENTITY = (
    r"^(/subscriptions/[^/\s]+/resource[gG]roups/[^/\s]+/providers/Microsoft\.ManagedIdentity/"
    r"userAssignedIdentities/[\w-]+)?$"
)


def _data_path(path: str) -> str:
    if has_credentials(path) or redact_credentials(path) != path:
        raise ValueError(
            "an address with a password, a token or a query is a secret, and job descriptions must not contain "
            "secrets. Give a datastore: the workspace stores its credentials"
        )
    if not re.fullmatch(f"{_ASSET}|{_LONG}|{_WEB}", path):
        raise ValueError(
            f"{path!r} is not data of the workspace; write azureml:NAME:VERSION, azureml:NAME@latest, "
            "azureml://datastores/NAME/paths/FOLDER or https://..."
        )
    return path


def _datastore_folder(path: str) -> str:
    if not re.fullmatch(r"azureml://datastores/\w+/paths/[\w./-]*", path) or ".." in path:
        raise ValueError("write a folder of a datastore as azureml://datastores/NAME/paths/FOLDER")
    return path.rstrip("/")


DataPath = Annotated[str, AfterValidator(_data_path)]
DatastoreFolder = Annotated[str, AfterValidator(_datastore_folder)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z]\w*$")]


class Input(Section):
    """Data that the jobs see, and the recipe key that receives its path."""

    key: str = Field(pattern=r"^[a-z_]+(\.\w+)+$")
    """The recipe key, such as "corpus.source" or "train.phases.0.data"."""
    path: DataPath
    """Data asset, folder of a datastore or public URL, such as "azureml:text:1"."""
    type: Literal["uri_folder", "uri_file"] = "uri_folder"
    """Whether the data is a folder or one file."""
    mode: Literal["ro_mount", "download"] = "ro_mount"
    """Whether files are mounted read-only, or downloaded to the machine first."""
    below: str = Field("", pattern=r"^[\w.*-]+(/[\w.*-]+)*$|^$")
    """Path or pattern below the folder that the recipe reads, such as "*.bz2"; "": the folder itself."""

    @model_validator(mode="after")
    def _below_a_folder(self) -> Input:
        if self.below and self.type == "uri_file":
            raise ValueError(
                f"below = {self.below} is a path below a folder, but type = uri_file is one file; set type = "
                "uri_folder, or leave below out"
            )
        return self

    def document(self) -> Document:
        """Return the input as it appears in a job's document."""
        return {"type": self.type, "path": self.path, "mode": self.mode}


class Data(Section):
    """A data asset to create before the job: data with a name and a version."""

    path: DataPath
    """Where the data is."""
    type: Literal["uri_folder", "uri_file"] = "uri_folder"
    """Whether the data is a folder or one file."""
    version: str = Field("1", pattern=r"^[\w.-]+$")
    """Version of the data asset."""

    def document(self, name: str) -> Document:
        """Return the document of the data asset."""
        return {
            "$schema": f"{SCHEMAS}/data.schema.json",
            "name": name,
            "version": self.version,
            "type": self.type,
            "path": self.path,
        }


class Datastore(Section):
    """A container of a storage account, registered in the workspace; readers use their identity, not a key."""

    name: str = Field(pattern=r"^\w+$")
    """Name of the datastore in the workspace."""
    account: str = Field(pattern=r"^[a-z0-9]{3,24}$")
    """Name of the storage account."""
    container: str = Field(pattern=r"^[a-z0-9](-?[a-z0-9]){2,62}$")
    """Name of the container in the storage account."""

    def document(self) -> Document:
        """Return the document of the datastore, without credentials."""
        return {
            "$schema": f"{SCHEMAS}/azureBlob.schema.json",
            "name": self.name,
            "type": "azure_blob",
            "account_name": self.account,
            "container_name": self.container,
        }


class Cluster(Section):
    """The cluster `compute`, created before the job: machines start when a job waits, and stop when none does."""

    max_nodes: int = Field(1, ge=1)
    """Maximum number of machines at once."""
    min_nodes: int = Field(0, ge=0)
    """Number of machines that keep running, and are paid for, without a job."""
    idle: int = Field(600, ge=30)
    """Seconds without a job after which a machine stops."""
    identity: str = Field("", pattern=_IDENTITY)
    """Resource ID of a user-assigned managed identity that the cluster gets; "": a system-assigned one if the place's
    `identity` is "managed", else none."""

    @model_validator(mode="after")
    def _no_fewer_than_the_minimum(self) -> Cluster:
        if self.min_nodes > self.max_nodes:
            raise ValueError(f"min_nodes = {self.min_nodes} is more than max_nodes = {self.max_nodes}; lower it")
        return self

    def document(self, name: str, size: str, spot: bool, managed: bool) -> Document:
        """Return the document of the cluster; `managed`: jobs read data with its identity."""
        return {
            "$schema": f"{SCHEMAS}/amlCompute.schema.json",
            "name": name,
            "type": "amlcompute",
            "size": size,
            "tier": "low_priority" if spot else "dedicated",
            "min_instances": self.min_nodes,
            "max_instances": self.max_nodes,
            "idle_time_before_scale_down": self.idle,
            **({"identity": self._identity()} if managed or self.identity else {}),
        }

    def _identity(self) -> Document:
        if not self.identity:
            return {"type": "system_assigned"}
        return {"type": "user_assigned", "user_assigned_identities": [{"resource_id": self.identity}]}


class JobEnvironment(Section):
    """The image that jobs run in: registered in the workspace, curated by Azure, or built from a base and packages."""

    registered: str = Field("", pattern=rf"^({_ASSET}|azureml://registries/[^\s?#]+)?$")
    """An existing environment, such as "azureml:AzureML-acpt-pytorch-2.8-cuda12.6@latest"; "": create one."""
    image: str = Field("mcr.microsoft.com/azureml/openmpi4.1.0-ubuntu22.04", min_length=1)
    """The image, or its base if packages are installed."""
    python: str = Field("3.12", pattern=r"^3\.\d+$")
    """Version of Python to install on the base."""
    packages: tuple[str, ...] | None = None
    """Packages that pip installs on the base; left out: this bertwright, as a wheel that is sent along, with the extras
    that the recipe needs; empty: the image contains everything."""

    @model_validator(mode="after")
    def _nothing_that_is_not_read(self) -> JobEnvironment:
        built = [name for name in ("image", "python", "packages") if name in self.model_fields_set]
        if self.registered and built:
            raise ValueError(
                f"registered = {self.registered} is used as it is, so {' and '.join(built)} would have no effect; "
                "leave one or the other out"
            )
        if self.packages == () and "python" in self.model_fields_set:
            raise ValueError(
                f"python = {self.python} is the version that is installed with packages, but packages = [] installs "
                "nothing; leave it out"
            )
        return self

    @property
    def built(self) -> bool:
        """Whether Azure builds the image from the folder `IMAGE`, in which the wheel of this bertwright lies."""
        return not self.registered and self.packages is None

    def document(self) -> Document:
        """Return the document of the environment to create."""
        document: Document = {"$schema": f"{SCHEMAS}/environment.schema.json", "name": "bertwright"}
        if self.built:
            return {**document, "build": {"path": IMAGE, "dockerfile_path": DOCKERFILE}}
        document["image"] = self.image
        if not self.packages:
            return document
        dependencies = [f"python={self.python}", "pip", {"pip": list(self.packages)}]
        conda = {"name": "bertwright", "channels": ["conda-forge"], "dependencies": dependencies}
        return {**document, "conda_file": conda}

    def dockerfile(self, extras: Set[str]) -> str:
        """Return the Dockerfile of the image: the base, Python, and the wheel with the extras that a recipe needs."""
        pip = f"{_PREFIX}/bin/python -m pip install --no-cache-dir"
        installed = [f"{pip} '{requirement((_EXTRAS | extras) - _COMPILED, _COPIED)}'"]
        # Its set-up imports torch, which an isolated build would not see.
        installed += [f"{pip} --no-build-isolation '{requirement({name}, _COPIED)}'" for name in _COMPILED & extras]
        channel = "--override-channels --channel conda-forge"
        python = f"conda create --yes --prefix {_PREFIX} {channel} python={self.python} pip setuptools wheel"
        steps = " \\\n    && ".join([python, *installed])
        return (
            f"FROM {self.image}\nCOPY {WHEEL} {_COPIED}/\nRUN {steps}\n"
            f"ENV PATH={_PREFIX}/bin:$PATH PYTHONUNBUFFERED=1\n"
        )
