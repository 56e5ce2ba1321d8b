"""Builds an observer from its recipe section."""

from __future__ import annotations

from importlib.util import find_spec
from typing import assert_never

from bertwright.core.errors import MissingExtraError
from bertwright.train.observers.config import (
    MlflowConfig,
    ObserverConfig,
    TensorBoardConfig,
    TrackioConfig,
    WandbConfig,
)
from bertwright.train.observers.observer import Observed, Observer


def build_observer(config: ObserverConfig, observed: Observed) -> Observer:
    """Return the observer of `config`; raises `MissingExtraError` if its package is not installed, and any error of the
    package."""
    # Located, not imported: the observer's own file first sets the variables that disable the package's telemetry.
    if find_spec(config.package) is None:
        raise MissingExtraError(
            f"train.observers = {config.kind} needs {config.package}, which is not installed: "
            f"pip install 'bertwright[{config.extra}]'."
        )
    # Each is imported only if chosen, because none of their packages is a base dependency.
    match config:
        case TensorBoardConfig():
            from bertwright.train.observers.tensorboard import TensorBoard

            return TensorBoard(config, observed)
        case MlflowConfig():
            from bertwright.train.observers.mlflow import Mlflow

            return Mlflow(config, observed)
        case TrackioConfig():
            from bertwright.train.observers.trackio import Trackio

            return Trackio(config, observed)
        case WandbConfig():
            from bertwright.train.observers.wandb import Wandb

            return Wandb(config, observed)
        case _:
            assert_never(config)
