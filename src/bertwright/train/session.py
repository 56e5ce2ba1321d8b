"""What stays the same over all phases of a training, and whom the loop tells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from bertwright.train.checkpoint import State
from bertwright.train.forecast import Forecast
from bertwright.train.step import Trained


@dataclass(frozen=True)
class Session:
    """One start of the program."""

    trained: Trained
    device: torch.device
    record: Callable[[dict[str, Any]], None]
    """Takes a row of metrics."""
    save: Callable[[State], None]
    """Writes a checkpoint."""
    stop_requested: Callable[[], bool]
    """Whether a signal asked to stop."""
    forecast: Forecast
    """What is left of the run."""
    progress: Callable[[str, float, float, str], None]
    """Takes the name of what goes on, how much of how much is done, and its unit."""
