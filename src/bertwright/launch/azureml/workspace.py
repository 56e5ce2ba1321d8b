"""The workspace, and what names machines in it."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from bertwright.core.config import Section
from bertwright.launch.azureml.sizes import checked_size


def _compute(name: str) -> str:
    if name and not re.fullmatch(r"[A-Za-z][A-Za-z0-9-]{1,30}[A-Za-z0-9]", name):
        raise ValueError("names of clusters are letters, digits and hyphens, such as gpu-cluster")
    return name


VmSize = Annotated[str, AfterValidator(checked_size)]
ComputeName = Annotated[str, AfterValidator(_compute)]


class Workspace(Section):
    """Where the workspace is; a key left out is the default of the Azure CLI (`az configure`)."""

    subscription: str = Field("", pattern=r"^[\w-]*$")
    """The subscription that pays."""
    resource_group: str = Field("", pattern=r"^[\w.()-]*$")
    """The resource group."""
    name: str = Field("", pattern=r"^[\w-]*$")
    """The workspace."""

    def options(self) -> list[str]:
        """Words of the Azure CLI that name it."""
        named = {"subscription": self.subscription, "resource-group": self.resource_group, "workspace-name": self.name}
        return [word for option, value in named.items() if value for word in (f"--{option}", value)]


class PreparingMachine(Section):
    """The machine that makes corpus, vocabulary and examples."""

    compute: ComputeName = ""
    """The cluster; "": serverless."""
    vm_size: VmSize = ""
    """The size of the machine; a cluster has its own."""
