"""Recipe settings for the observers of a training. Does not import torch.

There are none unless named, nothing is sent to another machine unless its address is named, and telemetry of the
packages to their makers is disabled.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from bertwright.core.addresses import has_credentials, secret_in_query
from bertwright.core.config import Section, UserPath, by_kind
from bertwright.core.plugins import PLUGINS, Plugin

if TYPE_CHECKING:
    from bertwright.train.monitor.observers.observer import Observed, Observer


def _refuse_secrets(key: str, address: str | None, instead: str) -> None:
    # It would be written to the recipe in the run folder, which users share.
    if address is not None and has_credentials(address):
        raise ValueError(f"{key} contains a user name or a password before the @: remove it, and {instead}")
    if address is not None and secret_in_query(address):
        raise ValueError(f"{key} contains a password or a token in its query: remove it, and {instead}")


class TensorBoardConfig(Section):
    """Event files for TensorBoard and compatible programs: `tensorboard --logdir RUN`."""

    package: ClassVar = "tensorboardX"
    """Package to import."""
    extra: ClassVar = "tensorboard"
    """The extra of bertwright that installs it."""

    kind: Literal["tensorboard"] = "tensorboard"
    """Selects this observer."""
    folder: UserPath | None = None
    """Folder of the event files; unset: `observers/tensorboard` in the run's `train` folder."""


class MlflowConfig(Section):
    """An MLflow run, in files that `mlflow ui` shows, or on a server."""

    package: ClassVar = "mlflow"
    """Package to import."""
    extra: ClassVar = "mlflow"
    """The extra of bertwright that installs it."""

    kind: Literal["mlflow"] = "mlflow"
    """Selects this observer."""
    tracking_uri: str | None = None
    """Address of a server or a store, which receives rows as they are written; unset: files in `observers/mlflow` of
    the run's `train` folder. Set credentials in MLflow's own environment variables, never here."""
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
    """A trackio run, in its own folder on this machine (TRACKIO_DIR, or its default), or in a Hugging Face Space;
    `trackio show` shows all runs of a project."""

    package: ClassVar = "trackio"
    """Package to import."""
    extra: ClassVar = "trackio"
    """The extra of bertwright that installs it."""

    kind: Literal["trackio"] = "trackio"
    """Selects this observer."""
    project: str = Field("bertwright", min_length=1)
    """Name of the project that the run belongs to."""
    space: str | None = None
    """Hugging Face Space, as `owner/name`, to which rows are sent; unset: they stay on this machine."""


class WandbConfig(Section):
    """A Weights & Biases run, in files on this machine, or sent to its server as rows are written."""

    package: ClassVar = "wandb"
    """Package to import."""
    extra: ClassVar = "wandb"
    """The extra of bertwright that installs it."""

    kind: Literal["wandb"] = "wandb"
    """Selects this observer."""
    project: str = Field("bertwright", min_length=1)
    """Name of the project that the run belongs to."""
    server: str | None = None
    """Address of the server to which rows are sent, such as https://api.wandb.ai (log in first: `wandb login`); unset:
    they stay in `observers/wandb` of the run's `train` folder until `wandb sync` sends them."""

    @model_validator(mode="after")
    def _no_password(self) -> Self:
        _refuse_secrets("server", self.server, "log in with `wandb login`, or set WANDB_API_KEY in the environment")
        return self


class ObserverPlugin(Plugin, Section):
    """The base of observers in other packages (entry points `bertwright.observers`).

    The fields of a subclass are its recipe keys. Declare those that do not change the result with
    `bertwright.core.config.runtime_only`.
    """

    group: ClassVar[str] = "bertwright.observers"

    @abstractmethod
    def build(self, observed: Observed) -> Observer:
        """The observer of one start, on rank 0; any error ends the start before training."""


ObserverConfig = Annotated[
    TensorBoardConfig | MlflowConfig | TrackioConfig | WandbConfig | ObserverPlugin,
    PLUGINS,
    BeforeValidator(by_kind),
]
"""Available observers."""


def _each_once(observers: tuple[ObserverConfig, ...]) -> tuple[ObserverConfig, ...]:
    for observer in observers:
        alike = [each for each in observers if each.kind == observer.kind]
        # Each MLflow observer has its own client; the others would write to the same files or the same run.
        if len(alike) > 1 and (observer.kind != "mlflow" or alike.count(observer) > 1):
            several = ", or give each another tracking_uri or experiment" if observer.kind == "mlflow" else ""
            raise ValueError(f"names {observer.kind} {len(alike)} times: name it once{several}")
    return observers


Observers = Annotated[tuple[ObserverConfig, ...], AfterValidator(_each_once)]
"""The observers of a training."""
