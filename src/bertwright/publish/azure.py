"""A model in the registry of a workspace of Azure ML, created by Azure's package azure-ai-ml."""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertwright.core import __version__
from bertwright.core.errors import RecipeError
from bertwright.core.files import link_or_copy
from bertwright.core.log import Log
from bertwright.launch.azureml.client import connect
from bertwright.launch.azureml.refusals import explain_errors
from bertwright.launch.azureml.workspace import Workspace
from bertwright.publish.parcel import Parcel

_MODEL = r"[A-Za-z0-9][\w.-]{0,254}"
_LONG = re.compile(
    rf"//subscriptions/([\w-]+)/resource[gG]roups/([\w.()-]+)/(?:providers/[\w.]+/)?workspaces/([\w-]+)/models/({_MODEL})"
)
_AGAIN = "Check the name of the model and the connection, and run the same command again."


@dataclass
class AzureModel:
    """A model by its name in a workspace; see `Remote`."""

    workspace: Workspace
    name: str

    @classmethod
    def of(cls, rest: str) -> AzureModel:
        """The model named by what follows `azureml:`."""
        if found := _LONG.fullmatch(rest):
            return cls(Workspace(subscription=found[1], resource_group=found[2], name=found[3]), found[4])
        if not re.fullmatch(_MODEL, rest):
            raise RecipeError(
                "REMOTE is no name of a model of Azure ML: give azureml:NAME, with the workspace in AZURE_SUBSCRIPTION_"
                "ID, AZURE_DEFAULTS_GROUP and AZURE_DEFAULTS_WORKSPACE, or azureml://subscriptions/ID/resourceGroups/"
                "GROUP/workspaces/NAME/models/NAME."
            )
        return cls(Workspace(), rest)

    @property
    def title(self) -> str:
        """As `Remote.title`."""
        return f"the model {self.name} in Azure ML"

    def connect(self) -> None:
        """As `Remote.connect`."""
        self.workspace = self.workspace.complete()
        self._client = connect(self.workspace, "or publish from a machine that has it")

    def existing(self, parcel: Parcel) -> str:
        """As `Remote.existing`."""
        versions = self._versions()
        if not versions:
            return f"there is no such model in the workspace {self.workspace.name} yet: it is created"
        if same := _same(versions, parcel):
            return f"it exists, and version {same.version} already is this model: nothing is sent"
        return f"it exists with {len(versions)} versions, the newest {versions[0].version}: this is another one"

    def send(self, parcel: Parcel, log: Log) -> str:
        """As `Remote.send`; the service takes folders, so the files are gathered in one that has nothing else."""
        if same := _same(self._versions(), parcel):
            return str(same.id)
        from azure.ai.ml.entities import Model

        tags = {"fingerprint": parcel.fingerprint, "digest": parcel.digest, "bertwright": __version__}
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch) / "model"
            for name, file in parcel.files.items():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                link_or_copy(file.path, folder / name)
            log.say(f"sending {len(parcel.files)} files to {self.title}")
            model = Model(name=self.name, path=str(folder), type="custom_model", tags=tags)
            with explain_errors(f"creating {self.name}", self.workspace, _AGAIN):
                created = self._client.models.create_or_update(model)
        return str(created.id)

    def _versions(self) -> list[Any]:
        from azure.core.exceptions import ResourceNotFoundError

        with explain_errors(self.title, self.workspace, _AGAIN):
            try:
                return list(self._client.models.list(name=self.name))
            except ResourceNotFoundError:
                return []


def _same(versions: list[Any], parcel: Parcel) -> Any:
    return next((each for each in versions if (each.tags or {}).get("digest") == parcel.digest), None)
