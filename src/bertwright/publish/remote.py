"""Where a model can be sent, and the addresses that name these places."""

from __future__ import annotations

from typing import Protocol

from bertwright.core.addresses import check_address
from bertwright.core.errors import RecipeError
from bertwright.core.log import Log
from bertwright.publish.azure import AzureModel
from bertwright.publish.hub import HubModel
from bertwright.publish.mlflow import MlflowModel
from bertwright.publish.parcel import Parcel

FORMS = "hf://OWNER/NAME, mlflow:NAME or azureml:NAME"


class Remote(Protocol):
    """A place that a model can be sent to; credentials come from the environment or from its package's own sign-in."""

    @property
    def title(self) -> str:
        """For people: "the model me/hu-mini on huggingface.co"."""
        ...

    def connect(self) -> None:
        """Prepare to ask and send. Raises `MissingExtraError` if the package of the place is not installed, and
        `RecipeError` if credentials or an address are missing."""
        ...

    def existing(self, parcel: Parcel) -> str:
        """What is there, and what sending `parcel` would do to it, in a sentence. Raises `RecipeError` if it must not
        be sent there."""
        ...

    def send(self, parcel: Parcel, log: Log) -> str:
        """Send the files, and compare what has arrived by its hashes; returns its address. Raises `DataError` if it was
        interrupted, or if something else has arrived; the same call then sends what is missing."""
        ...


def remote_of(address: str, private: bool = False) -> Remote:
    """The place that an address names; `private`: a model created on the hub is for its owner only. Raises
    `RecipeError` if it is no such address, or if it has a secret in it."""
    scheme, _, rest = address.partition(":")
    match scheme:
        case "hf":
            return HubModel.of(rest, private)
        case "mlflow" | "models":
            return MlflowModel.of(rest.removeprefix("/"))
        case "azureml":
            return AzureModel.of(rest)
    try:
        check_address(address, "REMOTE")
    except ValueError as error:
        raise RecipeError(f"{error}, {FORMS}.") from None
    raise RecipeError(f"REMOTE is no place that models are published to: give {FORMS}.")
