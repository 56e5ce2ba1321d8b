"""The recipe's choice of who watches a training. Knows no torch.

Nobody does unless named, nothing is sent to another machine unless its address is named, and no program tells its
makers that it is used.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from bertwright.core.config import Section, UserPath, by_kind
from bertwright.core.redact import has_credentials, secret_in_query


def _refuse_secrets(key: str, address: str | None, instead: str) -> None:
    # It would be written to the recipe of the run folder, which people share.
    if address is not None and has_credentials(address):
        raise ValueError(f"{key} has a name or a password in front of its @: take it out, and {instead}")
    if address is not None and secret_in_query(address):
        raise ValueError(f"{key} has a password or a token in its query: take it out, and {instead}")


class TensorBoardConfig(Section):
    """Event files, which TensorBoard and what else reads them show: `tensorboard --logdir RUN`."""

    package: ClassVar = "tensorboardX"
    """What is imported."""
    extra: ClassVar = "tensorboard"
    """The extra of bertwright that has it."""

    kind: Literal["tensorboard"] = "tensorboard"
    """Names this observer."""
    folder: UserPath | None = None
    """Folder of the event files; unset: `observers/tensorboard` in the run's `train`."""


class MlflowConfig(Section):
    """A run of MLflow, in files that `mlflow ui` shows, or on a server."""

    package: ClassVar = "mlflow"
    """What is imported."""
    extra: ClassVar = "mlflow"
    """The extra of bertwright that has it."""

    kind: Literal["mlflow"] = "mlflow"
    """Names this observer."""
    tracking_uri: str | None = None
    """Address of a server or a store, which is written to as rows come; unset: files in `observers/mlflow` of the run's
    `train`. Who may write is said in MLflow's own environment variables, never here."""
    experiment: str = Field("bertwright", min_length=1)
    """Name of the experiment that the run belongs to."""

    @model_validator(mode="after")
    def _no_password(self) -> Self:
        instead = (
            "set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN, in the environment"
        )
        _refuse_secrets("tracking_uri", self.tracking_uri, instead)
        return self


class TrackioConfig(Section):
    """A run of trackio, in its own folder on this machine (TRACKIO_DIR, or its default), or in a Space of Hugging Face:
    `trackio show` shows all of a project."""

    package: ClassVar = "trackio"
    """What is imported."""
    extra: ClassVar = "trackio"
    """The extra of bertwright that has it."""

    kind: Literal["trackio"] = "trackio"
    """Names this observer."""
    project: str = Field("bertwright", min_length=1)
    """Name of the project that the run belongs to."""
    space: str | None = None
    """Space of Hugging Face, as in `owner/name`, that rows are sent to; unset: they stay on this machine."""


class WandbConfig(Section):
    """A run of Weights & Biases, in files on this machine, or sent to its server as rows come."""

    package: ClassVar = "wandb"
    """What is imported."""
    extra: ClassVar = "wandb"
    """The extra of bertwright that has it."""

    kind: Literal["wandb"] = "wandb"
    """Names this observer."""
    project: str = Field("bertwright", min_length=1)
    """Name of the project that the run belongs to."""
    server: str | None = None
    """Address of the server that rows are sent to, such as https://api.wandb.ai (log in first: `wandb login`); unset:
    they stay in `observers/wandb` of the run's `train`, until `wandb sync` sends them."""

    @model_validator(mode="after")
    def _no_password(self) -> Self:
        _refuse_secrets("server", self.server, "log in with `wandb login`, or set WANDB_API_KEY in the environment")
        return self


ObserverConfig = Annotated[
    TensorBoardConfig | MlflowConfig | TrackioConfig | WandbConfig,
    Field(discriminator="kind"),
    BeforeValidator(by_kind),
]
"""Who can watch a training."""
