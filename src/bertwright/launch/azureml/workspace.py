"""Identify the workspace: from the place, from the environment, or from a job that was created in it."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from pydantic import Field

from bertwright.core.config import Section
from bertwright.core.errors import RecipeError

_VARIABLES = {
    "subscription": "AZURE_SUBSCRIPTION_ID",
    "resource_group": "AZURE_DEFAULTS_GROUP",
    "name": "AZURE_DEFAULTS_WORKSPACE",
}
"""Environment variables used for keys that the place leaves out. The last two are the Azure CLI's own."""
_ID = re.compile(
    r"/subscriptions/([^/]+)/resourceGroups/([^/]+)/providers/Microsoft\.MachineLearningServices/workspaces/([^/]+)"
    r"/jobs/([^/]+)",
    re.IGNORECASE,
)


class Workspace(Section):
    """The workspace; a key left out is read from an environment variable when a job is submitted."""

    subscription: str = Field("", pattern=r"^[\w-]*$")
    """The subscription that pays; "": from AZURE_SUBSCRIPTION_ID."""
    resource_group: str = Field("", pattern=r"^[\w.()-]*$")
    """The resource group; "": from AZURE_DEFAULTS_GROUP."""
    name: str = Field("", pattern=r"^[\w-]*$")
    """The workspace's name; "": from AZURE_DEFAULTS_WORKSPACE."""

    def options(self) -> list[str]:
        """Return the Azure CLI options that name the workspace."""
        named = {"subscription": self.subscription, "resource-group": self.resource_group, "workspace-name": self.name}
        return [word for option, value in named.items() if value for word in (f"--{option}", value)]

    def complete(self) -> Workspace:
        """Return the workspace completed from the environment; raise `RecipeError` if a key is still missing, or if an
        environment variable is not a valid name."""
        values = {key: getattr(self, key) or os.environ.get(name, "") for key, name in _VARIABLES.items()}
        if missing := [key for key, value in values.items() if not value]:
            raise RecipeError(
                f"the workspace is incomplete: missing {', '.join(missing)}. Set [workspace] of the place (--set "
                f"workspace.{missing[0]}=...), or {', '.join(_VARIABLES[key] for key in missing)} in the "
                "environment."
            )
        for key in (key for key in values if not getattr(self, key)):
            try:
                Workspace(**{key: values[key]})
            except RecipeError:
                raise RecipeError(
                    f"{_VARIABLES[key]} in the environment is {values[key]!r}, which is not a valid "
                    f"{key.replace('_', ' ')}. Correct it, or set workspace.{key} of the place."
                ) from None
        return Workspace(**values)


@dataclass(frozen=True)
class JobId:
    """A job known to the service."""

    workspace: Workspace
    """The workspace where it was created."""
    name: str
    """The service's name of the job."""

    @classmethod
    def of(cls, text: str) -> JobId:
        """Parse an identifier of Azure's resource manager; raise `RecipeError` if it is not one."""
        found = _ID.fullmatch(text)
        if not found:
            raise RecipeError(
                f"{text!r} is not a job of Azure ML: the note in the run folder is damaged. Submit again."
            )
        return cls(Workspace(subscription=found[1], resource_group=found[2], name=found[3]), found[4])
