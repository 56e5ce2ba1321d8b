"""A Weights & Biases run: files on this machine by default, or its server if one is named."""

from __future__ import annotations

import os
from pathlib import Path

# Set before the import, which reads it: disable error reports to the package's makers.
os.environ["WANDB_ERROR_REPORTING"] = "false"

import wandb

from bertwright.core.files import make_folder, write_atomic
from bertwright.train.monitor.observers.config import WandbConfig
from bertwright.train.monitor.observers.observer import Observed, Row, numbers_of


class Wandb:
    """One W&B run for all starts of a training, identified by its key; each start leaves separate files; see
    `Observer`."""

    def __init__(self, config: WandbConfig, observed: Observed) -> None:
        folder = make_folder(observed.folder / "wandb")
        # Local files cannot be queried for their last step.
        self._note: Path = folder / "last-step"
        self.seen = int(self._note.read_text()) if self._note.is_file() else 0
        self._run = wandb.init(
            project=config.project,
            name=observed.name,
            id=observed.key[:16],
            dir=folder,
            config=dict(observed.settings),
            # Set explicitly, so that WANDB_MODE in the environment has no effect.
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
        """As `Observer.record`; the step is counted over all phases."""
        self._run.log(numbers_of(row), step=row["total_steps"])
        write_atomic(self._note, str(row["total_steps"]).encode())

    def close(self, finished: bool) -> None:
        """As `Observer.close`; waits until the rows are stored."""
        self._run.finish(exit_code=0 if finished else 255)
