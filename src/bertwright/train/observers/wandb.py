"""A run of Weights & Biases: files on this machine by default, its server where that is named."""

from __future__ import annotations

import os
from pathlib import Path

# Before it is imported, which reads it: no report of errors to its makers.
os.environ["WANDB_ERROR_REPORTING"] = "false"

import wandb

from bertwright.core.files import make_folder, write_atomic
from bertwright.train.observers.config import WandbConfig
from bertwright.train.observers.observer import Observed, Row, numbers_of


class Wandb:
    """One run for all starts of a training, by its key; each start leaves files of its own; see `Observer`."""

    def __init__(self, config: WandbConfig, observed: Observed) -> None:
        folder = make_folder(observed.folder / "wandb")
        # Files on this machine cannot be asked how far they go.
        self._note: Path = folder / "last-step"
        self.seen = int(self._note.read_text()) if self._note.is_file() else 0
        self._run = wandb.init(
            project=config.project,
            name=observed.name,
            id=observed.key[:16],
            dir=folder,
            config=dict(observed.settings),
            # Said outright, so that no WANDB_MODE of the environment decides.
            mode="online" if config.server else "offline",
            resume="allow",
            save_code=False,
            settings=wandb.Settings(
                **({"base_url": config.server} if config.server else {}),
                console="off",
                disable_git=True,
                disable_job_creation=True,
                x_disable_machine_info=True,
                x_disable_stats=True,
                x_disable_meta=True,
                silent=True,
            ),
        )

    def record(self, row: Row) -> None:
        """As `Observer.record`; the step is that over all phases."""
        self._run.log(numbers_of(row), step=row["total_steps"])
        write_atomic(self._note, str(row["total_steps"]).encode())

    def close(self, finished: bool) -> None:
        """As `Observer.close`; waits until the rows are stored."""
        self._run.finish(exit_code=0 if finished else 255)
